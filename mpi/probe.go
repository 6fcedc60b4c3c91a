package mpi

import (
	"context"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// probe is a goroutine that waits for a message to come.
type probe struct {
	pattern    matching.Pattern
	completion mcd.Completion
}

// Iprobe reports whether there is a message that a receive would take now: MPI_Iprobe. It polls
// once. Of ProcNull there is always one, without bytes. Errors: ErrRank, ErrTag, ErrClosed; a
// *ProcessError.
func (c *Comm) Iprobe(from, tag int) (s Status, found bool, err error) {
	q, err := c.pattern(from, tag)
	if err != nil {
		return Status{}, false, fmt.Errorf("probe of rank %d: %w", from, err)
	}
	if from == ProcNull {
		return fromNobody, true, nil
	}
	w := c.w
	w.poll()
	w.mu.Lock()
	if m := w.engine.Probe(&q); m != nil && !w.closed {
		defer w.mu.Unlock()
		return c.statusOf(m), true, nil
	}
	if err = c.noMessage(&q); err == nil {
		// Else a program that only asks never finds a message that waits for credit.
		w.out = w.engine.Ask(q, w.out[:0])
		w.act()
	}
	w.runExpecting(w.expected(q.Source)) // likewise, it waits for a dead process for ever
	return Status{}, false, err
}

// Probe waits until there is a message that a receive would take: MPI_Probe. Errors: those of
// Iprobe; ctx's.
func (c *Comm) Probe(ctx context.Context, from, tag int) (Status, error) {
	m, err := c.await(ctx, from, tag, (*matching.Engine).Probe)
	if err != nil {
		return Status{}, err
	}
	return m.status, nil
}

// Message is one that Mprobe has taken: it is for its Recv alone.
type Message struct {
	comm    *Comm
	status  Status
	message *matching.Message
}

// Status returns the message's.
func (m *Message) Status() Status { return m.status }

// Mprobe is Probe that takes the message: MPI_Mprobe. Errors: those of Probe.
func (c *Comm) Mprobe(ctx context.Context, from, tag int) (*Message, error) {
	return c.await(ctx, from, tag, (*matching.Engine).Take)
}

// MRecv receives a message that Mprobe has taken, once: MPI_Mrecv. Errors: those of Recv.
func MRecv[T Element](ctx context.Context, m *Message, buf []T) (Status, error) {
	c := m.comm
	if m.status == fromNobody {
		if err := c.refusal(); err != nil {
			return Status{}, fmt.Errorf("receive from rank %d: %w", ProcNull, err)
		}
		return m.status, nil
	}
	w := c.w
	r := new(Request)
	c.begin(r, bytesOf(buf))
	w.mu.Lock()
	if m.message == nil {
		w.mu.Unlock()
		return Status{}, fmt.Errorf("receive a message: %w", ErrReceived)
	}
	if c.over() != nil && !w.closed { // it gives its credit back
		w.out = w.engine.Drop(m.message, w.out[:0])
		m.message = nil
		w.act()
		w.run()
		w.mu.Lock()
	}
	if w.refuses(r, matching.AnySource) {
		return r.Wait(ctx)
	}
	r.receive = matching.Receive{Capacity: len(r.memory), Owner: r}
	w.out = w.engine.Receive(m.message, &r.receive, w.out[:0])
	m.message = nil
	w.act()
	r.run()
	return r.finish(ctx)
}

// pattern returns what a receive, or a probe, looks for.
func (c *Comm) pattern(from, tag int) (q matching.Pattern, err error) {
	if tag != AnyTag {
		err = checkTag(tag)
	}
	q = matching.Pattern{Source: matching.AnySource, Context: c.context, Tag: int32(tag)}
	switch {
	case err != nil || from == AnySource:
	case from == ProcNull:
		err = c.refusal()
	default:
		if err = c.checkRank(from); err == nil {
			q.Source = c.members[from]
		}
	}
	return q, err
}

func (c *Comm) statusOf(m *matching.Message) Status {
	return Status{Source: c.rankOf(m.Source), Tag: int(m.Tag), size: m.Size}
}

// noMessage says why a message that is not there cannot come. The caller holds World.mu.
func (c *Comm) noMessage(q *matching.Pattern) error {
	err := c.over() // then what had come was dropped
	switch {
	case c.w.closed:
		return ErrClosed
	case err != nil:
		return err
	case q.Source >= 0:
		return c.w.all[q.Source].err
	}
	return c.missing()
}

// await waits until look finds a message.
func (c *Comm) await(
	ctx context.Context, from, tag int, look func(*matching.Engine, *matching.Pattern) *matching.Message,
) (*Message, error) {
	w := c.w
	p := &probe{}
	var err error
	if p.pattern, err = c.pattern(from, tag); err != nil {
		return nil, fmt.Errorf("probe of rank %d: %w", from, err)
	}
	if from == ProcNull {
		return &Message{comm: c, status: fromNobody}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probes = append(w.probes, p)
	defer w.endProbe(p)
	w.runProbe(p)
	for {
		p.completion.Reset()
		if w.closed {
			return nil, ErrClosed
		}
		if m := look(w.engine, &p.pattern); m != nil {
			return &Message{c, c.statusOf(m), m}, nil
		}
		if err := c.noMessage(&p.pattern); err != nil {
			return nil, err
		}
		err := w.awaitOutside(ctx, &p.completion)
		if err != nil && !p.completion.Done() {
			return nil, err
		}
	}
}

// runProbe says that a probe waits, and has who may send to it probed. The caller holds mu, which
// runProbe gives back meanwhile.
func (w *World) runProbe(p *probe) {
	defer w.mu.Lock()
	defer w.expect(w.expected(p.pattern.Source))
	w.out = w.engine.Await(&p.pattern, w.out[:0])
	w.act()
	w.run()
}

// endProbe forgets a probe. The caller holds mu.
func (w *World) endProbe(p *probe) {
	w.engine.Unawait(&p.pattern)
	w.probes = slices.DeleteFunc(w.probes, func(other *probe) bool { return other == p })
}

// wakeProbes has those that wait look again. The caller holds mu.
func (w *World) wakeProbes() {
	for _, p := range w.probes {
		if !p.completion.Done() {
			p.completion.Complete(nil)
		}
	}
}
