package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// What node 0 asks another node for. The first request is the turn of the node; the second one
// means that all turns are over.
const (
	askRow = iota
	askEnd
	turnRequests
)

// turns makes nodes on different machines work one after the other.
type turns struct {
	ep *mcd.Endpoint
	x  *cluster.Exchanger

	mu      sync.Mutex
	asked   [turnRequests]chan struct{} // closed by the first request
	closed  [turnRequests]bool
	answers [turnRequests][]byte // nil: not ready
}

func newTurns(ep *mcd.Endpoint) (t *turns, err error) {
	t = &turns{ep: ep}
	for i := range t.asked {
		t.asked[i] = make(chan struct{})
	}
	t.answers[askEnd] = []byte{} // at once: this node is about to leave
	t.x, err = cluster.OpenExchanger(ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout, Answer: t.answer})
	return t, err
}

func (t *turns) close() { _ = t.x.Close() }

// answer answers node 0.
func (t *turns) answer(_ mcd.NodeID, request []byte) (answer []byte, ready bool) {
	if len(request) != 1 || request[0] >= turnRequests {
		return nil, false
	}
	i := request[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed[i] {
		t.closed[i] = true
		close(t.asked[i])
	}
	return t.answers[i], t.answers[i] != nil
}

// serve takes the turn of this node when node 0 asks for it, and returns after all turns.
func (t *turns) serve(ctx context.Context, turn func() row) error {
	if err := t.awaitAsked(ctx, askRow); err != nil {
		return err
	}
	r := turn()
	b := r.marshal()
	t.mu.Lock()
	t.answers[askRow] = b
	t.mu.Unlock()
	if err := t.awaitAsked(ctx, askEnd); err != nil {
		return err
	}
	return launch.Linger(ctx, t.ep, launch.LingerTime)
}

// awaitAsked waits until node 0 sends a request. That it is there still is looked after now and
// then.
func (t *turns) awaitAsked(ctx context.Context, i int) error {
	look := time.NewTicker(launch.Silence / 6)
	defer look.Stop()
	for heard := time.Now(); ; {
		select {
		case <-t.asked[i]:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		turn, cancel := context.WithTimeout(ctx, time.Second)
		_, err := t.ep.Ping(turn, mcd.Path{Node: 0}, mcd.ProbeOptions{})
		cancel()
		switch {
		case err == nil:
			heard = time.Now()
		case !errors.Is(err, mcd.ErrNoAnswer):
			return err
		case time.Since(heard) > launch.Silence:
			return fmt.Errorf("node 0 has not answered for %v (has it ended, or is its cable out?)", launch.Silence)
		}
	}
}

// collect is for node 0: it takes its own turn, and asks the others for theirs.
func (t *turns) collect(ctx context.Context, turn func() row, note cli.Progress) (rows []row, err error) {
	var others []mcd.NodeID
	for _, n := range t.ep.Nodes() {
		note.Say("node %d ...", n.ID)
		var r row
		if n.ID == t.ep.Node() {
			r = turn()
		} else {
			others = append(others, n.ID)
			if r, err = t.fetch(ctx, n.ID); err != nil {
				return rows, err
			}
		}
		if r.Error != "" {
			return rows, fmt.Errorf("node %d: %s", n.ID, r.Error)
		}
		rows = append(rows, r)
	}
	return rows, launch.Dismiss(ctx, t.x, others, []byte{askEnd})
}

func (t *turns) fetch(ctx context.Context, node mcd.NodeID) (r row, err error) {
	b, err := t.x.Ask(ctx, node, []byte{askRow})
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}
