package memfifo

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// The table of docs/wire-format.md: what a receiver does with records that make no sense.
func TestApply_RecordsThatMakeNoSense(t *testing.T) {
	e := mcdtest.Open(t, 2, mcdtest.Config{})[0]
	d, err := Open(e, Config{})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 16)
	w, err := d.Register(1, mem, All)
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.NewFIFO(1, make([]byte, 256))
	if err != nil {
		t.Fatal(err)
	}
	put := func(data ...byte) []byte {
		b := make([]byte, opPut.Size(len(data)))
		(&request{key: w.key}).write(b, opPut, 0, data, 0)
		return b
	}
	more := func(data ...byte) []byte {
		b := make([]byte, opPutContinue.Size(len(data)))
		new(request).write(b, opPutContinue, 0, data, 0)
		return b
	}
	push := func(flags byte, total uint32, data string) []byte {
		b := make([]byte, opPush.Size(len(data)))
		(&request{key: q.key, total: int(total)}).write(b, opPush, flags, []byte(data), 0)
		return b
	}
	plain := func(o opcode, data int) []byte {
		b := make([]byte, o.Size(data))
		begin(b, o, 0, data)
		return b
	}
	for _, x := range []struct {
		name               string
		lane               reliable.Lane
		records            [][]byte
		malformed, orphans uint64
		first              byte // of the memory afterwards
	}{
		{"more of a put that was never begun", reliable.Requests, [][]byte{more(7)}, 1, 0, 0},
		{"a put", reliable.Requests, [][]byte{put(1)}, 0, 0, 1},
		{"behind an unknown opcode, the rest of the frame is skipped", reliable.Requests, [][]byte{{byte(opcodes), 0, 0, 0}, put(1)}, 1, 0, 0},
		{"opcode 0", reliable.Requests, [][]byte{{0, 0, 0, 0}}, 1, 0, 0},
		{"less than a head", reliable.Requests, [][]byte{put(1), {1, 0, 0}}, 1, 0, 1},
		{"longer than what is left", reliable.Requests, [][]byte{put(1)[:opPut.Size(0)]}, 1, 0, 0},
		{"a reply among requests is skipped", reliable.Requests, [][]byte{plain(opValue, 0), put(1)}, 1, 0, 1},
		{"a request among replies is skipped", reliable.Replies, [][]byte{put(1)}, 1, 0, 0},
		{"a push of another length than it says", reliable.Requests, [][]byte{push(flagFirst|flagLast, 3, "four")}, 1, 0, 0},
		{"parts that are more than the whole", reliable.Requests, [][]byte{push(flagFirst, 5, "four"), push(flagLast, 5, "four")}, 1, 0, 0},
		{"parts that are less", reliable.Requests, [][]byte{push(flagFirst, 9, "four"), push(flagLast, 9, "four")}, 1, 0, 0},
		{"a push among replies is skipped, for the FIFO pushed to last, too", reliable.Replies, [][]byte{push(flagFirst|flagLast, 4, "four")}, 1, 0, 0},
		{"a put that goes on", reliable.Requests, [][]byte{put(), more(7), more(8, 9), plain(opFence, 0), more(10)}, 0, 0, 7},
		{"one that goes on beyond the end", reliable.Requests, [][]byte{put(make([]byte, 16)...), more(7)}, 0, 0, 0},
		{"an answer that nobody waits for", reliable.Replies, [][]byte{plain(opValue, 0), plain(opError, 0), plain(opData, 7)}, 0, 3, 0},
	} {
		d.mu.Lock()
		mem[0] = 0
		before := d.stats
		rest, full := d.peer(1).apply(x.lane, bytes.Join(x.records, nil))
		if rest != nil || full != nil || d.stats.Malformed-before.Malformed != x.malformed || d.stats.Orphans-before.Orphans != x.orphans || mem[0] != x.first {
			t.Errorf("%s: %d left, %+v before, now %+v, the memory begins with %d", x.name, len(rest), before, d.stats, mem[0])
		}
		if x.name == "a put that goes on" && !bytes.Equal(mem[:5], []byte{7, 8, 9, 10, 0}) {
			t.Errorf("%s: the memory begins with % x", x.name, mem[:5])
		}
		d.mu.Unlock()
	}
	if q.Len() != 0 {
		t.Errorf("%d bytes of records that are not whole, or were no requests", q.Len())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A Pop that found no record, before one was appended and the FIFO closed, does not end with
// ErrClosed: what is there can still be popped.
func TestFIFO_ClosedBehindTheLastRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := openRaw(t)
		q, err := d.NewFIFO(1, make([]byte, MinFIFO))
		if err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		q.append(nil, []byte{7})
		d.mu.Unlock()
		_ = q.Close()
		if err := d.sleepUntil(t.Context(), &q.waiters, q.hasEnded, &q.expected, func() bool { return !q.ring.empty() }); err != nil {
			t.Errorf("the wait of Pop: %v", err)
		}
		b := make([]byte, 1)
		if n, err := q.Pop(t.Context(), b); n != 1 || b[0] != 7 || err != nil {
			t.Errorf("%d bytes, %v, %v", n, b, err)
		}
		if err := q.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("empty and closed: %v", err)
		}
	})
}
