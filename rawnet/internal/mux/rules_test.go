package mux_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

// rec makes a record.
func rec(r mux.Record) []byte { return r.Append(nil) }

// owedTo takes all control records that a node is owed, as they are sent.
func owedTo(t *testing.T, m *mux.Mux, node uint16) (all []mux.Record) {
	t.Helper()
	for c, ok := m.Next(node); ok; c, ok = m.Next(node) {
		var r mux.Record
		if err := r.Parse(c.Append(nil)); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		m.Sent(&c, nil)
	}
	return all
}

// accepted makes a stream that node 5 has dialed, with the number 1, and what the node was told.
func accepted(t *testing.T, window int) (m *mux.Mux, s *mux.Stream) {
	t.Helper()
	m = mux.New(mux.Config{Window: window})
	l, err := m.Listen("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Handle(5, rec(mux.Record{Kind: mux.Open, Dialer: true, Stream: 1, Limit: 100, Body: []byte("x")}), nil)
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Accept || got[0].Limit != uint64(window) || got[0].Stream != 1 || got[0].Dialer {
		t.Fatalf("%+v", got)
	}
	return m, l.Accept()
}

// Golden bytes, both ways.
func TestRecord_Layout(t *testing.T) {
	for _, r := range []struct {
		r    mux.Record
		want string
	}{
		{mux.Record{Kind: mux.Open, Dialer: true, Stream: 0x0102030405060708, Limit: 9, Body: []byte("echo")},
			"\x11\x01\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x09echo"},
		{mux.Record{Kind: mux.Accept, Stream: 1, Limit: 1 << 32}, "\x12\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00"},
		{mux.Record{Kind: mux.Refuse, Stream: 1, Reason: mux.BacklogFull}, "\x13\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
		{mux.Record{Kind: mux.Data, Stream: 1, Body: []byte("x")}, "\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x"},
		{mux.Record{Kind: mux.Window, Stream: 1, Limit: 1}, "\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"},
		{mux.Record{Kind: mux.Fin, Stream: 1}, "\x16\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
		{mux.Record{Kind: mux.Close, Stream: 1}, "\x17\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
		{mux.Record{Kind: mux.Reset, Stream: 1, Reason: mux.GivenUp}, "\x18\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
	} {
		var got mux.Record
		if b := rec(r.r); string(b) != r.want {
			t.Errorf("%+v: %x, want %x", r.r, b, r.want)
		} else if err := got.Parse(b); err != nil || !bytes.Equal(rec(got), b) {
			t.Errorf("%+v: %+v, %v", r.r, got, err)
		}
	}
}

// What makes no sense is counted, changes nothing and is not answered.
func TestHandle_Malformed(t *testing.T) {
	for _, bad := range []string{
		"", "\x16\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // too short
		"\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x19\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", // no such kind
		"\x16\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x16\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", // what is 0
		"\x16\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", // a reason, and none
		"\x16\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x", "\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", // data, and none
		"\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",     // a part of a limit
		"\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", // no service
		"\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" + string(make([]byte, 256)),
	} {
		m, _ := accepted(t, mux.MinWindow)
		out := m.Handle(5, []byte(bad), nil)
		if c := m.Counters(); len(out) > 0 || m.Owes(5) || c.Malformed != 1 || len(m.All()) != 1 {
			t.Errorf("%x: %v, %+v", bad, out, c)
		}
	}
}

// A record of another version is refused with that reason, but for refusals, which are the same in
// all.
func TestHandle_AnotherVersion(t *testing.T) {
	for _, kind := range []mux.Kind{mux.Open, mux.Data, 15} {
		m := mux.New(mux.Config{})
		r := rec(mux.Record{Kind: kind, Dialer: true, Stream: 7})
		r[0] = 2<<4 | byte(kind)
		m.Handle(5, r, nil)
		m.Handle(5, r, nil)
		got := owedTo(t, m, 5)
		if len(got) != 1 || got[0].Kind != mux.Refuse || got[0].Reason != mux.WrongVersion || got[0].Stream != 7 || got[0].Dialer {
			t.Errorf("kind %d: answered by %+v", kind, got)
		}
		if c := m.Counters(); c.Version != 2 || c.Malformed != 0 {
			t.Errorf("%+v", c)
		}
	}
	m := mux.New(mux.Config{First: 7})
	s, err := m.Dial(5)
	if err != nil {
		t.Fatal(err)
	}
	r := rec(mux.Record{Kind: mux.Refuse, Stream: 7, Reason: mux.WrongVersion})
	r[0] = 2<<4 | byte(mux.Refuse)
	m.Handle(5, r, nil)
	if reason, _ := s.Failure(); reason != mux.WrongVersion {
		t.Errorf("refused by another version: %v", reason)
	}
}

// A peer that sends what it may not has its stream reset, and no other one.
func TestHandle_Violations(t *testing.T) {
	data := func(n int) []byte {
		return rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, n)})
	}
	fin := rec(mux.Record{Kind: mux.Fin, Dialer: true, Stream: 1})
	for name, records := range map[string][][]byte{
		"more than the window":         {data(mux.MinWindow + 1)},
		"a byte beyond the window":     {data(mux.MinWindow), data(1)},
		"data behind a fin":            {fin, data(1)},
		"a fin behind a fin":           {fin, fin},
		"an accept of what was dialed": {rec(mux.Record{Kind: mux.Accept, Dialer: true, Stream: 1})},
	} {
		m, s := accepted(t, mux.MinWindow)
		m.Handle(5, rec(mux.Record{Kind: mux.Open, Dialer: true, Stream: 2, Body: []byte("x")}), nil)
		owedTo(t, m, 5)
		var out []mux.Event
		for _, r := range records {
			out = m.Handle(5, r, nil)
		}
		got := owedTo(t, m, 5)
		reason, _ := s.Failure()
		if len(out) != 1 || out[0].Kind != mux.Failed || out[0].Stream != s || reason != mux.Violation || s.State() != mux.Ended ||
			len(got) != 1 || got[0].Kind != mux.Reset || got[0].Reason != mux.Violation || m.Counters().Violations != 1 || len(m.All()) != 1 {
			t.Errorf("%s: %v, %v, sent %+v", name, out, reason, got)
		}
	}
	// Before it was accepted, a peer sends nothing; an Open of a name that is known, or of ours, is
	// dropped.
	m := mux.New(mux.Config{First: 3})
	s, _ := m.Dial(5)
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Stream: 3, Body: []byte("x")}), nil)
	if reason, _ := s.Failure(); reason != mux.Violation {
		t.Errorf("data before an accept: %v", reason)
	}
	m, _ = accepted(t, mux.MinWindow)
	for _, r := range []mux.Record{{Dialer: true, Stream: 1}, {Stream: 9}} {
		r.Kind, r.Body = mux.Open, []byte("x")
		m.Handle(5, rec(r), nil)
	}
	if c := m.Counters(); c.Violations != 2 || len(m.All()) != 1 || m.Owes(5) {
		t.Errorf("%+v", c)
	}
}

// Records of streams that there are not: data is answered by one Reset in a row, others are
// dropped.
func TestHandle_NoSuchStream(t *testing.T) {
	m := mux.New(mux.Config{})
	for range 3 {
		for _, stream := range []uint64{1, 1, 2} {
			m.Handle(5, rec(mux.Record{Kind: mux.Data, Stream: stream, Body: []byte("x")}), nil)
		}
	}
	for _, kind := range []mux.Kind{mux.Window, mux.Close, mux.Reset, mux.Refuse} {
		r := mux.Record{Kind: kind, Stream: 3}
		if kind == mux.Reset || kind == mux.Refuse {
			r.Reason = mux.GivenUp
		}
		m.Handle(5, rec(r), nil)
	}
	m.Handle(5, rec(mux.Record{Kind: mux.Fin, Stream: 4}), nil)
	m.Handle(5, rec(mux.Record{Kind: mux.Accept, Stream: 5}), nil) // else its acceptor would keep it for ever
	var streams []uint64
	for _, r := range owedTo(t, m, 5) {
		if r.Kind != mux.Reset || r.Reason != mux.NoSuchStream || !r.Dialer {
			t.Errorf("%+v", r)
		}
		streams = append(streams, r.Stream)
	}
	if !slices.Equal(streams, []uint64{1, 2, 1, 2, 1, 2, 4, 5}) || m.Counters().NoStream != 15 {
		t.Errorf("%v, %+v", streams, m.Counters())
	}
	for i := range uint64(100_000) { // a flood is answered as far as a bound
		m.Handle(5, rec(mux.Record{Kind: mux.Fin, Stream: i}), nil)
	}
	if n := len(owedTo(t, m, 5)); n != mux.DefaultMaxStreams {
		t.Errorf("%d answers", n)
	}
}

// A peer that takes any number of bytes gives credit, however large that number is.
func TestStream_EndlessCredit(t *testing.T) {
	for _, limit := range []uint64{1 << 63, math.MaxUint64} {
		m := mux.New(mux.Config{})
		s, _ := m.Dial(5)
		m.Handle(5, rec(mux.Record{Kind: mux.Accept, Stream: s.Number(), Limit: limit}), nil)
		if n := s.Credit(); n != math.MaxInt {
			t.Errorf("a limit of %d is a credit of %d", limit, n)
		}
	}
}

// The peer learns of credit once half a window was read, and not before; bytes that a Read waits
// for go to it and not to memory.
func TestStream_Window(t *testing.T) {
	m, s := accepted(t, mux.MinWindow)
	data := func(n int) []mux.Event {
		return m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, n)}), nil)
	}
	half := mux.MinWindow / 2
	if out := data(mux.MinWindow); len(out) > 0 {
		t.Errorf("nobody waits: %v", out)
	}
	b := make([]byte, mux.MinWindow)
	if s.Read(b[:half-1]); s.Owes() {
		t.Error("credit for less than half of a window")
	}
	if s.Read(b[:1]); !s.Owes() {
		t.Error("no credit for half of a window")
	}
	s.Read(b[:10])
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Window || got[0].Limit != uint64(mux.MinWindow+half+10) {
		t.Errorf("%+v", got)
	}
	s.Read(b)
	s.Post(b[:100])
	if out := data(60); len(out) != 1 || out[0].Kind != mux.Readable || out[0].Stream != s || s.Buffered() != 0 {
		t.Errorf("%v", out)
	}
	if out := data(60); len(out) > 0 || s.Buffered() != 20 {
		t.Errorf("%v, %d bytes buffered", out, s.Buffered())
	}
	if n := s.Unpost(); n != 100 {
		t.Errorf("%d bytes for the Read that waits", n)
	}
	s.Read(b)
	owedTo(t, m, 5)
	s.Post(b)
	if data(half); !s.Owes() { // 120 of the half were read before
		t.Error("no credit for what a Read has got from the frame")
	}
	s.Unpost()
	// The sender's side: a Window that says less than before is old.
	if s.Credit() != 100 {
		t.Errorf("credit %d", s.Credit())
	}
	s.Sent(40)
	for _, w := range []struct{ limit, credit, events int }{{50, 60, 0}, {100, 60, 0}, {120, 80, 1}} {
		out := m.Handle(5, rec(mux.Record{Kind: mux.Window, Dialer: true, Stream: 1, Limit: uint64(w.limit)}), nil)
		if s.Credit() != w.credit || len(out) != w.events {
			t.Errorf("limit %d: credit %d, %v", w.limit, s.Credit(), out)
		}
	}
}

// A peer that is down takes its streams with it, with what they owe, and no other peer's.
func TestDown(t *testing.T) {
	m, s := accepted(t, mux.MinWindow)
	other, _ := m.Dial(6)
	m.Handle(5, rec(mux.Record{Kind: mux.Fin, Stream: 99}), nil) // an answer is owed
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: []byte("kept")}), nil)
	c, _ := m.Next(5)
	cause := errors.New("lightning")
	s.CloseWrite()
	out := m.Down(5, cause, nil)
	reason, err := s.Failure()
	if len(out) != 1 || out[0].Stream != s || reason != mux.PeerDown || !errors.Is(err, cause) || m.Owes(5) || s.Owes() || m.Streams(5) != 0 {
		t.Errorf("%v, %v %v", out, reason, err)
	}
	m.Unsent(&c)
	if got := make([]byte, 10); s.Read(got) != 4 {
		t.Error("what came before cannot be read")
	}
	if s.Node() != 5 || other.Node() != 6 || m.Streams(7) != 0 {
		t.Errorf("nodes %d and %d, and %d streams with one that was never heard of", s.Node(), other.Node(), m.Streams(7))
	}
	if other.State() != mux.Opening || m.Streams(6) != 1 || len(m.Down(7, cause, nil)) > 0 {
		t.Error("another peer's stream has ended")
	}
}

// The pool gives memory back, and keeps a bounded part of it; a stream without bytes has none.
func TestBuffer_IsGivenBack(t *testing.T) {
	m, s := accepted(t, 64<<10)
	data := rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, 1000)})
	b := make([]byte, 100_000)
	round := func() {
		for range 30 {
			m.Handle(5, data, nil)
		}
		for s.Buffered() > 0 {
			s.Read(b)
		}
		for c, ok := m.Next(5); ok; c, ok = m.Next(5) {
			m.Sent(&c, nil)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for bytes that are buffered and read", n)
	}
}

var errDown = errors.New("down")

// FuzzRecord: what is parsed is what appending it gives; no record of any bytes does harm.
func FuzzRecord(f *testing.F) {
	for _, r := range []mux.Record{
		{Kind: mux.Open, Dialer: true, Stream: 1, Limit: 9, Body: []byte("x")}, {Kind: mux.Accept, Stream: 1, Limit: 1},
		{Kind: mux.Reset, Stream: 1, Reason: mux.GivenUp}, {Kind: mux.Data, Dialer: true, Stream: 1, Body: []byte("data")},
	} {
		for _, v := range fuzzseed.Variants(rec(r)) {
			f.Add(v)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r mux.Record
		if r.Parse(b) == nil && r.Reason < mux.PeerDown {
			if r.Kind.String() == "?" {
				t.Errorf("%x is parsed as %+v: that kind has no name", b, r)
			}
			if again := rec(r); !bytes.Equal(again[1:], b[1:]) {
				t.Errorf("%x is parsed as %+v, which is %x", b, r, again)
			}
		}
		m := mux.New(mux.Config{First: 1, Window: mux.MinWindow})
		l, _ := m.Listen("x", 1)
		if _, err := m.Listen("x", 1); !errors.Is(err, mux.ErrInUse) {
			t.Errorf("a service twice: %v", err)
		}
		_, _ = m.Dial(5)
		for range 2 {
			m.Handle(5, b, nil)
			m.Handle(5, rec(mux.Record{Kind: mux.Open, Dialer: true, Stream: 1, Body: []byte("x")}), nil)
		}
		m.Handle(5, b, nil) // while control records are owed
		for i := 0; ; i++ {
			c, ok := m.Next(5)
			if !ok {
				break
			}
			if m.Sent(&c, nil); i > 100 {
				t.Fatal("there is no end of control records")
			}
		}
		m.Handle(5, b, nil)
		l.Close()
		l.Close()
		if !l.Closed() || l.Service() != "x" || len(m.Listeners()) > 0 {
			t.Errorf("service %q is closed: %v, and %d listeners are left", l.Service(), l.Closed(), len(m.Listeners()))
		}
		if c := m.Counters(); c.Malformed+c.Version > 4 {
			t.Errorf("more than came: %+v", c)
		}
		for _, s := range m.All() {
			s.CloseWrite()
		}
		m.Down(5, errDown, nil)
		for _, s := range m.All() {
			if s.Node() == 5 {
				t.Errorf("a stream with a node that is down: %+v", s)
			}
		}
		if n := m.Streams(5); m.Owes(5) || n != 0 {
			t.Errorf("%d streams with a node that is down, and something is owed to it: %v", n, m.Owes(5))
		}
	})
}
