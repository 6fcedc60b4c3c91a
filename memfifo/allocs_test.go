package memfifo_test

import (
	"testing"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Each operation by itself allocates nothing, once the domain's memory has grown. It takes as long
// as it takes, where others want the cores.
func TestEachOperationDoesNotAllocate(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: one goroutine's operations, by the thousand")
	}
	c := open(t, 2, 0, fault.Config{}, 0)
	ctx := t.Context()
	d := c.domains[0]
	w := c.window(t, 1, 4096)
	q := c.fifo(t, 1, 1<<16)
	r, push := d.Remote(w.Key()), d.Remote(q.Key())
	own := c.domains[1].Remote(w.Key())
	much := make([]byte, 500_000) // more than a window of frames
	large, err := c.domains[1].Register(4, make([]byte, len(much)), memfifo.All)
	must(t, err)
	into := d.Remote(large.Key())
	b, out := make([]byte, 64), make([]byte, 64)
	sent := func(error) *memfifo.PostedPut { return nil }
	short := &memfifo.PostedPut{Window: r.Key(), Data: b, Tail: push.Key(), Record: b, Sent: sent}
	longer := &memfifo.PostedPut{Window: into.Key(), Data: much, Tail: push.Key(), Record: b, Sent: sent}
	parcel := &memfifo.Parcel{To: r, Data: b}
	lq, err := c.domains[1].NewFIFO(2, make([]byte, 1<<18))
	must(t, err)
	long, record := d.Remote(lq.Key()), make([]byte, 100_000)
	count := 0
	h, err := c.domains[1].Handle(3, memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) { count++ }})
	must(t, err)
	handled := d.Remote(h.Key())
	popLong := func() {
		_, err := lq.Pop(ctx, record)
		must(t, err)
	}
	pop := func() {
		_, err := q.Pop(ctx, out)
		must(t, err)
	}
	fetchAdd := func() {
		_, err := r.FetchAdd(ctx, 0, 1)
		must(t, err)
	}
	for _, x := range []struct {
		name string
		do   func()
	}{
		{"Put", func() { must(t, r.Put(ctx, 0, b)) }},
		{"PutNotify and Wait", func() {
			seen := w.Notified()
			must(t, r.PutNotify(ctx, 0, b))
			_, err := w.Wait(ctx, seen)
			must(t, err)
		}},
		{"FetchAdd", fetchAdd},
		{"Get", func() { must(t, r.Get(ctx, 0, out)) }},
		{"Push and Pop", func() { must(t, push.Push(ctx, b)); pop() }},
		{"TryPush and Pop", func() { must(t, push.TryPush(ctx, b)); pop() }},
		{"Push and PostPush to a handler", func() { must(t, handled.Push(ctx, b)); must(t, handled.PostPush(b)); fetchAdd() }},
		{"a long Push and Pop", func() { must(t, long.Push(ctx, record)); popLong() }},
		{"Post and WaitRemote", func() { must(t, d.Post(parcel)); must(t, parcel.WaitRemote(ctx)) }},
		{"PutV of two", func() { must(t, r.PutV(ctx, memfifo.Segment{Data: b}, memfifo.Segment{Off: 64, Data: b})) }},
		{"PostPut and Pop", func() { must(t, d.PostPut(short)); pop() }},
		{"a long PostPut and Pop", func() { must(t, d.PostPut(longer)); pop() }},
		{"Put to itself", func() { must(t, own.Put(ctx, 0, b)) }},
	} {
		for range 500 {
			x.do()
		}
		fetchAdd() // all before it is in place
		if n := testing.AllocsPerRun(500, x.do); n != 0 {
			t.Errorf("%s: %v allocations, want 0", x.name, n)
		}
		fetchAdd()
	}
}
