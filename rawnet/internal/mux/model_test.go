package mux_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// world is two nodes' streams, with a reliable connection each way, and a naive model of each
// stream: what was sent, and what was read.
type world struct {
	t      testing.TB
	rng    *rand.Rand
	ends   [2]*end
	wires  [2][][]byte // records on their way to a node
	out    []mux.Event
	window int

	changed bool // something was sent or read since settle has looked
}

type end struct {
	node      uint16
	m         *mux.Mux
	listener  *mux.Listener
	streams   []*half
	numbers   map[uint64]*half // by stream number: all numbers differ
	listening bool
}

// half is one end of a stream, in the model.
type half struct {
	s                *mux.Stream
	sent, read       []byte
	posted           []byte
	closed, finished bool
	peer             *half
	writeClosed      bool
	readClosed       bool
	reset            bool // while it was open
}

const services = "echo"

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), window: mux.MinWindow}
	for k := range w.ends {
		m := mux.New(mux.Config{First: uint64(k)<<63 + ^uint64(0)>>1, Window: w.window, MaxStreams: 20})
		w.ends[k] = &end{node: uint16(k), m: m, numbers: map[uint64]*half{}}
	}
	return w
}

// other returns the node at the other end.
func (w *world) other(e *end) *end { return w.ends[1-e.node] }

func (e *end) add(s *mux.Stream) *half {
	h := &half{s: s}
	s.Owner = h
	e.streams = append(e.streams, h)
	e.numbers[s.Number()] = h
	return h
}

// step does one random thing.
func (w *world) step() {
	e := w.ends[w.rng.IntN(2)]
	switch w.rng.IntN(12) {
	case 0:
		w.listen(e)
	case 1:
		w.dial(e)
	case 2:
		w.accept(e)
	case 3, 4, 5:
		w.arrive(e)
	case 6:
		w.control(e)
	default:
		if len(e.streams) > 0 {
			w.use(e, e.streams[w.rng.IntN(len(e.streams))])
		}
	}
}

func (w *world) listen(e *end) {
	if e.listening && w.rng.IntN(20) == 0 {
		e.listener.Close()
		e.listening = false
		return
	}
	l, err := e.m.Listen(services, 3)
	if (err == nil) == e.listening {
		w.t.Fatalf("listen: %v, and the node listens: %v", err, e.listening)
	}
	if err == nil {
		e.listener, e.listening = l, true
	}
}

func (w *world) dial(e *end) {
	s, err := e.m.Dial(w.other(e).node)
	if err != nil {
		if n := len(e.m.All()); n != 20 {
			w.t.Fatalf("%v with %d streams", err, n)
		}
		return
	}
	e.add(s)
	if w.rng.IntN(10) == 0 {
		s.Abort()
		return
	}
	w.send(e, s.AppendOpen(nil, services))
}

func (w *world) accept(e *end) {
	if !e.listening {
		return
	}
	s := e.listener.Accept()
	if s == nil {
		return
	}
	h := e.add(s)
	h.peer = w.other(e).numbers[s.Number()]
	h.peer.peer = h
	if s.Service() != services || h.peer.s.Service() != "" {
		w.t.Fatalf("services %q and %q", s.Service(), h.peer.s.Service())
	}
}

func (w *world) send(e *end, rec []byte) {
	w.changed = true
	to := 1 - e.node
	w.wires[to] = append(w.wires[to], rec)
}

// arrive has some records come.
func (w *world) arrive(e *end) {
	for range w.rng.IntN(8) {
		if len(w.wires[e.node]) == 0 {
			return
		}
		rec := w.wires[e.node][0]
		w.wires[e.node] = w.wires[e.node][1:]
		w.out = e.m.Handle(w.other(e).node, rec, w.out[:0])
		w.events()
		if c := e.m.Counters(); c.Violations+c.Malformed+c.Version > 0 {
			w.t.Fatalf("after %x: %+v", rec[:min(len(rec), 30)], c)
		}
	}
}

// events takes what a Read that waits has got.
func (w *world) events() {
	for _, e := range w.out {
		if h, ok := owner(e.Stream); ok && h.posted != nil {
			h.unpost()
		}
	}
}

func owner(s *mux.Stream) (*half, bool) {
	if s == nil {
		return nil, false
	}
	h, ok := s.Owner.(*half)
	return h, ok
}

func (h *half) unpost() {
	n := h.s.Unpost()
	h.read = append(h.read, h.posted[:n]...)
	h.posted = nil
}

// control sends what is owed, or finds no room for it.
func (w *world) control(e *end) {
	for range w.rng.IntN(5) {
		c, ok := e.m.Next(w.other(e).node)
		if !ok {
			if e.m.Owes(w.other(e).node) {
				w.t.Fatal("nothing is next, and something is owed")
			}
			return
		}
		if w.rng.IntN(4) == 0 {
			e.m.Unsent(&c)
			return
		}
		w.send(e, c.Append(nil))
		w.out = e.m.Sent(&c, w.out[:0])
	}
}

// use does something with one end of a stream.
func (w *world) use(e *end, h *half) {
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		w.write(e, h)
	case 4, 5, 6, 7:
		w.read(h)
	case 8:
		if w.rng.IntN(8) == 0 && !h.closed {
			h.s.CloseWrite()
			h.writeClosed = h.s.State() != mux.Opening
		}
		if w.rng.IntN(50) == 0 && h.posted == nil {
			h.s.CloseRead()
			h.readClosed = true
		}
	case 9:
		if w.rng.IntN(10) == 0 && !h.closed {
			if h.posted != nil {
				h.unpost()
			}
			switch w.rng.IntN(8) {
			case 0:
				h.reset = h.s.State() == mux.Opened && !h.writeClosed
				h.s.Reset()
			case 1:
				w.cutOff(h)
				h.s.Close()
			default:
				h.s.Close()
			}
			h.closed = true
		}
	}
}

// cutOff fails a stream, if it is open at both ends.
func (w *world) cutOff(h *half) {
	opened := h.s.State() == mux.Opened
	h.reset = opened && !h.writeClosed
	w.out = h.s.CutOff(w.out[:0])
	failed := len(w.out) == 1 && w.out[0] == mux.Event{Kind: mux.Failed, Stream: h.s}
	if reason, _ := h.s.Failure(); failed != opened || opened && reason != mux.Aborted {
		w.t.Fatalf("stream %x: events %v, reason %v, and it was open at both ends: %v", h.s.Number(), w.out, reason, opened)
	}
}

func (w *world) write(e *end, h *half) {
	credit := h.s.Credit()
	if credit < 0 || credit > w.window || credit > 0 && (h.closed || h.writeClosed) {
		w.t.Fatalf("credit of %d bytes: %+v", credit, h)
	}
	if credit == 0 {
		return
	}
	data := make([]byte, 1+w.rng.IntN(min(credit, 2000)))
	for i := range data {
		data[i] = byte(len(h.sent) + i*i)
	}
	h.s.Sent(len(data) + 5)
	h.s.Unsent(5)
	w.send(e, append(h.s.AppendHeader(nil), data...))
	h.sent = append(h.sent, data...)
}

func (w *world) read(h *half) {
	if h.posted != nil || h.closed {
		return
	}
	b := make([]byte, 1+w.rng.IntN(3000))
	before := h.s.Buffered()
	if before > w.window {
		w.t.Fatalf("%d bytes are buffered, and the window is %d", before, w.window)
	}
	n := h.s.Read(b)
	if n != min(before, len(b)) {
		w.t.Fatalf("%d bytes of %d", n, before)
	}
	h.read = append(h.read, b[:n]...)
	w.changed = w.changed || n > 0
	if n == 0 && h.s.EOF() {
		h.finished = true
	} else if n == 0 && h.s.State() != mux.Ended {
		h.posted = b
		h.s.Post(b)
	}
}

// check compares a stream with its model.
func (w *world) check(settled bool) {
	for _, e := range w.ends {
		for _, h := range e.streams {
			if h.peer == nil {
				continue
			}
			if !bytes.HasPrefix(h.peer.sent, h.read) {
				w.t.Fatalf("node %d, stream %x: %d bytes were read that are not the first of the %d that were sent",
					e.node, h.s.Number(), len(h.read), len(h.peer.sent))
			}
			failed, _ := h.s.Failure()
			if !settled || h.closed || h.readClosed || failed != 0 {
				continue
			}
			if h.peer.reset {
				w.t.Fatalf("node %d, stream %x: was reset, and has not failed", e.node, h.s.Number())
			}
			if len(h.read) != len(h.peer.sent) {
				w.t.Fatalf("node %d, stream %x: %d of %d bytes were read: %+v", e.node, h.s.Number(), len(h.read), len(h.peer.sent), h)
			}
			if h.finished != (h.peer.closed || h.peer.writeClosed) {
				w.t.Fatalf("node %d, stream %x: EOF %v, and the peer has closed: %v", e.node, h.s.Number(), h.finished, h.peer.closed)
			}
		}
	}
}

// settle lets everything arrive and be read.
func (w *world) settle() {
	for w.changed = true; w.changed; {
		w.changed = false
		for _, e := range w.ends {
			for e.m.Owes(w.other(e).node) {
				w.control(e)
			}
			for len(w.wires[e.node]) > 0 {
				w.arrive(e)
			}
			for _, h := range e.streams {
				w.read(h)
			}
		}
	}
	for _, e := range w.ends {
		for _, h := range e.streams {
			if h.posted != nil {
				h.unpost()
			}
		}
	}
	w.check(true)
	for _, e := range w.ends {
		for _, h := range e.streams {
			if !h.closed {
				h.s.Close()
			}
		}
		if e.listening {
			e.listener.Close()
		}
	}
	for range 3 {
		for _, e := range w.ends {
			for e.m.Owes(w.other(e).node) {
				w.control(e)
			}
			for len(w.wires[e.node]) > 0 {
				w.arrive(e)
			}
		}
	}
	for _, e := range w.ends {
		if n := len(e.m.All()); n > 0 || e.m.Streams(w.other(e).node) != 0 {
			w.t.Fatalf("node %d: %d streams are left", e.node, n)
		}
	}
}

func (w *world) run(steps int) {
	for range steps {
		w.step()
		if w.rng.IntN(50) == 0 {
			w.check(false)
		}
	}
	w.settle()
}

// Whatever two nodes do, each stream carries each byte once and in order, within its window, ends
// where it was closed, and leaves nothing behind.
func TestMux_AgreesWithNaive(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			newWorld(t, seed).run(3000)
		})
	}
}

// FuzzMux draws the seed of a run.
func FuzzMux(f *testing.F) {
	f.Add(uint64(1), uint16(100))
	for seed := range uint64(8) {
		f.Add(seed, uint16(4000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { newWorld(t, seed).run(int(steps) % 5000) })
}
