package memfifo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// A Put or Push waits for room, and what was under way is lost; another caller's Flush reports that
// before it goes on. It ends with the loss, and does not go on as if its first half were there.
func TestFailure_BetweenRoomAndItsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, err := fabric.Links(2)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = links[1].Close() }() // nobody answers there
		ep, err := mcd.Open(mcd.Config{Nodes: []mcd.Node{{ID: 1, MACs: []transport.MAC{links[1].MAC()}}}, Spin: -1}, links[0])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ep.Close() }()
		d, err := Open(ep, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		for name, do := range map[string]func(r *Remote) error{
			"Put": func(r *Remote) error { return r.Put(context.Background(), 0, make([]byte, 1<<20)) },
			"Push": func(r *Remote) error {
				for {
					if err := r.Push(context.Background(), make([]byte, MaxRecord)); err != nil {
						return err
					}
				}
			},
		} {
			ended := make(chan error, 1)
			go func() { ended <- do(d.Remote(Key{Node: 1})) }()
			synctest.Wait()
			d.mu.Lock()
			p := d.peers[1]
			p.fail(&PeerDownError{Node: 1})
			p.peerErr = nil
			d.mu.Unlock()
			begun := time.Now()
			if err := <-ended; !errors.Is(err, ErrPeerDown) || time.Since(begun) > 0 {
				t.Errorf("%s: %v, after %v", name, err, time.Since(begun))
			}
		}
	})
}
