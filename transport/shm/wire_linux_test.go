package shm_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// take polls until there are n frames, and returns their payloads.
func take(t *testing.T, l *shm.Link, n int) (payloads []string) {
	t.Helper()
	until(t, l, func(f *transport.Frame) { payloads = append(payloads, string(f.Payload[:3])) },
		func() bool { return len(payloads) >= n })
	return payloads
}

func text(dst transport.MAC, s string) transport.Frame {
	return transport.Frame{Dst: dst, Payload: []byte(s)}
}

// Three stations on one wire, of which two are on one host: each is reached by what is nearest, and
// a multicast comes once.
func TestWire_TheNearestWay(t *testing.T) {
	w, here, there := wires(t, 3), shm.Folder(t), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: here, Wire: w[0]}), open(t, shm.Config{Dir: here, Wire: w[1]})
	c := open(t, shm.Config{Dir: there, Wire: w[2]})
	if a.MAC() != w[0].MAC() || a.MTU() != w[0].MTU() || a.Name() != w[0].Name() || a.Unwrap() != transport.Link(w[0]) {
		t.Errorf("%s has not its wire's properties", a.Name())
	}
	sent := []transport.Frame{
		text(b.MAC(), "b 1"), text(c.MAC(), "c 1"), text(c.MAC(), "c 2"), text(transport.Broadcast, "all"),
		text(b.MAC(), "b 2"), text(transport.Broadcast, "one"), text(c.MAC(), "c 3"),
	}
	if n, err := a.Send(sent); n != len(sent) || err != nil {
		t.Fatal(n, err)
	}
	if n := w[0].Counters().TxFrames; n != 5 {
		t.Errorf("%d frames went by the wire, want the 3 for c and the 2 for all", n)
	}
	if got, want := take(t, b, 4), []string{"b 1", "all", "b 2", "one"}; !slices.Equal(got, want) {
		t.Errorf("b has %q, want %q", got, want)
	}
	if got, want := take(t, c, 5), []string{"c 1", "c 2", "all", "one", "c 3"}; !slices.Equal(got, want) {
		t.Errorf("c has %q, want %q", got, want)
	}
	if n, err := c.Send([]transport.Frame{text(b.MAC(), "b 3")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := a.Send([]transport.Frame{text(transport.Broadcast, "2nd")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.Send([]transport.Frame{text(b.MAC(), "b 4")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got, want := take(t, b, 3), []string{"2nd", "b 3", "b 4"}; !slices.Equal(got, want) {
		t.Errorf("b has %q, want %q", got, want)
	}
	if n, err := b.Poll(make([]transport.Frame, 8)); n != 0 || err != nil {
		t.Errorf("b has %d more frames, %v", n, err)
	}
	if tx, rx := a.Counters(), b.Counters(); tx.TxFrames != 8 || rx.RxFrames != 7 {
		t.Errorf("a counts %d, b %d; want 8 sent, and 7 received", tx.TxFrames, rx.RxFrames)
	}
}

// A way through memory that ends is one over the wire from then on, and memory again once the
// stations meet again.
func TestWire_FallsBack(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	shared := &unclosed{Link: w[1]}
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: shared})
	exchange(t, a, b)
	if n := w[0].Counters().TxFrames; n != 0 {
		t.Fatalf("%d frames went by the wire", n)
	}
	if err := b.Close(); err != nil { // as if its process had ended; its successor has the same NIC
		t.Fatal(err)
	}
	until(t, a, none, alone(a))
	if n, err := a.Send([]transport.Frame{text(w[1].MAC(), "by the wire")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	var got [1]transport.Frame
	if n, err := w[1].Poll(got[:]); n != 1 || err != nil || string(got[0].Payload[:11]) != "by the wire" {
		t.Errorf("%d frames by the wire, %v", n, err)
	}
	b = open(t, shm.Config{Dir: dir, Wire: shared})
	exchange(t, a, b)
	if n := w[0].Counters().TxFrames; n != 1 {
		t.Errorf("%d frames went by the wire, want 1", n)
	}
}

// unclosed is a link that Close leaves open, until the test ends.
type unclosed struct{ transport.Link }

func (u *unclosed) Close() error { return nil }

// A station that writes what cannot be is reached by the wire.
func TestWire_CutOff(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, Wire: w[0]})
	s := meet(t, dir, l, nil) // it has address 66
	s.hear()
	to66 := []transport.Frame{text(mac(66), "one")}
	if n, err := l.Send(to66); n != 1 || err != nil || w[0].Counters().TxFrames != 0 {
		t.Fatalf("%d, %v, and %d by the wire", n, err, w[0].Counters().TxFrames)
	}
	s.ring[256] = 0xff
	records.NewBell(s.theirs).Ring(s.bit)
	for begun := time.Now(); !alone(l)(); time.Sleep(time.Millisecond) { // of what was cut off no Wait tells
		if n, err := l.Poll(make([]transport.Frame, 1)); n > 0 || err != nil || time.Since(begun) > patience {
			t.Fatalf("%d frames, %v, and it is met after %v", n, err, time.Since(begun))
		}
	}
	if n, err := l.Send(to66); n != 1 || err != nil || w[0].Counters().TxFrames != 1 {
		t.Errorf("%d, %v, and %d by the wire", n, err, w[0].Counters().TxFrames)
	}
}

// Neither way keeps the other one from being received, however much comes by it.
func TestWire_BothAreReceived(t *testing.T) {
	w, dir := wires(t, 3), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	for _, size := range []int{1, 4} {
		came := map[string]int{}
		for range 64 { // as much by each as one call can take
			for range size {
				if _, err := b.Send([]transport.Frame{text(a.MAC(), "mem")}); err != nil {
					t.Fatal(err)
				}
				if _, err := w[2].Send([]transport.Frame{text(a.MAC(), "wire")}); err != nil {
					t.Fatal(err)
				}
			}
			frames := make([]transport.Frame, size)
			n, err := a.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames[:n] {
				came[string(f.Payload[:3])]++
			}
		}
		if came["mem"] < 20*size || came["wir"] < 20*size {
			t.Errorf("polls of %d: %v", size, came)
		}
		take(t, a, 64*size) // the rest
	}
}

// polled is a wire that counts how often it is polled.
type polled struct {
	transport.Link
	times int
}

func (p *polled) Poll(frames []transport.Frame) (int, error) {
	p.times++
	return p.Link.Poll(frames)
}

// A Poll polls the wire once at most: the frames that it has are views until the wire's next one.
func TestWire_IsPolledOnce(t *testing.T) {
	w, dir := wires(t, 3), shm.Folder(t)
	wire := &polled{Link: w[0]}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	for _, c := range []struct{ memory, wire, room int }{{0, 0, 1}, {1, 0, 1}, {0, 1, 2}, {2, 0, 2}, {0, 2, 8}, {1, 1, 8}, {0, 0, 8}} {
		for range c.memory {
			if _, err := b.Send([]transport.Frame{text(a.MAC(), "mem")}); err != nil {
				t.Fatal(err)
			}
		}
		for range c.wire {
			if _, err := w[2].Send([]transport.Frame{text(a.MAC(), "wire")}); err != nil {
				t.Fatal(err)
			}
		}
		wire.times = 0
		n, err := a.Poll(make([]transport.Frame, c.room))
		if n != c.memory+c.wire || err != nil || wire.times > 1 {
			t.Errorf("%+v: %d frames, %v, of %d polls of the wire", c, n, err, wire.times)
		}
	}
}

// Wait sleeps when both ways are empty, however few frames were polled at a time.
func TestWire_WaitSleeps(t *testing.T) {
	w, dir := wires(t, 3), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: w[0]}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	for _, size := range []int{1, 8} {
		for range 3 {
			if _, err := w[2].Send([]transport.Frame{text(a.MAC(), "wire")}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Send([]transport.Frame{text(a.MAC(), "mem")}); err != nil {
				t.Fatal(err)
			}
		}
		frames := make([]transport.Frame, size)
		for came, empty := 0, 0; came < 6 || empty < 3; { // the last polls give memory back, and find nothing
			n, err := a.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			if came += n; n == 0 {
				empty++
			}
		}
		early := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		for ctx.Err() == nil {
			if err := a.Wait(ctx); err == nil {
				early++
				if _, err := a.Poll(frames); err != nil {
					t.Fatal(err)
				}
			}
		}
		cancel()
		if early > 4 {
			t.Errorf("with polls of %d Wait ended %d times, with nothing there", size, early)
		}
	}
}

// Wait sleeps again once what the wire had is polled, also if it was the wire that ended the last one.
func TestWire_WaitSleepsAgain(t *testing.T) {
	w := wires(t, 2)
	a := open(t, shm.Config{Dir: shm.Folder(t), Wire: w[0]})
	for range 3 {
		if _, err := w[1].Send([]transport.Frame{text(a.MAC(), "wire")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := a.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		take(t, a, 1)
		early := 0
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Millisecond)
		for ctx.Err() == nil {
			if err := a.Wait(ctx); err == nil {
				early++
				if n, err := a.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
					t.Fatal(n, err)
				}
			}
		}
		cancel()
		if early > 2 {
			t.Errorf("Wait ended %d times, with nothing there", early)
		}
	}
}

// counting is a wire that has counted.
type counting struct{ transport.Link }

func (c *counting) Counters() transport.Counters {
	return transport.Counters{TxFrames: 1, TxFragmented: 2, RxFrames: 3, RxDropped: 4, RxMalformed: 5}
}

// What the wire alone can count is among the link's counters; what both count is not counted twice.
func TestWire_Counters(t *testing.T) {
	l := open(t, shm.Config{Dir: shm.Folder(t), Wire: &counting{Link: wires(t, 1)[0]}})
	if got, want := l.Counters(), (transport.Counters{TxFragmented: 2, RxDropped: 4, RxMalformed: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// masker is a wire that notes how it is masked.
type masker struct {
	transport.Link
	calls []bool
}

func (m *masker) MaskWakeups(on bool) { m.calls = append(m.calls, on) }

// What masks a link's wake-ups masks those of its wire.
func TestWire_IsMasked(t *testing.T) {
	wire := &masker{Link: wires(t, 1)[0]}
	a := open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
	a.MaskWakeups(true)
	a.MaskWakeups(false)
	if !slices.Equal(wire.calls, []bool{true, false}) {
		t.Errorf("masked: %v", wire.calls)
	}
}

// roamer is a wire whose stations may move.
type roamer struct {
	transport.Link
	calls []string
}

func (r *roamer) Authenticates(int)                          { r.calls = append(r.calls, "authenticates") }
func (r *roamer) Roamed() bool                               { return false }
func (r *roamer) Departure(*transport.Frame) transport.Place { return transport.Place{} }
func (r *roamer) CameFrom(*transport.Frame) transport.Place  { return transport.Place{} }
func (r *roamer) Answered(*transport.Frame, bool) bool       { return true }
func (r *roamer) Introduced([]byte)                          {}
func (r *roamer) Requests() []transport.Request              { return nil }
func (r *roamer) Authentic(f *transport.Frame) {
	r.calls = append(r.calls, "authentic "+f.Src.String())
}

func (r *roamer) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		r.calls = append(r.calls, "answers "+frames[i].Answers.Src.String())
	}
	return len(frames), nil
}

// What came by the wire is answered there, to where it came from; what came through memory goes back
// through memory.
func TestWire_Roams(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &roamer{Link: w[0]}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	outer, ok := transport.As[transport.Roamer](a)
	if !ok {
		t.Fatal("the link is no Roamer, where its wire is")
	}
	outer.Authenticates(0)
	for _, src := range []transport.MAC{mac(7), b.MAC()} {
		f := transport.Frame{Src: src, Dst: a.MAC()}
		outer.Authentic(&f)
		answer := text(src, "answer")
		answer.Answers = &f
		if n, err := a.Send([]transport.Frame{answer}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	want := []string{"authenticates", "authentic " + mac(7).String(), "answers " + mac(7).String(), "authentic " + b.MAC().String()}
	if !slices.Equal(wire.calls, want) {
		t.Errorf("%q, want %q", wire.calls, want)
	}
	if got := take(t, b, 1); got[0] != "ans" {
		t.Errorf("%q", got)
	}
	if _, ok := transport.As[transport.Roamer](open(t, shm.Config{Dir: shm.Folder(t)})); ok {
		t.Error("stations of a segment do not move")
	}
}

// typed is a wire that receives frames of one EtherType alone.
type typed struct{ transport.Link }

func (typed) EtherType() transport.EtherType { return 0x88b6 }

// Around a wire for one EtherType a link receives frames of that one, as it says, by both ways.
func TestWire_OfOneEtherType(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	a, b := open(t, shm.Config{Dir: dir, Wire: typed{w[0]}}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	if f, ok := transport.As[transport.TypeFilter](a); !ok || f.EtherType() != 0x88b6 {
		t.Fatal("the link does not say that it has one EtherType")
	}
	frames := []transport.Frame{text(a.MAC(), "other"), text(a.MAC(), "this"), text(transport.Broadcast, "other"), text(transport.Broadcast, "that")}
	frames[1].EtherType, frames[3].EtherType = 0x88b6, 0x88b6
	if n, err := b.Send(frames); n != len(frames) || err != nil {
		t.Fatal(n, err)
	}
	if got, want := take(t, a, 2), []string{"thi", "tha"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The link's wire is looked for in it, with what it can do.
func TestWire_Abilities(t *testing.T) {
	a, _ := linktest.Pipe()
	l := open(t, shm.Config{Dir: shm.Folder(t), Wire: a})
	if p, ok := transport.As[*linktest.End](l); !ok || p != a {
		t.Error("As does not find the wire")
	}
	if alone := open(t, shm.Config{Dir: shm.Folder(t)}); alone.Unwrap() != nil {
		t.Error("a link that stands alone has a wire")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
}

// Frames of a link that stands alone stay in memory, and so arrive as they were sent. With a wire
// that is not said.
func TestExact(t *testing.T) {
	alone, mixed := open(t, shm.Config{Dir: shm.Folder(t)}), open(t, shm.Config{Dir: shm.Folder(t), Wire: wires(t, 1)[0]})
	if !transport.IsExact(alone) || transport.IsExact(mixed) {
		t.Errorf("exact: alone %v, with a wire %v, want true and false", transport.IsExact(alone), transport.IsExact(mixed))
	}
}

// That frames are altered where they are received is known to those that send there, whether they
// were met before or come later.
func TestExact_Altered(t *testing.T) {
	dir := shm.Folder(t)
	before, alters := open(t, shm.Config{Dir: dir}), open(t, shm.Config{Dir: dir})
	until(t, before, none, func() bool { return len(before.Stations()) == 1 })
	if before.Altered() || alters.Altered() {
		t.Error("nobody has said that frames are altered")
	}
	alters.Alters()
	later := open(t, shm.Config{Dir: dir})
	until(t, later, none, func() bool { return len(later.Stations()) == 2 })
	if !before.Altered() || !later.Altered() || alters.Altered() {
		t.Errorf("altered: of one that was there %v, of one that came %v, of the one itself %v; want true, true, false",
			before.Altered(), later.Altered(), alters.Altered())
	}
}
