package reliable

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// world is one state of a search: two ends and the frames between them, with what may still happen.
// Ends and frames are shared with the worlds before it until they change.
type world struct {
	space
	now       monotime.Time
	ends      [2]*searchEnd
	inTransit [2][][]byte // by receiver
	lives     uint32      // incarnations given out
	streams   []searchStream
	faults    int // so far: restarts
	wrong     string
	path      *step
}

// searchEnd is an end, with a program.
type searchEnd struct {
	c    *Conn
	out  int // the stream that it sends
	in   int // that it receives; -1: none yet
	held bool
	told int // events that ended its connection
}

// searchStream is the records that one incarnation sends to another one: a stream's number, and
// the record's.
type searchStream struct {
	from, lane byte
	sent, got  byte
	begun      bool // the first record has come
}

const searchRecord = 2 // bytes

func newWorld(s space) *world {
	s.perFrame = max(s.perFrame, 1)
	w := &world{space: s, now: monotime.At(time.Second)}
	for i := range w.ends {
		w.ends[i] = &searchEnd{}
		w.start(i)
	}
	return w
}

// start gives an end a new life.
func (w *world) start(i int) {
	w.lives++
	e := w.ends[i]
	size := HeaderLen + w.perFrame*searchRecord
	e.c = New(Config{
		Incarnation: w.lives, FrameSize: size, Headroom: headroom, PeerTimeout: DefaultPeerTimeout,
		Alloc: func(n int) Buffer { return Buffer{Bytes: make([]byte, n)} }, Free: func(Buffer) {}, Counters: new(Counters),
	})
	e.held = false
	w.newStream(i)
}

func (w *world) lane(from int) Lane {
	if w.replies && from == 1 {
		return Replies
	}
	return Requests
}

// newStream begins one, after a failure.
func (w *world) newStream(i int) {
	w.streams = append(slices.Clone(w.streams), searchStream{from: byte(i), lane: w.lane(i)})
	w.ends[i].out, w.ends[i].in = len(w.streams)-1, -1
}

// spareConns are connections of worlds that are not needed.
var spareConns []*Conn

// clone copies a connection. What it has received is not written any more, so the copy shares it.
func (c *Conn) clone() *Conn {
	n := new(Conn)
	if k := len(spareConns) - 1; k >= 0 {
		n, spareConns = spareConns[k], spareConns[:k]
	}
	*n = *c
	for l := range n.lanes {
		s := &n.lanes[l].sender
		for q := s.una; before(q, s.queued+1); q++ {
			if p := s.packet(q); p.buf.Bytes != nil {
				p.buf = Buffer{Bytes: slices.Clone(p.buf.Bytes)}
			}
		}
	}
	return n
}

const (
	writing    = "writes at"
	delivering = "arrives at"
	doubling   = "arrives, and a copy stays, at"
	holding    = "arrives, and is held, at"
	losing     = "is lost, to"
	resuming   = "goes on, at"
	ticking    = "a deadline passes at"
	leaving    = "leaves and restarts:"
	restarting = "restarts:"
)

// moves are the events that may come next.
func (w *world) moves() (all []move) {
	for i, e := range w.ends {
		add := func(is bool, kind string, k int) {
			if is {
				all = append(all, move{kind, i, k})
			}
		}
		add(w.records[i] > 0, writing, 0)
		for k := range w.inTransit[i] {
			if k > 0 && w.overtakings == 0 {
				break
			}
			add(true, delivering, k)
			add(k == 0 && w.losses > 0, losing, k)
			add(k == 0 && w.duplicates > 0, doubling, k)
			add(k == 0 && w.holds > 0 && !e.held, holding, k)
		}
		add(e.held, resuming, 0)
		_, due := e.c.Deadline()
		add(due && (w.quiet() || w.early > 0), ticking, 0)
		add(w.restarts > 0, leaving, 0)
		add(w.restarts > 0, restarting, 0)
	}
	return all
}

// quiet reports whether nothing is on its way.
func (w *world) quiet() bool { return len(w.inTransit[0])+len(w.inTransit[1]) == 0 }

// after returns the world after a move.
func (w *world) after(m move) *world {
	n := *w
	n.path = &step{w.path, m}
	e := *w.ends[m.to]
	e.c = e.c.clone()
	n.ends[m.to] = &e
	n.do(m)
	return &n
}

func (w *world) do(m move) {
	e := w.ends[m.to]
	switch m.kind {
	case writing:
		w.records[m.to]--
		w.write(m.to)
	case delivering:
		if m.k > 0 {
			w.overtakings--
		}
		w.receive(m.to, w.take(m.to, m.k), false)
	case doubling:
		w.duplicates--
		w.receive(m.to, w.inTransit[m.to][0], false)
	case holding:
		w.holds--
		w.receive(m.to, w.take(m.to, 0), true)
	case losing:
		w.losses--
		w.take(m.to, 0)
	case resuming:
		w.resume(m.to)
	case ticking:
		if !w.quiet() {
			w.early--
		}
		w.tick(m.to)
	case leaving, restarting:
		w.restarts--
		if m.kind == leaving {
			e.c.Close()
			w.send(m.to)
		}
		w.start(m.to)
		w.faults++
	}
	w.send(m.to)
	if wrong := w.ends[m.to].c.broken(); wrong != "" {
		w.fail("%s", wrong)
	}
	if w.ends[m.to].c.stuck() {
		w.fail("%d has something to send, and neither a frame nor a deadline", m.to)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// take takes a frame off those in transit.
func (w *world) take(to, k int) []byte {
	frames := w.inTransit[to]
	w.inTransit[to] = slices.Concat(frames[:k], frames[k+1:])
	return frames[k]
}

func (w *world) write(i int) {
	e := w.ends[i]
	b := e.c.Reserve(w.lane(i), searchRecord)
	w.streams = slices.Clone(w.streams)
	s := &w.streams[e.out]
	b[0], b[1] = byte(e.out), s.sent
	s.sent++
}

// send has an end send all that it may.
func (w *world) send(i int) {
	e := w.ends[i]
	var frames [MaxBatch][]byte
	to := slices.Clip(w.inTransit[1-i])
	for n := e.c.NextBatch(w.now, &frames); n > 0; n = e.c.NextBatch(w.now, &frames) {
		for _, b := range frames[:n] {
			to = append(to, bytes.Clone(b[headroom:]))
		}
		if len(to) > 100 {
			w.fail("%d sends without end", i)
			break
		}
	}
	w.inTransit[1-i] = to
}

func (w *world) receive(i int, b []byte, hold bool) {
	e := w.ends[i]
	w.now = w.now.Add(time.Microsecond)
	var h Header
	if err := Parse(b, &h); err != nil {
		w.fail("%v: %x", err, b)
		return
	}
	switch event := e.c.Handle(w.now, &h, b[HeaderLen:]); event {
	case Deliver:
		w.deliver(i, h.Lane, b[HeaderLen:], hold)
		w.deliverBuffered(i)
	case PeerRestarted, PeerClosed:
		w.ended(i, event)
	}
}

// ended notes that a connection has: there must be a reason, and not for ever.
func (w *world) ended(i int, event Event) {
	e := w.ends[i]
	if e.told++; e.told > 2*w.faults {
		w.fail("%d: event %d, of %d restarts", i, event, w.faults)
	}
	e.held = false
	w.newStream(i)
}

// deliver reads records; with hold all but the last one.
func (w *world) deliver(i int, l Lane, b []byte, hold bool) {
	e := w.ends[i]
	for ; len(b) > 0; b = b[searchRecord:] {
		if hold && len(b) == searchRecord {
			e.held = true
			e.c.Hold(l, b)
			return
		}
		w.read(i, l, b)
	}
	e.c.Delivered(l)
}

func (w *world) deliverBuffered(i int) {
	l := w.lane(1 - i)
	for !w.ends[i].held && w.wrong == "" {
		b, ok := w.ends[i].c.Buffered(l)
		if !ok {
			return
		}
		w.deliver(i, l, b, false)
	}
}

func (w *world) resume(i int) {
	w.ends[i].held = false
	w.deliverBuffered(i)
}

// read checks a record: the next one of the stream that this end receives, or the first one of a
// stream that nobody has received.
func (w *world) read(i int, l Lane, b []byte) {
	e, id := w.ends[i], int(b[0])
	w.streams = slices.Clone(w.streams)
	s := &w.streams[id]
	if e.in < 0 && !s.begun && b[1] == 0 {
		e.in, s.begun = id, true
	}
	if e.in != id || int(s.from) != 1-i || s.lane != l || b[1] != s.got || s.got >= s.sent {
		w.fail("%d takes record %d of stream %d, and receives stream %d: %+v", i, b[1], id, e.in, *s)
	}
	s.got++
}

// tick lets the deadline of an end pass.
func (w *world) tick(i int) {
	e := w.ends[i]
	if at, _ := e.c.Deadline(); at.After(w.now) {
		w.now = at
	}
	if event := e.c.Advance(w.now); event != Nothing {
		w.fail("%d: event %d, and the peer was never silent", i, event)
	}
}

// settles goes on without faults: both ends come to rest, and what was sent has come. Then they
// talk. The first record may be for a former incarnation: the sender is told, and sends another.
func (w *world) settles() (wrong string) {
	n := *w
	for i, e := range n.ends {
		own := *e
		own.c = e.c.clone()
		n.ends[i] = &own
	}
	defer func() {
		for _, e := range n.ends {
			spareConns = append(spareConns, e.c)
		}
	}()
	n.rest()
	for i := range n.ends {
		for range 2 {
			told := n.ends[i].told
			n.write(i)
			n.send(i)
			if n.rest(); n.ends[i].told == told {
				break
			}
		}
	}
	return n.wrong
}

// rest runs until nothing is left to happen. An end that was not told of a failure has sent what it
// has written.
func (w *world) rest() {
	const most = 300
	for range most {
		for to := range w.ends {
			for len(w.inTransit[to]) > 0 && w.wrong == "" {
				w.receive(to, w.take(to, 0), false)
				w.send(to)
			}
			if w.ends[to].held {
				w.resume(to)
				w.send(to)
			}
		}
		if w.wrong != "" {
			return
		}
		at0, ok0 := w.ends[0].c.Deadline()
		at1, ok1 := w.ends[1].c.Deadline()
		switch {
		case ok0 && (!ok1 || !at1.Before(at0)):
			w.tick(0)
			w.send(0)
		case ok1:
			w.tick(1)
			w.send(1)
		case w.quiet():
			w.rested()
			return
		}
	}
	w.fail("no rest after %d deadlines", most)
}

func (w *world) rested() {
	for i, e := range w.ends {
		s := &w.streams[e.out]
		if !e.c.AllAcked(Requests) || !e.c.AllAcked(Replies) || s.got != s.sent {
			w.fail("at rest %d has sent %d records, %d have come, all acknowledged: %t", i, s.sent, s.got,
				e.c.AllAcked(Requests) && e.c.AllAcked(Replies))
		}
	}
}
