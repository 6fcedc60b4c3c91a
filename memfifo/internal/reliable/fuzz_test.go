package reliable

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// FuzzParse: put writes what Parse has read.
func FuzzParse(f *testing.F) {
	f.Add(make([]byte, HeaderLen))
	b := make([]byte, HeaderLen)
	(&Header{Kind: Data, Src: 1, Dst: 2, Sequence: 3, Ack: 4}).put(b)
	f.Add(b)
	b = make([]byte, maxAckLen)
	(&Header{Kind: Ack, Src: 1, Dst: 2, Ack: 4, SACK: SACK{3: 5}}).put(b)
	f.Add(b)
	for kind := Data; kind < kinds; kind++ {
		long := make([]byte, 100)
		h := Header{Kind: kind, Src: 1, Dst: 2, SACK: SACK{1: 5}}
		for _, v := range fuzzseed.Variants(long[:h.put(long)]) {
			f.Add(v)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		if Parse(b, &h) != nil {
			return
		}
		var again [maxAckLen]byte
		if n := h.put(again[:]); string(again[:n]) != string(b[:n]) {
			t.Errorf("%x, then %x", b[:n], again[:n])
		}
	})
}

// script is two ends; bytes deliver, duplicate, drop and reorder their frames.
type script struct {
	*pair
	held     [2][Lanes]bool
	restarts uint32
}

// maxInTransit bounds the frames in transit; the oldest are lost.
const maxInTransit = 512

// do runs the event of one byte: its three highest bits say what, the others at which end and how.
func (s *script) do(b byte) {
	i, which := int(b&1), int(b>>1&0xf)
	e := s.ends[i]
	l := Lane(which & 1)
	switch b >> 5 {
	case 0: // some records
		for range 1 + which*which/4 {
			e.write(s.now, l, recordHeader+which*5)
		}
	case 1:
		s.send(i)
		if n := len(s.inTransit[1-i]); n > maxInTransit {
			s.inTransit[1-i] = s.inTransit[1-i][n-maxInTransit:]
		}
	case 2: // some frames, in order
		for range 1 + which {
			s.deliverNth(i, 0, true)
		}
	case 3: // one, out of order or twice
		s.deliverNth(i, which*which, which%2 == 0)
	case 4: // lost
		if n := len(s.inTransit[i]); n > 0 {
			k := which * which % n
			s.inTransit[i] = append(s.inTransit[i][:k], s.inTransit[i][k+1:]...)
		}
	case 5:
		if s.held[i][l] = !s.held[i][l]; !s.held[i][l] {
			e.resume(l)
		}
	case 6:
		s.now = s.now.Add(time.Duration(which*which) * 500 * time.Microsecond) // 0.1 s at most
		for _, e := range s.ends {
			e.advance(s.now)
		}
	case 7:
		if which == 0 { // restart
			s.restarts++
			if b>>4&1 == 1 { // with a bye
				e.c.Close()
				s.send(i)
			}
			s.restart(i, 100+s.restarts)
			s.followHolds(i)
		} else if which == 1 { // the ring is full
			e.c.Refused(0, len(e.next(s.now)))
		}
	}
	for _, e := range s.ends {
		e.check()
	}
	s.ok()
}

// followHolds has an end hold the lanes of s.held.
func (s *script) followHolds(i int) {
	s.held[i] = [Lanes]bool{}
	s.ends[i].holds = func(l Lane) bool { return s.held[i][l] }
}

func (s *script) deliverNth(to, k int, once bool) {
	n := len(s.inTransit[to])
	if n == 0 {
		return
	}
	k %= n
	b := s.inTransit[to][k]
	if once {
		s.inTransit[to] = append(s.inTransit[to][:k], s.inTransit[to][k+1:]...)
	}
	s.ends[to].receive(s.now, b)
}

// finish delivers everything: after any script, both ends come to rest and can talk.
func (s *script) finish() {
	for i, e := range s.ends {
		s.held[i] = [Lanes]bool{}
		for l := range Lane(Lanes) {
			e.resume(l)
		}
	}
	for range 3 {
		s.pass(5 * time.Second)
		for i := range s.ends {
			s.ends[i].write(s.now, Requests, 20)
			s.ends[i].write(s.now, Replies, 20)
		}
	}
	s.pass(5 * time.Second)
	for i, e := range s.ends {
		e.check()
		for l := range Lane(Lanes) {
			if st := s.streams[e.out[l]]; st.sent == 0 || st.sent != st.got {
				s.t.Errorf("%d, lane %d: %+v", i, l, st)
			}
		}
		if at, ok := e.c.Deadline(); ok || !e.done() || len(e.pool.out) > 0 {
			s.t.Errorf("%d at the end: deadline %v %t, done %t, %d buffers", i, at.Since(), ok, e.done(), len(e.pool.out))
		}
	}
	s.ok()
}

func newScript(t *testing.T) *script {
	s := &script{pair: newPair(t, 120)}
	s.start = ^uint32(0) - 20
	for i := range s.ends {
		s.ends[i] = s.newEnd(i, 1-i, 128, uint32(i+1), s.start)
		s.followHolds(i)
	}
	return s
}

// FuzzConn runs bytes as a script.
func FuzzConn(f *testing.F) {
	f.Add([]byte{0x1e, 0x20, 0x41, 0x21, 0x40, 0x20, 0x41})
	f.Add([]byte{0x1e, 0x20, 0x41, 0x21, 0x40, 0x20, 0x41, 0x1e, 0x1f, 0x20, 0x21, 0xa1, 0x7f, 0x65, 0xde, 0x20, 0xe0, 0x00, 0x20, 0x5f, 0xa1})
	f.Fuzz(func(t *testing.T, events []byte) {
		s := newScript(t)
		for _, b := range events[:min(len(events), 400)] {
			s.do(b)
		}
		s.finish()
	})
}

// FuzzHostile sends arbitrary frames to an open connection. With stale incarnations they do no
// harm.
func FuzzHostile(f *testing.F) {
	f.Add([]byte{1, 0, 0, 5}, false)
	f.Add(make([]byte, 200), true)
	f.Fuzz(func(t *testing.T, b []byte, current bool) {
		p := newPair(t, 120).open()
		a, e := p.ends[0], p.ends[1]
		for range 50 {
			a.write(p.now, Requests, 100)
			e.write(p.now, Replies, 100)
		}
		p.send(0)
		p.send(1)
		p.inTransit[1] = append(p.inTransit[1][:10], p.inTransit[1][11:]...)
		p.deliver(1)
		for len(b) > 0 {
			n := min(1+int(b[0]), len(b))
			frame := append([]byte(nil), b[1:n]...)
			b = b[n:]
			if current && len(frame) >= 12 {
				binary.BigEndian.PutUint32(frame[4:], a.c.local)
				binary.BigEndian.PutUint32(frame[8:], e.c.local)
			}
			var h Header
			if Parse(frame, &h) != nil {
				continue
			}
			if e.c.Handle(p.now, &h, frame[HeaderLen:]) == Deliver && e.c.lanes[h.Lane].rest != nil {
				t.Fatal("delivers a held frame")
			} else if !current {
				p.send(1)
			}
			e.check()
		}
		p.ok()
		if !current { // nothing has changed
			p.pass(time.Second)
			if s := p.streams[a.out[Requests]]; !a.done() || s.got != s.sent || a.restarts+e.restarts > 0 {
				t.Errorf("%+v, %d and %d restarts", s, a.restarts, e.restarts)
			}
		}
	})
}
