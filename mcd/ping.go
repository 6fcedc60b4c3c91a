package mcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// PingReply is the reply to a ping.
type PingReply struct {
	RTT             time.Duration         // from before the probe was sent until its reply was taken from the link
	From            NodeID                // the node that replied
	Src             transport.MAC         // from which address
	Incarnation     uint32                // of the endpoint there
	PeerReceivedTag transport.OptionalTag // as the probe arrived there: what switches made of the tag
	ReceivedTag     transport.OptionalTag // as the reply arrived here
}

// NoAnswerError names a path that was silent, and for how long. It is ErrNoAnswer, and the
// context's error.
type NoAnswerError struct {
	Path   Path
	Silent time.Duration
	Keys   error // ErrKeyMismatch, if a node with other keys was heard, or with none
	cause  error
}

func (e *NoAnswerError) Error() string {
	s := fmt.Sprintf("%v: no answer for %v", e.Path, e.Silent.Round(time.Microsecond))
	if e.Keys != nil {
		s += fmt.Sprintf("; %v", e.Keys)
	}
	return s
}

// Is makes errors.Is(err, ErrNoAnswer) hold, and ErrKeyMismatch where it applies.
func (e *NoAnswerError) Is(target error) bool {
	return target == ErrNoAnswer || target == ErrKeyMismatch && e.Keys != nil
}

func (e *NoAnswerError) Unwrap() error { return e.cause }

// ping is a probe whose reply is awaited.
type ping struct {
	completion Completion
	number     uint32 // of the probe
	to         Path
	anyNode    bool
	start      monotime.Time
	reply      PingReply
}

// isReply reports whether p, which has the right number, is the reply to a probe along a path. The
// number alone does not make it one: it must come from the node, by the link, and from the address
// that were probed.
func (e *Endpoint) isReply(to Path, p *Probe) bool {
	return p.NIC == to.NIC && p.From == to.Node && e.sourceMatches(p.NIC, p.Src, p.From)
}

func (w *ping) finish(p *Probe) {
	w.reply = PingReply{RTT: clock.Now().Sub(w.start), From: p.From, Src: p.Src, Incarnation: p.Incarnation,
		PeerReceivedTag: p.PeerReceivedTag, ReceivedTag: p.ReceivedTag}
	w.completion.Complete(nil)
}

// Ping sends one probe along a path and waits for its reply, until ctx ends: then a *NoAnswerError.
// While the link has no room it waits, too. Receive functions must not call it. Other errors:
// ErrSelf, and those of TryProbe.
func (e *Endpoint) Ping(ctx context.Context, to Path, o ProbeOptions) (PingReply, error) {
	if to.Node == e.cfg.Node {
		return PingReply{}, fmt.Errorf("probe %v: %w", to, ErrSelf)
	}
	begun := clock.Now()
	w, err := e.tryPing(to, o)
	for errors.Is(err, transport.ErrBusy) && ctx.Err() == nil {
		e.pause(ctx)
		w, err = e.tryPing(to, o)
	}
	if err == nil {
		defer e.probes.forget(w.number)
		err = e.Await(ctx, &w.completion)
	}
	if over := ctx.Err(); over != nil && (errors.Is(err, over) || errors.Is(err, transport.ErrBusy)) {
		silent := clock.Now().Sub(begun)
		return PingReply{}, &NoAnswerError{Path: to, Silent: silent, Keys: e.KeyMismatch(), cause: over}
	}
	if err != nil {
		return PingReply{}, err
	}
	return w.reply, nil
}

// tryPing sends a probe, whose reply goes to the ping that it returns, until forget. Each try has a
// number of its own: what has the number of one that the link refused is no reply.
func (e *Endpoint) tryPing(to Path, o ProbeOptions) (*ping, error) {
	w := &ping{number: e.probes.last.Add(1), to: to, anyNode: o.AnyNode, start: clock.Now()}
	e.probes.await(w)
	err := e.sendProbe(to, o, w.number)
	if err != nil {
		e.probes.forget(w.number)
	}
	return w, err
}

// pause polls, or sleeps, for as long as a full link is left alone, or until ctx ends.
func (e *Endpoint) pause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sendRetry)
	defer cancel()
	_ = e.Await(ctx, new(Completion)) // which nobody completes
}

// await has the reply to w's probe go to w.
func (s *prober) await(w *ping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[w.number] = w
}

func (s *prober) forget(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, number)
}
