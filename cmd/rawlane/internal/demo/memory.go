package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	domains, err := t.domains()
	if err != nil {
		return err
	}
	mem := make([]byte, demoMemory)
	w, err := domains[demoOwner].Register(1, mem, memfifo.All)
	if err != nil {
		return err
	}
	const text, at = "put here", 16
	r := domains[0].Remote(w.Key())
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
	if err := t.refused(ctx, domains[0], r, domains[demoOwner]); err != nil {
		return err
	}
	if err := t.count(ctx, domains, w); err != nil {
		return err
	}
	return closeDomains(ctx, domains)
}

// refused writes beyond a window, which the owner refuses.
func (t *tour) refused(ctx context.Context, d *memfifo.Domain, r *memfifo.Remote, owner *memfifo.Domain) error {
	before, after := make([]byte, demoMemory), make([]byte, demoMemory)
	own := owner.Remote(r.Key()) // a Get from oneself is in order with what others do
	if err := own.Get(ctx, 0, before); err != nil {
		return err
	}
	if err := r.Put(ctx, demoMemory-4, []byte("too long")); err != nil {
		return err
	}
	refusal := d.Flush(ctx)
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
func (t *tour) count(ctx context.Context, domains []*memfifo.Domain, w *memfifo.Window) error {
	var adding sync.WaitGroup
	errs := make([]error, len(domains))
	for k, d := range domains {
		if k == demoOwner {
			continue
		}
		adding.Go(func() {
			for i := 0; i < demoAdds && errs[k] == nil; i++ {
				_, errs[k] = d.Remote(w.Key()).FetchAdd(ctx, 0, 1)
			}
		})
	}
	adding.Wait()
	sum, err := w.Load(0)
	if err := errors.Join(errors.Join(errs...), err); err != nil {
		return err
	}
	others := len(domains) - 1
	if sum != uint64(others*demoAdds) {
		return fmt.Errorf("%d nodes added 1 %d times, and the word is %d", others, demoAdds, sum)
	}
	t.say("FetchAdd:  %d nodes added 1 to one word %d times each: it is %d", others, demoAdds, sum)
	return nil
}

// queue pushes from two nodes to a FIFO that is too small for all records: those of each node come
// in order, and none is lost.
func (t *tour) queue(ctx context.Context) error {
	domains, err := t.domains()
	if err != nil {
		return err
	}
	q, err := domains[demoOwner].NewFIFO(1, make([]byte, demoMemory))
	if err != nil {
		return err
	}
	pushers := []int{0, 2}
	var pushing sync.WaitGroup
	errs := make([]error, len(domains))
	for _, k := range pushers {
		pushing.Go(func() {
			r := domains[k].Remote(q.Key())
			for i := 0; i < demoRecords && errs[k] == nil; i++ {
				errs[k] = r.Push(ctx, []byte{byte(k), byte(i)})
			}
			errs[k] = errors.Join(errs[k], domains[k].Flush(ctx)) // returns when all are in the FIFO
		})
	}
	next := make([]byte, len(domains))
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
	pushing.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.say("FIFO:      nodes 0 and 2 pushed %d records each into %d bytes of node %d, which popped %s ... %s",
		demoRecords, demoMemory,
		demoOwner, strings.Join(order[:4], " "), order[len(order)-1])
	return closeDomains(ctx, domains)
}

// domains opens a domain at each node.
func (t *tour) domains() (all []*memfifo.Domain, err error) {
	for _, e := range t.nodes {
		d, err := memfifo.Open(e, memfifo.Config{})
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// closeDomains flushes all domains before it closes the first: a closed one confirms nothing.
func closeDomains(ctx context.Context, all []*memfifo.Domain) error {
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Flush(ctx))
	}
	for _, d := range all {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
