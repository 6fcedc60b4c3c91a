package mpi

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Dup makes a communicator of the same processes, whose messages do not mix: MPI_Comm_dup.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// NoColor is for processes that are in no communicator of a Split: MPI_UNDEFINED.
const NoColor = -1

// Split makes communicators of the processes that give one color; their ranks are in the order of
// key, or else of the old ranks. It is MPI_Comm_split. It returns nil for NoColor. It may fail on
// some processes alone, if one dies or gives up, as its context has ended, or the communicator is
// revoked meanwhile: where that may be, an Agree of the old communicator tells whether all have the
// new one. In one that not all have, others wait for those: who has it calls Revoke, and then Free.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	return c.split(ctx, color, key, false)
}

// split is Split, also of a window's communicator.
func (c *Comm) split(ctx context.Context, color, key int, window bool) (n *Comm, err error) {
	c.w.beginMaking()
	defer c.w.endMaking()
	context := uint32(0)
	if c.rank == 0 {
		context = c.w.newContext()
	}
	all := make([]int, 3*c.Size())
	err = c.do(ctx, "split", func(o collective) error {
		if err := gatherAll(o, []int{color, key, int(context)}, all); err != nil {
			return err
		}
		if context = uint32(all[2]); context == 0 {
			return fmt.Errorf("rank 0 has made %d communicators, all that it may", c.w.maxContexts())
		}
		if color == NoColor {
			return nil
		}
		n = c.subset(context, color, all)
		if window {
			o.adopt(n)
		}
		c.w.add(n)
		return nil
	})
	return n, err
}

// adopt has a window's communicator, which the operation makes, revoked with the one that it is of;
// and those that leave the operation, now or later, leave the first one there.
func (o collective) adopt(d *Comm) {
	o.w.mu.Lock()
	d.madeBy = o.tag
	if o.windows = append(o.windows, d); o.revoked.Load() {
		d.revoke()
	}
	for _, l := range o.leavers {
		if l.covers(o.tag) {
			d.hearLeft(l.inFirst())
		}
	}
	o.w.run()
}

// newContext returns the context of a new communicator, which no other process gives to one: each
// has numbers of its own. It is 0 if there is none left. A number is not used again, as messages in
// it may still be on their way.
func (w *World) newContext() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.contexts == w.maxContexts() {
		return 0
	}
	w.contexts++
	return 2 * (uint32(w.me.rank)*(w.maxContexts()+1) + w.contexts)
}

// maxContexts is how many communicators a process may number: all together have 31 bits.
func (w *World) maxContexts() uint32 { return 1<<31/uint32(len(w.all)) - 1 }

// subset makes the communicator of one color.
func (c *Comm) subset(context uint32, color int, all []int) *Comm {
	n := &Comm{w: c.w, context: context}
	var keys []int
	for k, rank := range c.members {
		if all[3*k] != color {
			continue
		}
		at := len(keys)
		for at > 0 && keys[at-1] > all[3*k+1] {
			at--
		}
		keys = append(keys[:at], append([]int{all[3*k+1]}, keys[at:]...)...)
		n.members = append(n.members[:at], append([]matching.Rank{rank}, n.members[at:]...)...)
	}
	n.place()
	return n
}
