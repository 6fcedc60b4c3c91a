package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// piped opens two nodes on a pipe, which polls for nobody. A message waits for node 0, at a port whose
// function does not return.
func piped(t *testing.T, fail func()) []*mcd.Endpoint {
	t.Helper()
	x, y := linktest.Pipe()
	es := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Spin: time.Hour}}, []transport.Link{x}, []transport.Link{y})
	bad, err := es[0].OpenPort(9, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if len(batch) > 0 { // and not where polling stops
			fail()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	from, err := es[1].OpenPort(9, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Send(t.Context(), bad.Addr(), nil); err != nil {
		t.Fatal(err)
	}
	return es
}

// A function of another port that panics, or ends the goroutine, in a call's wait leaves nothing of
// that call behind.
func TestUnreturned(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, fail := range noreturn.Ways {
		open := func(t *testing.T, e *mcd.Endpoint, cfg cluster.ExchangerConfig) *cluster.Exchanger {
			x, err := cluster.OpenExchanger(e, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		t.Run(name+" in Ask", func(t *testing.T) {
			es := piped(t, fail)
			var asked []string
			open(t, es[1], cluster.ExchangerConfig{Answer: func(_ mcd.NodeID, request []byte) ([]byte, bool) {
				asked = append(asked, string(request))
				return nil, false
			}})
			x, b := open(t, es[0], cluster.ExchangerConfig{}), []byte("first")
			noreturn.Run(t, func() error { _, err := x.Ask(t.Context(), 1, b); return err })
			copy(b, "other")
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			for es[1].Progress() {
			}
			if fmt.Sprint(asked) != "[first]" {
				t.Errorf("node 1 was asked %q, want the first alone: the memory is the caller's again", asked)
			}
		})
		t.Run(name+" in Exchange", func(t *testing.T) {
			x := open(t, piped(t, fail)[0], cluster.ExchangerConfig{})
			noreturn.Run(t, func() error { _, err := x.Exchange(t.Context(), nil); return err })
			if _, err := x.Exchange(over, nil); err == nil || errors.Is(err, cluster.ErrIncomplete) {
				t.Errorf("the next one: %v; want what has become of the first, whose round is not over", err)
			}
		})
		t.Run(name+" in Join", func(t *testing.T) {
			e := piped(t, fail)[0]
			noreturn.Run(t, func() error { _, err := cluster.Join(t.Context(), e, cluster.Config{Nodes: 2}); return err })
			if _, err := cluster.Join(over, e, cluster.Config{Nodes: 2}); !errors.Is(err, cluster.ErrIncomplete) {
				t.Errorf("the next one: %v, want that node 1 is missing", err)
			}
		})
	}
}
