package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// stamped is a link whose stamps a test makes.
type stamped struct {
	transport.Link
	poll  []transport.Frame
	sent  []transport.SentStamp
	came  transport.Stamp
	fault error
	on    bool
}

func (s *stamped) StampFrames(on bool) error { s.on = on; return s.fault }

func (s *stamped) SentStamps(out []transport.SentStamp) int {
	n := copy(out, s.sent)
	s.sent = s.sent[n:]
	return n
}

func (s *stamped) ReceivedStamp(int) transport.Stamp { return s.came }

func (s *stamped) Send(frames []transport.Frame) (int, error) { return len(frames), nil }

func (s *stamped) Poll(frames []transport.Frame) (int, error) {
	n := copy(frames, s.poll)
	s.poll = nil
	return n, nil
}

func (s *stamped) Wait(context.Context) error { return nil }

var (
	single = transport.Frame{Dst: transport.MAC{2, 0, 0, 0, 0, 1}}
	all    = transport.Frame{Dst: transport.Broadcast}
)

// A departure has its own stamps, and what came before it; frames for groups do not count.
func TestPassages(t *testing.T) {
	s := &stamped{}
	p, err := newPassages(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.note(true); err != nil || !s.on {
		t.Fatal(err)
	}
	in := make([]transport.Frame, 4)
	send := func(f transport.Frame, stamps ...transport.SentStamp) {
		s.sent = append(s.sent, stamps...)
		if n, err := p.Send([]transport.Frame{f}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	poll := func(stamp transport.Stamp, frames ...transport.Frame) {
		s.poll, s.came = frames, stamp
		if n, err := p.Poll(in); n != len(frames) || err != nil {
			t.Fatal(n, err)
		}
	}
	software := func(number uint32, us int) transport.SentStamp {
		return transport.SentStamp{Frame: number, Stamp: stampAt(us)}
	}
	poll(stampAt(1), single)
	send(all, software(0, 2))
	send(single, software(1, 3))
	send(all, software(2, 4))
	poll(stampAt(5), all, single)
	s.sent = []transport.SentStamp{ // the NIC's are late: of the frame before, and of this one
		{Frame: 0, Stamp: transport.Stamp{Hardware: at(2)}}, {Frame: 1, Stamp: transport.Stamp{Hardware: at(3)}},
	}
	sent, came := p.take()
	if sent.frames != 1 || sent.stamp != (transport.Stamp{Software: at(3), Hardware: at(3)}) ||
		sent.after.frames != 1 || sent.after.stamp != stampAt(1) || came.frames != 1 || came.stamp != stampAt(5) || !came.woken.IsZero() {
		t.Errorf("%+v, %+v", sent, came)
	}
	send(single)
	send(single)
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll(stampAt(6), single)
	poll(stampAt(7), single)
	sent, came = p.take()
	if sent.frames != 2 || came.frames != 2 || came.woken.IsZero() || came.polled.Before(came.woken) {
		t.Errorf("%+v, %+v", sent, came)
	}
	if err := p.note(false); err != nil || s.on {
		t.Fatal(err)
	}
	send(single, software(9, 9))
	poll(stampAt(9), single)
	if sent, came := p.take(); sent.frames != 0 || came.frames != 0 {
		t.Errorf("switched off, and noted %+v, %+v", sent, came)
	}
}

// A stamp of the NIC that comes after the Send, and ends a Wait, is taken then: it would end each
// from then on.
func TestPassages_LateStampEndsOneWait(t *testing.T) {
	s := &stamped{sent: []transport.SentStamp{{Frame: 5, Stamp: stampAt(1)}}}
	p, err := newPassages(s)
	if err == nil {
		err = p.note(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Send([]transport.Frame{single}); err != nil {
		t.Fatal(err)
	}
	s.sent = []transport.SentStamp{{Frame: 5, Stamp: transport.Stamp{Hardware: at(2)}}}
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if want := (transport.Stamp{Software: at(1), Hardware: at(2)}); len(s.sent) > 0 || p.last.stamp != want {
		t.Errorf("%d stamps are left, and the frame has %v, want %v", len(s.sent), p.last.stamp, want)
	}
}

// A link without stamps is refused when it is opened, and one that fails when it is asked to stamp.
func TestPassages_Faults(t *testing.T) {
	if _, err := newPassages(&plainLink{}); !errors.Is(err, transport.ErrNotSupported) {
		t.Errorf("%v, want %v", err, transport.ErrNotSupported)
	}
	failed := errors.New("no stamps today")
	p, err := newPassages(&stamped{fault: failed})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.note(true); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
}

// plainLink has no abilities.
type plainLink struct{ transport.Link }

func (plainLink) MAC() transport.MAC { return transport.MAC{} }

// A node answers for its records: whether it stamps, what went wrong, and what it has noted.
func TestTurnRecords(t *testing.T) {
	ask := func(r *turnRecords, request ...byte) string {
		b, ready := r.answer(request)
		return fmt.Sprintf("%q %v", b, ready)
	}
	if got := ask(&turnRecords{}, askNote, 1, 0); got != `"gives no stamps (give --breakdown there, too)" true` {
		t.Error(got)
	}
	s := &stamped{}
	p, err := newPassages(s)
	if err != nil {
		t.Fatal(err)
	}
	r := &turnRecords{link: p}
	if noted, _ := r.begin(); noted {
		t.Error("noted without being asked")
	}
	if got := ask(r, askNote, 1, 0); got != `"" true` || !s.on {
		t.Error(got, s.on)
	}
	pass := func(message ...byte) {
		s.poll, s.came = []transport.Frame{single}, transport.Stamp{Software: time.Now()}
		if _, err := p.Poll(make([]transport.Frame, 1)); err != nil {
			t.Fatal(err)
		}
		noted, called := r.begin()
		if !noted {
			t.Error("not noted")
		}
		s.sent = []transport.SentStamp{{Stamp: transport.Stamp{Software: time.Now()}}}
		if _, err := p.Send([]transport.Frame{single}); err != nil {
			t.Fatal(err)
		}
		r.add(called, message)
	}
	pass(0, 0, 1, 2, 9)
	pass(1)               // has no number
	ask(r, askNote, 1, 0) // repeated: it keeps what there is
	b, _ := r.answer([]byte{askRecords})
	if len(b) != recordLen {
		t.Fatalf("%d bytes of records", len(b))
	}
	if number, u := parseRecord(b); number != 0x102 || u.receive < 0 || u.send < 0 || u.hardware != 0 {
		t.Errorf("%d %+v", number, u)
	}
	ask(r, askNote, 0, 0)
	if b, _ := r.answer([]byte{askRecords}); len(b) != 0 || s.on {
		t.Errorf("%d bytes of records of the turn before", len(b))
	}
	s.fault = errors.New("no stamps today")
	if got := ask(r, askNote, 1, 1); got != `"--breakdown: no stamps today" true` {
		t.Error(got)
	}
	if noted, _ := r.begin(); noted {
		t.Error("noted without stamps")
	}
	if got := ask(r, askNote); got != `"" false` {
		t.Error(got)
	}
}
