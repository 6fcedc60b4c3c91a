//go:build linux

package soak

import (
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/rawnet"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func TestMemory(t *testing.T) {
	testbed.Need(t)
	o, err := Memory(t.Context(), 500*time.Millisecond)
	puts := o.Counts["puts of soaks"]
	if puts != Nodes*o.Counts["barriers of soaks"]/2 || o.Counts["records of soaks"] != perTurn*puts {
		t.Errorf("%v", o.Counts)
	}
	healthy(t, &o, err, puts)
}

func TestConnections(t *testing.T) {
	testbed.Need(t)
	o, err := Connections(t.Context(), 500*time.Millisecond, 24)
	if reopened := o.Counts["listeners reopened in soaks"]; reopened != 9*Nodes {
		t.Errorf("%d listeners reopened, want %d", reopened, 9*Nodes)
	}
	healthy(t, &o, err, min(o.Counts["connections of soaks"], o.Counts["bytes echoed in soaks"]))
}

// healthy wants an outcome in which something was done, and nothing has grown.
func healthy(t *testing.T, o *Outcome, err error, done uint64) {
	t.Helper()
	goroutines, descriptors := Leaks(o.Samples)
	if err != nil || len(o.Wrong) > 0 || done == 0 || o.Cuts == 0 || len(o.Samples) != 9 || goroutines > 3 || descriptors > 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A connection that its program has forgotten is found: the samples' own check can fail.
func TestConnections_FindsALeak(t *testing.T) {
	testbed.Need(t)
	s, err := openStage()
	if err != nil {
		t.Fatal(err)
	}
	c := &connections{}
	if err := c.open(s); err != nil {
		t.Fatal(err)
	}
	if _, err := c.nets[0].Dial(rawnet.Network, "1:"+service); err != nil {
		t.Fatal(err)
	}
	c.settle(0, time.Now())
	if len(c.wrong) != 1 || c.wrong[0] != "2 ends of connections (want 0)" {
		t.Errorf("%q, want the two ends", c.wrong)
	}
	if err := errors.Join(c.close(), s.close()); err != nil {
		t.Error(err)
	}
}

func TestSlope(t *testing.T) {
	var all []Sample
	for i := range 9 {
		all = append(all, Sample{At: time.Duration(i) * time.Hour, RSS: uint64(1<<20 + i*1000), Heap: uint64(9000 - i*1000), Goroutines: 5 + i, Descriptors: 9 + 2*i})
	}
	if got := Slope(all, Resident); math.Abs(got-1000) > .01 {
		t.Errorf("%v resident bytes an hour more, want 1000", got)
	}
	if got := Slope(all, Heap); math.Abs(got+1000) > .01 {
		t.Errorf("%v bytes of objects an hour more, want -1000", got)
	}
	if g, d := Leaks(all); g != 8 || d != 16 {
		t.Errorf("%d goroutines and %d descriptors, want 8 and 16", g, d)
	}
	if g, d := Leaks(nil); Slope(nil, Heap) != 0 || g != 0 || d != 0 {
		t.Error("no samples, no leak")
	}
}
