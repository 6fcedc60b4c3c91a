package reliable

import (
	"encoding/binary"
	"slices"
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
			room := e.c.Available(l, recordHeader+which*5)
			if is := e.write(s.now, l, recordHeader+which*5); is != (room > 0) {
				s.t.Errorf("room for %d bytes, and a record of %d is taken: %t", room, recordHeader+which*5, is)
			}
		}
	case 1:
		if s.send(i); e.c.state == Open && (e.c.NeedsPump() || e.c.Unsent(l) > 0 && e.c.lanes[l].canStream() && !e.c.lanes[l].holds()) {
			s.t.Errorf("%d has sent all, and %d frames are left that may go", i, e.c.Unsent(l))
		}
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
		s.doRarely(which, i)
	}
	for _, e := range s.ends {
		e.check()
	}
	s.ok()
}

// doRarely runs the events of case 7.
func (s *script) doRarely(which, i int) {
	e := s.ends[i]
	switch which {
	case restartNow, leaveAndRestart:
		s.restarts++
		if which == leaveAndRestart {
			e.c.Close()
			s.send(i)
		}
		s.restart(i, 100+s.restarts)
		s.followHolds(i)
	case ringFull:
		e.c.Refused(0, len(e.next(s.now)))
	case ringHalfFull:
		frames := e.next(s.now)
		k := len(frames) / 2
		for _, b := range frames[:k] {
			s.inTransit[1-i] = append(s.inTransit[1-i], slices.Clone(b[headroom:]))
		}
		e.c.Refused(k, len(frames))
	case uncork:
		for l := range Lane(Lanes) {
			e.c.Uncork(l)
		}
	case policyNone, policyMay, policyWill:
		e.c.SetAckPolicy(AckPolicy(which - policyNone))
	case cutOff:
		s.lossy(func([]byte) bool { return true })
	case blackHole:
		s.lossy(func(b []byte) bool { return len(b) > HeaderLen })
	}
}

// lossy lets a second pass, in which some frames are lost.
func (s *script) lossy(lost func(b []byte) bool) {
	for until := s.now.Add(time.Second); s.now.Before(until); {
		sent := s.send(0) + s.send(1)
		for to := range s.ends {
			s.inTransit[to] = slices.DeleteFunc(s.inTransit[to], lost)
			s.deliver(to)
		}
		if sent > 0 {
			continue
		}
		next := until
		for _, e := range s.ends {
			if at, ok := e.c.Deadline(); ok && at.Before(next) {
				next = at
			}
		}
		s.now = next
		for _, e := range s.ends {
			e.advance(s.now)
		}
	}
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
		s.settle()
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
	for _, script := range scripts() {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		s := newScript(t)
		if len(events)%2 == 1 {
			s.sendTrains(20)
		}
		for _, b := range events[:min(len(events), 400)] {
			s.do(b)
		}
		s.finish()
	})
}

// sendTrains has both ends keep full frames until a few go together, so many at most.
func (p *pair) sendTrains(most int) {
	for _, e := range p.ends {
		e.c.cfg.Train = most
		for l := range e.c.lanes {
			e.c.lanes[l].train = uint32(min(trainFrames, most))
		}
	}
}

// FuzzHostile sends arbitrary frames to an open connection. With stale incarnations they do no
// harm.
func FuzzHostile(f *testing.F) {
	f.Add([]byte{1, 0, 0, 5}, false)
	f.Add(make([]byte, 200), true)
	for _, frames := range hostileFrames() {
		f.Add(frames, true)
		f.Add(frames, false)
	}
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
			} else if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == e.c.local {
				frame[8] = 77 // it was a good guess
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
