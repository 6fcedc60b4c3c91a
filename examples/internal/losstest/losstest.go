// Package losstest runs an example's nodes over a network that loses one frame.
package losstest

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

// Run runs nodes 0 and 1, in virtual time, and loses the first frame of node 1 that has some text.
// Each node has to end well, and leaves then.
func Run(t *testing.T, text string, node func(context.Context, *start.Node) error) {
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
				lossy = &losesOne{Link: l, text: []byte(text)}
				return lossy
			},
		})
		var all sync.WaitGroup
		for _, e := range nodes {
			all.Go(func() {
				if err := node(ctx, &start.Node{Endpoint: e}); err != nil {
					t.Errorf("node %d: %v", e.Node(), err)
				}
				_ = e.Close()
			})
		}
		all.Wait()
		if !lossy.lost {
			t.Error("nothing was lost")
		}
	})
}

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
