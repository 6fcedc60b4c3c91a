package cluster

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// Close of an Exchanger in whose wait another port's function ends the goroutine gives the port back.
func TestExchanger_CloseThatIsLeft(t *testing.T) {
	a, b := linktest.Pipe()
	es := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Spin: time.Hour}}, []transport.Link{a}, []transport.Link{b})
	bad, err := es[0].OpenPort(9, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if len(batch) > 0 {
			runtime.Goexit()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	from, err := es[1].OpenPort(9, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenExchanger(es[0], ExchangerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	x.round, x.posts, x.peers[1].linger = 1, 1, true // as behind an Exchange whose end node 1 has not told
	if err := from.Send(t.Context(), bad.Addr(), nil); err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() { defer close(left); _ = x.Close() }()
	<-left
	p, err := es[0].OpenPort(ExchangePort, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
}

// The answer of an Ask is the caller's alone: the Exchanger does not keep up to MaxBlob of memory.
func TestExchanger_KeepsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		want := make([]byte, 10_000)
		other, err := OpenExchanger(es[1], ExchangerConfig{Answer: func(mcd.NodeID, []byte) ([]byte, bool) { return want, true }})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		x, err := OpenExchanger(es[0], ExchangerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if got, err := x.Ask(t.Context(), 1, nil); err != nil || len(got) != len(want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if kept := len(x.peers[1].blob); kept != 0 {
			t.Errorf("%d bytes are kept", kept)
		}
	})
}

// A node that says nothing is asked less and less often, as it may be one that has thousands to
// answer; one that answers that it has nothing yet is asked as often as before.
func TestExchanger_AsksTheSilentSeldom(t *testing.T) {
	for _, c := range []struct {
		name     string
		answers  bool
		from, to uint64 // messages in ten seconds
	}{
		{"silent", false, 30, 40},
		{"not ready", true, 450, 550},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				es := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
				if c.answers {
					other, err := OpenExchanger(es[1], ExchangerConfig{Answer: func(mcd.NodeID, []byte) ([]byte, bool) { return nil, false }})
					if err != nil {
						t.Fatal(err)
					}
					defer other.Close()
				}
				x, err := OpenExchanger(es[0], ExchangerConfig{})
				if err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, _ = x.Ask(ctx, 1, nil)
				if n := es[0].Counters().TxMessages; n < c.from || n > c.to {
					t.Errorf("asked %d times, want %d to %d", n, c.from, c.to)
				}
			})
		})
	}
}
