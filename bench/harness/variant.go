//go:build linux

package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Variant is one of the programs that a benchmark compares, with a sample of each round.
type Variant[S any] struct {
	Name    string
	Run     func(context.Context) (S, error)
	Samples []S
}

// Rounds runs the variants in turns, so that a slow moment of the machine slows all of them.
func Rounds[S any](ctx context.Context, all []*Variant[S], rounds int) error {
	for range rounds {
		for _, v := range all {
			s, err := v.Run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", v.Name, err)
			}
			v.Samples = append(v.Samples, s)
		}
	}
	return nil
}

// Median returns the sample with the median of a number, after it has sorted the samples by it.
func (v *Variant[S]) Median(of func(S) float64) S {
	slices.SortFunc(v.Samples, func(a, b S) int { return cmp.Compare(of(a), of(b)) })
	return v.Samples[len(v.Samples)/2]
}

// Row is a line of a table: the result of each round.
type Row struct {
	Name   string
	Values []float64
}

// Rows are lines in the order of their first results.
type Rows []*Row

// Add adds the result of a round to the row with a name.
func (t *Rows) Add(name string, value float64) {
	r := t.Find(name)
	if r == nil {
		r = &Row{Name: name}
		*t = append(*t, r)
	}
	r.Values = append(r.Values, value)
}

// Find returns the row with a name; nil if it was left out.
func (t Rows) Find(name string) *Row {
	i := slices.IndexFunc(t, func(r *Row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return t[i]
}

// Median returns the median of the rounds; 0 if the row was left out.
func (r *Row) Median() float64 {
	if r == nil {
		return 0
	}
	v := slices.Sorted(slices.Values(r.Values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Min returns the lowest result.
func (r *Row) Min() float64 { return slices.Min(r.Values) }

// Max returns the highest result.
func (r *Row) Max() float64 { return slices.Max(r.Values) }

// Over returns the median divided by that of another row; 0 if one of them was left out.
func (r *Row) Over(other *Row) float64 {
	if r == nil || other == nil {
		return 0
	}
	return r.Median() / other.Median()
}
