package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// Any bytes from another node are ignored or refused, and a round works behind them.
func TestExchanger_Hostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		x, err := cluster.OpenExchanger(eps[0], cluster.ExchangerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := eps[1].OpenPort(1, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 5000 {
				b := make([]byte, rng.IntN(40))
				for i := range b {
					b[i] = byte(rng.IntN(8)) * byte(rng.IntN(64))
				}
				if len(b) > 8 && rng.IntN(8) > 0 { // else of no version
					b[0], b[1] = wire.Version, b[1]%12
					copy(b[4:8], []byte{0, 0, 0, byte(rng.IntN(3))}) // of few lives
				}
				if err := p.Send(t.Context(), mcd.Addr{Node: 0, Port: cluster.ExchangePort}, b); err != nil {
					t.Error(err)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := make(chan error, 1)
		go func() {
			_, err := x.Gather(ctx, 1, []byte("mine"))
			got <- err
		}()
		<-done
		cancel()
		<-got // forged parts may have ended it
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A part that begins behind the end of its blob is no part of it.
func TestExchanger_PartBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		x, err := cluster.OpenExchanger(eps[0], cluster.ExchangerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var p *mcd.Port
		parts := []wire.Message{
			{Kind: wire.Part, Number: 1, Length: 5, Data: []byte("one")},
			{Kind: wire.Part, Number: 1, Offset: 3, Length: 2, Data: []byte("!")},
			{Kind: wire.Part, Number: 1, Offset: 3, Length: 5, Data: []byte("s.")},
		}
		p, err = eps[1].OpenPort(cluster.ExchangePort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
			for i := range batch {
				if m := wire.Parse(batch[i].Payload); m.Kind == wire.Fetch && len(parts) > 0 {
					for _, part := range parts {
						part.From, part.To = 1, m.From
						_ = p.TrySend(0, mcd.To(mcd.Addr{Node: 0, Port: cluster.ExchangePort}), part.Bytes())
					}
					parts = nil
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := x.Exchange(ctx, nil); err != nil || string(got[1]) != "ones." {
			t.Errorf("%q, %v", got, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A table need not hold the node itself: each node exchanges with all others all the same.
func TestExchanger_TableWithoutItsOwnNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*cluster.Exchanger
		for _, e := range mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			others := slices.DeleteFunc(e.Nodes(), func(n mcd.Node) bool { return n.ID == e.Node() })
			if err := e.SetNodes(others); err != nil {
				t.Fatal(err)
			}
			x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
		each(t, all, func(i int, x *cluster.Exchanger) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := x.Exchange(ctx, []byte{byte(i)})
			if want := [][]byte{{0}, {1}, {2}}; err == nil && !slices.EqualFunc(got, want, bytes.Equal) {
				err = fmt.Errorf("exchanged %v, want %v", got, want)
			}
			return errors.Join(err, x.Close())
		})
	})
}

// shortLink is a link whose frames are shorter than a network's.
type shortLink struct {
	transport.Link
	mtu int
}

func (l *shortLink) MTU() int { return l.mtu }

// By links that have no room for a part of a blob there is no Exchanger; with room for a byte, there is.
func TestExchanger_ShortFrames(t *testing.T) {
	for room, opens := range map[int]bool{1: false, 16: false, 24: false, 25: true} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
					return &shortLink{l, mcd.HeaderLen + room}
				},
			})
			var all []*cluster.Exchanger
			for _, e := range eps {
				x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{})
				if (err == nil) != opens {
					t.Errorf("messages of %d bytes: %v", room, err)
				}
				if err == nil {
					all = append(all, x)
				}
			}
			each(t, all, func(_ int, x *cluster.Exchanger) error {
				got, err := x.Exchange(t.Context(), []byte("abc"))
				if err == nil && (string(got[0]) != "abc" || string(got[1]) != "abc") {
					err = fmt.Errorf("exchanged %q", got)
				}
				return errors.Join(err, x.Close())
			})
		})
	}
}
