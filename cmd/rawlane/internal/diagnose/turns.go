package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// The parts of a node's results. The request for the first part is the turn of the node; the
// request for the second part means that all turns are over.
const (
	partRow = iota
	partEnd
	turnParts
)

// turns makes nodes on different machines work one after the other.
type turns struct {
	ep      *mcd.Endpoint
	results *launch.ResultServer
}

func newTurns(ep *mcd.Endpoint) (*turns, error) {
	p, err := launch.NewResultServer(ep, turnParts)
	return &turns{ep, p}, err
}

func (t *turns) close() { t.results.Close() }

// serve takes the turn of this node when node 0 asks for it, and returns after all turns.
func (t *turns) serve(ctx context.Context, turn func() row) error {
	for part, do := range []func() []byte{
		partRow: func() []byte { r := turn(); return r.marshal() },
		partEnd: func() []byte { return nil },
	} {
		if err := t.awaitAsked(ctx, part); err != nil {
			return err
		}
		t.results.Put(part, do())
	}
	return launch.Linger(ctx, t.ep, launch.LingerTime)
}

// awaitAsked waits until node 0 asks for a part. That it is there still is looked after now and
// then.
func (t *turns) awaitAsked(ctx context.Context, part int) error {
	look := time.NewTicker(launch.Silence / 6)
	defer look.Stop()
	for heard := time.Now(); ; {
		select {
		case <-t.results.Asked[part]:
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
	for _, n := range t.ep.Nodes() {
		note.Say("node %d ...", n.ID)
		var r row
		if n.ID == t.ep.Node() {
			r = turn()
		} else if r, err = t.fetch(ctx, n.ID); err != nil {
			return rows, err
		}
		if r.Error != "" {
			return rows, fmt.Errorf("node %d: %s", n.ID, r.Error)
		}
		rows = append(rows, r)
	}
	for _, n := range t.ep.Nodes() {
		if n.ID == t.ep.Node() {
			continue
		}
		if _, err := t.results.Fetch(ctx, n.ID, partEnd); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (t *turns) fetch(ctx context.Context, node mcd.NodeID) (r row, err error) {
	b, err := t.results.Fetch(ctx, node, partRow)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}
