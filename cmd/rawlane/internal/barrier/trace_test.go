package barrier

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// tracePair runs a part of each of two nodes with flags of its own, in a bubble, and returns how
// they ended.
func tracePair(ctx context.Context, t *testing.T, flags [2]traceVerb) (ends [2]error) {
	t.Helper()
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeAll() }()
	ended := make(chan struct{})
	for k, ep := range eps {
		flags[k].algo, flags[k].cluster = []string{schedule.Star().String()}, launch.ClusterFlags{NICs: 1, Nodes: 2}
		go func() {
			ends[k] = flags[k].trace(ctx, ep, io.Discard)
			ended <- struct{}{}
		}()
	}
	<-ended
	<-ended
	return ends
}

// A node that is told to come late ends with its context.
func TestBarrierTrace_EndsWhileLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		begun := time.Now()
		late := traceVerb{iters: 1, late: lateNode{node: 1, by: time.Hour}}
		ends := tracePair(ctx, t, [2]traceVerb{late, late})
		if took := time.Since(begun); took > time.Minute || ends[0] == nil || ends[1] == nil {
			t.Errorf("ended after %v with %v", took, ends)
		}
	})
}

// A node that is told to come late and that there is none of is an error, also where a host file says
// which ones there are.
func TestBarrierTrace_LateIsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := traceVerb{iters: 1}
		if err := late.late.Set("2:1ms"); err != nil {
			t.Fatal(err)
		}
		for k, err := range tracePair(t.Context(), t, [2]traceVerb{late, late}) {
			const want = "--late 2:1ms: none of the 2 nodes has that number"
			if err == nil || err.Error() != want {
				t.Errorf("node %d: %v, want %s", k, err, want)
			}
		}
	})
}

// Nodes with other flags than node 0 are told of, without a word of Go's formatting.
func TestBarrierTrace_OtherIterations(t *testing.T) {
	var b traceVerb
	b.iters = 2
	eps := mcdtest.Open(t, 2, mcdtest.Config{})
	err := b.show(eps[0], nil, [][]byte{[]byte("[{},{}]"), []byte("[{}]")}, io.Discard)
	const want = "node 1 has 1 traces, and not 2 (give all the same --iters)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	err = b.show(eps[0], nil, [][]byte{[]byte("[{},{}]"), []byte("[")}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "node 1: ") {
		t.Errorf("%v, want what is wrong with node 1's traces", err)
	}
}
