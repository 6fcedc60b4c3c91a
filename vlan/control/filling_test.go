package control

import (
	"math"
	"slices"
	"testing"
)

// What flows get of places, however small these are, and with or without a bound of their own.
func TestFairShare_ByHand(t *testing.T) {
	inf := math.Inf(1)
	at := func(most float64, places ...int) sharer { return sharer{most, places} }
	for name, c := range map[string]struct {
		capacity []float64
		flows    []sharer
		want     []float64
	}{
		"no flow":                        {[]float64{1}, nil, []float64{}},
		"one takes all":                  {[]float64{8}, []sharer{at(inf, 0)}, []float64{8}},
		"one takes what it wants":        {[]float64{8}, []sharer{at(3, 0)}, []float64{3}},
		"one with no place":              {[]float64{8}, []sharer{at(3)}, []float64{3}},
		"two share":                      {[]float64{8}, []sharer{at(inf, 0), at(inf, 0)}, []float64{4, 4}},
		"two share less than one":        {[]float64{0.5}, []sharer{at(inf, 0), at(inf, 0)}, []float64{0.25, 0.25}},
		"two share nothing":              {[]float64{0}, []sharer{at(inf, 0), at(1, 0)}, []float64{0, 0}},
		"one leaves some to two":         {[]float64{8}, []sharer{at(inf, 0), at(2, 0), at(inf, 0)}, []float64{3, 2, 3}},
		"each at a place of its own":     {[]float64{1, 8}, []sharer{at(inf, 0), at(inf, 1)}, []float64{1, 8}},
		"one is held back elsewhere":     {[]float64{8, 2}, []sharer{at(inf, 0), at(inf, 0, 1)}, []float64{6, 2}},
		"three places, the last is full": {[]float64{8, 8, 4}, []sharer{at(inf, 0, 2), at(inf, 1, 2), at(inf, 0)}, []float64{2, 2, 6}},
		"exactly what they want":         {[]float64{8}, []sharer{at(4, 0), at(4, 0)}, []float64{4, 4}},
	} {
		if got := fairShare(c.flows, c.capacity); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
