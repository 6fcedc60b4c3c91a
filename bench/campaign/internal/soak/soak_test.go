//go:build linux

package soak

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func TestRun(t *testing.T) {
	testbed.Need(t)
	o, err := Run(t.Context(), 500*time.Millisecond)
	goroutines, descriptors := Leaks(o.Samples)
	if err != nil || len(o.Wrong) > 0 || o.Barriers == 0 || o.Puts != Nodes*o.Barriers/2 || o.Records != perTurn*o.Puts ||
		o.Cuts == 0 || len(o.Samples) != 9 || goroutines > 3 || descriptors > 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestSlope(t *testing.T) {
	var all []Sample
	for i := range 9 {
		all = append(all, Sample{At: time.Duration(i) * time.Hour, RSS: uint64(1<<20 + i*1000), Goroutines: 5 + i, Descriptors: 9 + 2*i})
	}
	if got := Slope(all); math.Abs(got-1000) > .01 {
		t.Errorf("%v bytes an hour, want 1000", got)
	}
	if g, d := Leaks(all); g != 8 || d != 16 {
		t.Errorf("%d goroutines and %d descriptors, want 8 and 16", g, d)
	}
	if g, d := Leaks(nil); Slope(nil) != 0 || g != 0 || d != 0 {
		t.Error("no samples, no leak")
	}
}
