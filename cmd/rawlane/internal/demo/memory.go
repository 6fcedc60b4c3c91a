package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/memfifo"
)

const (
	demoOwner = 1   // of the window and the FIFO
	demoAdds  = 100 // of each other node
	// demoRecords is the number of records of each of two nodes: more than fit into the FIFO.
	demoRecords = 20
	demoMemory  = 128
)

// remote writes to memory of another node, tries to write beyond it, and counts there with others.
func (t *tour) remote(ctx context.Context) error {
	mem := make([]byte, demoMemory)
	w, err := t.domains[demoOwner].Register(1, mem, memfifo.All)
	if err != nil {
		return err
	}
	const text, at = "put here", 16
	r := t.domains[0].Remote(w.Key())
	if err := r.PutNotify(ctx, at, []byte(text)); err != nil {
		return err
	}
	if _, err := w.Wait(ctx, 0); err != nil {
		return err
	}
	if got := string(mem[at:][:len(text)]); got != text {
		return fmt.Errorf("node 0 put %q, and node %d has %q", text, demoOwner, got)
	}
	t.say("Put:       node 0 wrote %q into node %d's memory at %d, which was told when it was there",
		text, demoOwner, at)
	if err := t.refused(ctx, r); err != nil {
		return err
	}
	return t.count(ctx, w)
}

// refused writes beyond a window, which the owner refuses.
func (t *tour) refused(ctx context.Context, r *memfifo.Remote) error {
	before, after := make([]byte, demoMemory), make([]byte, demoMemory)
	own := t.domains[demoOwner].Remote(r.Key()) // a Get from oneself is in order with what others do
	if err := own.Get(ctx, 0, before); err != nil {
		return err
	}
	if err := r.Put(ctx, demoMemory-4, []byte("too long")); err != nil {
		return err
	}
	refusal := t.domains[0].Flush(ctx)
	if !errors.Is(refusal, memfifo.ErrAccess) {
		return fmt.Errorf("8 bytes were put at %d of %d: %w", demoMemory-4, demoMemory, refusal)
	}
	if err := own.Get(ctx, 0, after); err != nil {
		return err
	}
	if !bytes.Equal(after, before) {
		return errors.New("a write that was refused has changed the memory")
	}
	t.say("Refused:   8 bytes at %d of %d: %q; nothing was written", demoMemory-4, demoMemory, refusal)
	return nil
}

// count adds to one word from all other nodes.
func (t *tour) count(ctx context.Context, w *memfifo.Window) error {
	others := slices.Delete(slices.Clone(t.domains), demoOwner, demoOwner+1)
	err := atOnce(others, func(d *memfifo.Domain) error {
		for range demoAdds {
			if _, err := d.Remote(w.Key()).FetchAdd(ctx, 0, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sum, err := w.Load(0)
	if err != nil {
		return err
	}
	if sum != uint64(len(others)*demoAdds) {
		return fmt.Errorf("%d nodes added 1 %d times, and the word is %d", len(others), demoAdds, sum)
	}
	t.say("FetchAdd:  %d nodes added 1 to one word %d times each: it is %d", len(others), demoAdds, sum)
	return nil
}

// queue pushes from two nodes to a FIFO that is too small for all records: those of each node come
// in order, and none is lost.
func (t *tour) queue(ctx context.Context) error {
	q, err := t.domains[demoOwner].NewFIFO(1, make([]byte, demoMemory))
	if err != nil {
		return err
	}
	pushers, pushed := []int{0, 2}, make(chan error, 1)
	go func() { // until all records are in the FIFO
		pushed <- atOnce(pushers, func(k int) error {
			r := t.domains[k].Remote(q.Key())
			for i := range demoRecords {
				if err := r.Push(ctx, []byte{byte(k), byte(i)}); err != nil {
					return err
				}
			}
			return t.domains[k].Flush(ctx)
		})
	}()
	next := make([]byte, len(t.nodes))
	var order []string
	for range len(pushers) * demoRecords {
		var rec [2]byte
		if _, err := q.Pop(ctx, rec[:]); err != nil {
			return err
		}
		if k := int(rec[0]); k >= len(next) || rec[1] != next[k] {
			return fmt.Errorf("record %d of node %d is out of order", rec[1], rec[0])
		}
		next[rec[0]]++
		order = append(order, fmt.Sprintf("%d:%d", rec[0], rec[1]))
	}
	if err := <-pushed; err != nil {
		return err
	}
	t.say("FIFO:      nodes 0 and 2 pushed %d records each into %d bytes of node %d, which popped %s ... %s",
		demoRecords, demoMemory, demoOwner, strings.Join(order[:4], " "), order[len(order)-1])
	return nil
}
