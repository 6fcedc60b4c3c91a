package mcd_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// A message for all that waits for one node holds up what comes later for others, and what waits for
// one node does not. The error says which of the two it is.
func TestSend_BehindAMessageForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := fabric.New(fabric.Config{})
		if err != nil {
			t.Fatal(err)
		}
		links, err := network.AddSwitch("").Links(3)
		if err != nil {
			t.Fatal(err)
		}
		var nodes []mcd.Node
		for k, l := range links {
			nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}})
		}
		defer links[1].Close() // nobody polls it: it is full soon
		var es [3]*mcd.Endpoint
		for _, k := range []int{0, 2} {
			if es[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1}, links[k]); err != nil {
				t.Fatal(err)
			}
			defer es[k].Close()
		}
		p := port(t, es[0], 1)
		for {
			d := &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1}), Payload: []byte("to one")}
			if err := p.PostSend(d); err != nil {
				t.Fatal(err)
			}
			if !d.Done() {
				break
			}
		}
		send := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return p.Send(ctx, mcd.Addr{Node: 2, Port: 1}, []byte("to another"))
		}
		if err := send(); err != nil {
			t.Errorf("behind a message to one: %v", err)
		}
		if err := p.PostSend(&mcd.SendDesc{To: mcd.ToAll(1), Payload: []byte("to all")}); err != nil {
			t.Fatal(err)
		}
		if err := send(); err == nil || !strings.Contains(err.Error(), "one to a group or to all waits before it") {
			t.Errorf("behind a message to all: %v", err)
		}
	})
}
