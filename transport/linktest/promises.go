package linktest

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// counters: what went in on one side and came out on the other, in frames and bytes.
func counters(t *testing.T, a, b transport.Link) {
	txBefore, rxBefore := a.Counters(), b.Counters()
	batch := numberedBatch(b.MAC(), 0, 10)
	batch[3].Tagged, batch[3].Tag = true, transport.Tag{VID: 9}
	batch[4].Payload = payload(4, a.MTU())
	var sentBytes, gotBytes uint64
	for i := range batch {
		sentBytes += uint64(batch[i].WireLen())
	}
	send(t, a, batch...)
	got := receive(t, b, len(batch))
	for i := range got {
		gotBytes += uint64(got[i].WireLen())
	}
	tx, rx := a.Counters(), b.Counters()
	if n := tx.TxFrames - txBefore.TxFrames; n != 10 {
		t.Errorf("TxFrames grew by %d, want 10", n)
	}
	if n := tx.TxBytes - txBefore.TxBytes; n != sentBytes {
		t.Errorf("TxBytes grew by %d, want %d", n, sentBytes)
	}
	if n := rx.RxFrames - rxBefore.RxFrames; n != 10 {
		t.Errorf("RxFrames grew by %d, want 10", n)
	}
	if n := rx.RxBytes - rxBefore.RxBytes; n != gotBytes {
		t.Errorf("RxBytes grew by %d, want %d", n, gotBytes)
	}
	if tx.RxFrames != txBefore.RxFrames || rx.TxFrames != rxBefore.TxFrames {
		t.Errorf("the sender received %d frames, the receiver sent %d: want none", tx.RxFrames-txBefore.RxFrames, rx.TxFrames-rxBefore.TxFrames)
	}
	if rx.RxDropped != rxBefore.RxDropped || rx.RxMalformed != rxBefore.RxMalformed || tx.TxRefused != txBefore.TxRefused {
		t.Errorf("dropped, malformed or refused frames on a clean path: sender %+v, receiver %+v", tx, rx)
	}
	mustClose(t, b)
	if after := b.Counters(); after != rx {
		t.Errorf("Close changed the counters from %+v to %+v", rx, after)
	}
}

func countersRefused(t *testing.T, a, b transport.Link) {
	before := a.Counters()
	large, tagged := numbered(b.MAC(), 1), numbered(b.MAC(), 2)
	large.Payload = payload(1, a.MTU()+1)
	tagged.Tagged, tagged.Tag = true, transport.Tag{VID: 4095}
	for _, f := range []transport.Frame{large, tagged} {
		if _, err := a.Send([]transport.Frame{numbered(b.MAC(), 0), f, numbered(b.MAC(), 3)}); err == nil {
			t.Errorf("Send with a bad frame in the batch: no error")
		}
	}
	after := a.Counters()
	if n := after.TxRefused - before.TxRefused; n != 2 {
		t.Errorf("TxRefused grew by %d, want 2: the frames refused, not those after them", n)
	}
	if n := after.TxFrames - before.TxFrames; n != 2 {
		t.Errorf("TxFrames grew by %d, want 2: those before the refused ones", n)
	}
}

// noAllocs: a frame, and a batch of them, go from Send to Poll without memory being allocated.
func noAllocs(t *testing.T, a, b transport.Link) {
	for _, size := range []int{1, 8} {
		out, in := numberedBatch(b.MAC(), 0, size), make([]transport.Frame, size)
		out[size-1].Tagged, out[size-1].Tag = true, transport.Tag{VID: 5, PCP: 1}
		failed := false
		allocs := testing.AllocsPerRun(100, func() {
			give := time.Now().Add(patience)
			if n, err := a.Send(out); n != size || err != nil {
				failed = true
				return
			}
			for got := 0; got < size; {
				n, err := b.Poll(in)
				if got += n; err != nil || n == 0 && time.Now().After(give) {
					failed = true
					return
				}
				if n == 0 {
					runtime.Gosched()
				}
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

// concurrentSend: frames of several senders arrive whole, each once, each sender's in order.
func concurrentSend(t *testing.T, a, b transport.Link) {
	const senders, batches, size = 8, 8, 2 // 128 frames: they fit into the smallest queues
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
		wantPayload(t, f.Payload, payload(binary.BigEndian.Uint64(f.Payload), 64))
	}
}
