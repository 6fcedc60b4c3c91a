package linktest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// counters: both ends count the frames and bytes that went from one to the other, and nothing else.
func counters(t *testing.T, a, b transport.Link) {
	batch := numberedBatch(b.MAC(), 0, 10)
	batch[3].OptionalTag = transport.Tagged(transport.Tag{VID: 9})
	batch[4].Payload = payload(4, a.MTU())
	wantA, wantB := a.Counters(), b.Counters()
	send(t, a, batch...)
	got := receive(t, b, len(batch))
	wantA.TxFrames += uint64(len(batch))
	wantB.RxFrames += uint64(len(batch))
	for i := range batch {
		wantA.TxBytes += uint64(batch[i].WireLen())
		wantB.RxBytes += uint64(got[i].WireLen())
	}
	gotA, gotB := a.Counters(), b.Counters()
	wantA.TxBusy = gotA.TxBusy // a link may be busy at any time
	if gotA != wantA {
		t.Errorf("the sender counts %+v, want %+v", gotA, wantA)
	}
	if gotB != wantB {
		t.Errorf("the receiver counts %+v, want %+v", gotB, wantB)
	}
	mustClose(t, b)
	if after := b.Counters(); after != gotB {
		t.Errorf("Close changed the counters from %+v to %+v", gotB, after)
	}
}

// countersRefused: of a batch, the frames before the refused one are sent, and it alone is refused.
func countersRefused(t *testing.T, a, b transport.Link) {
	before := a.Counters()
	large, tagged := numbered(b.MAC(), 1), numbered(b.MAC(), 2)
	large.Payload = payload(1, a.MTU()+1)
	tagged.OptionalTag = transport.Tagged(transport.Tag{VID: 4095})
	for _, f := range []transport.Frame{large, tagged} {
		if _, err := a.Send([]transport.Frame{numbered(b.MAC(), 0), f, numbered(b.MAC(), 3)}); err == nil {
			t.Errorf("Send with a bad frame in the batch: no error")
		}
	}
	after := a.Counters()
	if refused, sent := after.TxRefused-before.TxRefused, after.TxFrames-before.TxFrames; refused != 2 || sent != 2 {
		t.Errorf("TxRefused grew by %d and TxFrames by %d, want 2 and 2", refused, sent)
	}
}

// noAllocs: a frame, and a batch of them, go from Send to Poll without memory being allocated.
func noAllocs(t *testing.T, a, b transport.Link) {
	for _, size := range []int{1, 8} {
		out, in := numberedBatch(b.MAC(), 0, size), make([]transport.Frame, size)
		out[size-1].OptionalTag = transport.Tagged(transport.Tag{VID: 5, PCP: 1})
		failed := false
		allocs := testing.AllocsPerRun(100, func() {
			deadline := time.Now().Add(patience)
			n, err := a.Send(out)
			failed = failed || n != size || err != nil
			for got := 0; got < size && !failed; runtime.Gosched() {
				n, err := b.Poll(in)
				got += n
				failed = err != nil || n == 0 && time.Now().After(deadline)
			}
		})
		if failed {
			t.Fatalf("%d frames did not get from Send to Poll", size)
		}
		if allocs != 0 {
			t.Errorf("Send and Poll of %d frames: %v allocations, want 0", size, allocs)
		}
	}
}

// concurrentSend: frames of several senders arrive whole, each once, each sender's in order. There
// are 128 of them, which fit into the smallest queue.
func concurrentSend(t *testing.T, a, b transport.Link) {
	const senders, batches, size = 8, 8, 2
	var wg sync.WaitGroup
	for s := range uint64(senders) {
		wg.Go(func() {
			for i := range uint64(batches) {
				send(t, a, numberedBatch(b.MAC(), s<<32+i*size, size)...)
			}
		})
	}
	got := receive(t, b, senders*batches*size)
	wg.Wait()
	var next [senders]uint32
	for _, f := range got {
		seed := seedOf(f.Payload)
		sender, seq := seed>>32, uint32(seed)
		if sender >= senders || seq != next[sender] {
			t.Fatalf("frame %d of sender %d out of order; next wanted of each: %v", seq, sender, next)
		}
		next[sender]++
		wantPayload(t, f.Payload, payload(seed, 64))
	}
}
