package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

var clonesMAC = transport.MAC{2, 0, 0, 0, 0, 99}

// learning is what a switch knows of the clones' address: at which port it was heard last.
type learning struct {
	port  atomic.Int32
	ports [2]transport.MAC // addresses of the segment that stand for the ports
}

// switched is the link of a clone at such a switch, or of another station.
type switched struct {
	transport.Link
	at    *learning
	clone int // 0 or 1; -1: another station
}

func (l *switched) MAC() transport.MAC {
	if l.clone < 0 {
		return l.Link.MAC()
	}
	return clonesMAC
}

func (l *switched) Send(frames []transport.Frame) (int, error) {
	for i, f := range frames {
		if l.clone >= 0 {
			f.Src = l.at.ports[l.clone]
			l.at.port.Store(int32(l.clone))
		}
		if f.Dst == clonesMAC {
			if l.clone >= 0 {
				continue // it leads to the port that it came from
			}
			f.Dst = l.at.ports[l.at.port.Load()]
		}
		if n, err := l.Link.Send([]transport.Frame{f}); n == 0 {
			return i, err
		}
	}
	return len(frames), nil
}

func (l *switched) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	for i := range frames[:n] {
		for _, address := range []*transport.MAC{&frames[i].Src, &frames[i].Dst} {
			if slices.Contains(l.at.ports[:], *address) {
				*address = clonesMAC
			}
		}
	}
	return n, err
}

// Of two machines with one number and one address, at a switch, the later one is told, with keys and
// without, whether the other one has joined by then or is about to.
func TestJoin_ClonesAtASwitch(t *testing.T) {
	for _, keys := range []*keyring.Ring{nil, keyring.New()} {
		for _, later := range []time.Duration{0, 5 * time.Second} {
			t.Run(fmt.Sprintf("keys %v, later by %v", keys != nil, later), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSegment(t, 1)
					other, first, second := s.links()[0], s.links()[0], s.links()[0]
					at := &learning{ports: [2]transport.MAC{first.MAC(), second.MAC()}}
					var joining sync.WaitGroup
					var errs [3]error
					for k, l := range []*switched{{other, at, -1}, {first, at, 0}, {second, at, 1}} {
						node := mcd.NodeID(min(k, 1))
						if k == 2 {
							time.Sleep(later)
						}
						e := s.node(mcd.Config{Node: node, Keys: keys}, l)
						joining.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							defer cancel()
							place := mcd.Place{Host: uint64(k + 1), Cores: 1, Usable: 1}
							_, errs[k] = cluster.Join(ctx, e, cluster.Config{Nodes: 2, Place: place})
						})
					}
					joining.Wait()
					if !errors.Is(errs[2], mcd.ErrConflict) {
						t.Errorf("Join of the later one: %v; of the others: %v", errs[2], errs[:2])
					}
				})
			})
		}
	}
}
