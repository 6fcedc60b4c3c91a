package failover_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// tags collects the VIDs of messages with a text that leave by its links.
type tags struct {
	text []byte
	mu   sync.Mutex
	vids []transport.VID
}

// tapped is a link whose frames are looked at.
type tapped struct {
	transport.Link
	seen *tags
}

func (l tapped) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	for i := range frames[:n] {
		if bytes.Contains(frames[i].Payload, l.seen.text) {
			l.seen.vids = append(l.seen.vids, frames[i].Tag.VID)
		}
	}
	return n, err
}

// What a drain has held back goes by the new route also where the drain fails: by the old one, what
// follows it by the new one would overtake it.
func TestWhatAFailedDrainHeldGoesByTheNewRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &tags{text: []byte("held back")}
		n := newNetworkOf(t, 1, 1, losesDrains, func(l transport.Link) transport.Link { return tapped{l, seen} })
		n.cutAndMend(t)
		p, err := n.eps[0].OpenPort(1, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for len(n.moves.take()) == 0 {
			if d := (&mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1}), Payload: seen.text}); p.PostSend(d) != nil {
				t.Fatal("it cannot be posted")
			} else if !d.Done() {
				held++
			}
			time.Sleep(10 * time.Millisecond)
		}
		n.expectVIDs(t, 1)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		first := slices.Index(seen.vids, 1)
		if behind := len(seen.vids) - first; held == 0 || first < 0 || behind < held {
			t.Errorf("%d messages were held back, and %d have gone by the new VID (%v)", held, behind, seen.vids)
		}
	})
}
