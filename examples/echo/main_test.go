package main

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// losesOne is a link that loses the first frame with some text.
type losesOne struct {
	transport.Link
	text []byte
	lost bool
}

func (l *losesOne) Send(frames []transport.Frame) (int, error) {
	if len(frames) > 0 && !l.lost && bytes.Contains(frames[0].Payload, l.text) {
		l.lost = true
		return 1, nil
	}
	return l.Link.Send(frames[:min(len(frames), 1)])
}

// The goodbye comes back also where its first echo is lost: the server has not left yet.
func TestServe_LostGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var lossy *losesOne
		nodes := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node == 0 {
					return l
				}
				lossy = &losesOne{Link: l, text: []byte(goodbye)}
				return lossy
			},
		})
		var all sync.WaitGroup
		for _, e := range nodes {
			all.Go(func() {
				if err := node(ctx, &start.Node{Endpoint: e}); err != nil {
					t.Errorf("node %d: %v", e.Node(), err)
				}
				_ = e.Close() // the node has left
			})
		}
		all.Wait()
		if !lossy.lost {
			t.Error("nothing was lost")
		}
	})
}
