package bench

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi"
)

// passingWindow is how many messages are under way at once: as in osu_bw.
const passingWindow = 64

// passing measures messages between ranks 0 and 1.
func (n *memoryNode) passing(ctx context.Context, r *memoryResult) error {
	if r.SizeBytes <= memfifo.MaxRecord {
		if err := n.pushTimes(ctx, r); err != nil {
			return err
		}
	}
	w, err := mpi.Open(n.ep, mpi.Config{Nodes: []mcd.NodeID{0, 1}, PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	if err = n.meet(ctx); err == nil {
		if err = n.pass(ctx, r, w.Comm()); err == nil {
			err = n.passMany(ctx, r, w.Comm())
		}
	}
	stats := w.Counters().Frames
	r.Frames, r.Again = stats.Sent, stats.Retransmitted
	return errors.Join(err, n.meet(ctx), w.Close())
}

// pass measures half round trips.
func (n *memoryNode) pass(ctx context.Context, r *memoryResult, c *mpi.Comm) error {
	buf := make([]byte, r.SizeBytes)
	send := func() error { return mpi.Send(ctx, c, n.data, 1-c.Rank(), 0) }
	receive := func() error { _, err := mpi.Recv(ctx, c, buf, 1-c.Rank(), 0); return err }
	if err := n.pingPong(r, send, receive); err != nil {
		return err
	}
	return n.compare("mpi", buf)
}

// passMany measures messages one way, passingWindow at a time, from one buffer and into one, until
// the last one is received.
func (n *memoryNode) passMany(ctx context.Context, r *memoryResult, c *mpi.Comm) error {
	count := n.many()
	requests := make([]*mpi.Request, passingWindow)
	buf := bytes.Clone(n.data)
	start := time.Now()
	for done := 0; done < count; done += passingWindow {
		window := requests[:min(passingWindow, count-done)]
		for k := range window {
			if c.Rank() == 0 {
				window[k] = mpi.Isend(c, n.data, 1, 0)
			} else {
				window[k] = mpi.Irecv(c, buf, 0, 0)
			}
		}
		if err := mpi.WaitAll(ctx, window...); err != nil {
			return err
		}
	}
	last := make([]byte, 1)
	if c.Rank() == 1 {
		return mpi.Send(ctx, c, last, 0, 1)
	}
	if _, err := mpi.Recv(ctx, c, last, 1, 1); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	r.MsgsPerS = float64(count) / took
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
	return nil
}
