package mux_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/rawnet/internal/mux"
)

func openRecord(stream uint64, service string) []byte {
	return rec(mux.Record{Kind: mux.Open, Dialer: true, Stream: stream, Limit: 10, Body: []byte(service)})
}

// A stream that fails before it was handed out is not handed out, and its place in the backlog is
// free; one that its dialer has closed in order is, with what it has sent.
func TestListener_HandsOutWhatLives(t *testing.T) {
	m := mux.New(mux.Config{})
	l, err := m.Listen("x", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Listen("x", 2); !errors.Is(err, mux.ErrInUse) {
		t.Errorf("%v", err)
	}
	for stream := range uint64(3) {
		m.Handle(5, openRecord(stream, "x"), nil)
	}
	got := owedTo(t, m, 5)
	if len(got) != 3 || got[0].Kind != mux.Accept || got[1].Kind != mux.Accept || got[2].Kind != mux.Refuse || got[2].Reason != mux.BacklogFull {
		t.Fatalf("%+v", got)
	}
	m.Handle(5, rec(mux.Record{Kind: mux.Reset, Dialer: true, Stream: 0, Reason: mux.GivenUp}), nil)
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: []byte("bye")}), nil)
	m.Handle(5, rec(mux.Record{Kind: mux.Close, Dialer: true, Stream: 1}), nil)
	m.Handle(5, openRecord(7, "x"), nil) // there is room for one
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Accept || got[0].Stream != 7 {
		t.Fatalf("%+v", got)
	}
	s := l.Accept()
	if s == nil || s.Number() != 1 || s.Buffered() != 3 || !s.EOF() || !s.Broken() {
		t.Errorf("first: %+v", s)
	}
	if s = l.Accept(); s == nil || s.Number() != 7 || s.EOF() || s.Broken() {
		t.Errorf("second: %+v", s)
	}
	if s = l.Accept(); s != nil {
		t.Errorf("third: %+v", s)
	}
	if c := m.Counters(); c.Accepted != 3 || c.Refused != 1 || c.Dialed != 0 {
		t.Errorf("%+v", c)
	}
}

// A listener that closes resets what it has not handed out: also a stream whose Accept is on its
// way then. Its name is free.
func TestListener_Close(t *testing.T) {
	m := mux.New(mux.Config{})
	l, _ := m.Listen("x", 0)
	m.Handle(5, openRecord(1, "x"), nil)
	owedTo(t, m, 5)
	m.Handle(5, openRecord(2, "x"), nil)
	c, ok := m.Next(5)
	if !ok || l.Closed() || len(m.Listeners()) != 1 {
		t.Fatal("there is no Accept")
	}
	l.Close()
	l.Close()
	if out := m.Sent(&c, nil); len(out) > 0 {
		t.Errorf("of a listener that is closed: %v", out)
	}
	got := owedTo(t, m, 5)
	if len(got) != 2 || got[0].Reason != mux.ListenerGone || got[1].Reason != mux.ListenerGone || got[0].Stream+got[1].Stream != 3 {
		t.Errorf("%+v", got)
	}
	if !l.Closed() || l.Accept() != nil || len(m.All())+len(m.Listeners()) > 0 {
		t.Error("something is left")
	}
	if again, err := m.Listen("x", 0); err != nil || again.Service() != "x" {
		t.Errorf("%v", err)
	}
	if l.Close(); len(m.Listeners()) != 1 {
		t.Error("a second Close has ended the next listener")
	}
}

// Close drops what nobody has read, and what the stream owed before; then nothing of it is known.
func TestStream_Close(t *testing.T) {
	m, s := accepted(t, mux.MinWindow)
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, mux.MinWindow)}), nil)
	s.Read(make([]byte, mux.MinWindow-1)) // a Window is owed
	s.Close()
	if s.Buffered() > 0 || !s.EOF() || s.Credit() != 0 || s.State() != mux.Ended || len(m.All()) > 0 {
		t.Errorf("%d bytes, credit %d, %v", s.Buffered(), s.Credit(), s.State())
	}
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Close {
		t.Errorf("%+v", got)
	}
	s.Close()
	s.CloseWrite()
	if m.Owes(5) {
		t.Error("a second Close owes something")
	}
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: []byte("late")}), nil)
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Reason != mux.NoSuchStream || s.Buffered() > 0 {
		t.Errorf("what is late is answered by %+v", got)
	}
	dialed, _ := m.Dial(6)
	dialed.Close()
	if got := owedTo(t, m, 6); len(got) != 1 || got[0].Kind != mux.Reset || got[0].Reason != mux.GivenUp || !got[0].Dialer {
		t.Errorf("a dialer that gives up: %+v", got)
	}
	aborted, _ := m.Dial(6)
	aborted.Abort() // its Open was not sent: nobody knows of it
	if m.Owes(6) || m.Streams(6) != 0 || m.Len() != 0 || aborted.State() != mux.Ended {
		t.Errorf("an Open that was not sent has left %d streams, %v", m.Len(), aborted.State())
	}
	if m.Counters().Dialed != 2 {
		t.Errorf("%+v", m.Counters())
	}
}

// What nobody reads any more is dropped, and its sender goes on.
func TestStream_CloseRead(t *testing.T) {
	m, s := accepted(t, mux.MinWindow)
	s.CloseRead()
	for range 4 {
		out := m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, mux.MinWindow/2)}), nil)
		if got := owedTo(t, m, 5); len(out) > 0 || len(got) != 1 || got[0].Kind != mux.Window {
			t.Fatalf("%v, %+v", out, got)
		}
	}
	if s.Buffered() > 0 || s.Credit() != 100 {
		t.Errorf("%d bytes, credit %d", s.Buffered(), s.Credit())
	}
}

// A service has a name of up to 255 bytes; a node has as many streams as it may, dialed or
// accepted.
func TestBounds(t *testing.T) {
	m := mux.New(mux.Config{MaxStreams: 2})
	longest := strings.Repeat("s", 255)
	_, _ = m.Listen(longest, 0)
	for stream := range uint64(3) {
		m.Handle(5, openRecord(stream, longest), nil)
	}
	got := owedTo(t, m, 5)
	if len(got) != 3 || got[1].Kind != mux.Accept || got[2].Kind != mux.Refuse || got[2].Reason != mux.TooMany {
		t.Errorf("%+v", got)
	}
	if _, err := m.Dial(6); !errors.Is(err, mux.ErrTooMany) {
		t.Errorf("%v", err)
	}
	if mux.MinWindow != 4096 {
		t.Errorf("the least window is %d bytes", mux.MinWindow)
	}
	m = mux.New(mux.Config{})
	for range 65_536 {
		if _, err := m.Dial(6); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Dial(6); !errors.Is(err, mux.ErrTooMany) {
		t.Errorf("%v", err)
	}
}

// A reason of a later version, or one that is not on the wire, is none that a driver knows.
func TestReset_WithAnUnknownReason(t *testing.T) {
	for _, reason := range []mux.Reason{mux.PeerDown, mux.PeerDown + 1, 255} {
		m := mux.New(mux.Config{})
		s, _ := m.Dial(5)
		m.Handle(5, rec(mux.Record{Kind: mux.Reset, Stream: s.Number(), Reason: reason}), nil)
		if is, cause := s.Failure(); is == 0 || is == mux.PeerDown || is.String() != "?" || cause != nil {
			t.Errorf("reason %d: %v (%d), %v", reason, is, is, cause)
		}
	}
}

// The names of kinds, states and reasons are for people.
func TestNames(t *testing.T) {
	for k, want := range []string{"?", "open", "accept", "refuse", "data", "window", "fin", "close", "reset", "?", "?"} {
		if is := mux.Kind(k).String(); is != want {
			t.Errorf("kind %d is %q, want %q", k, is, want)
		}
	}
	if s := mux.Opening.String() + mux.Ended.String() + mux.State(9).String(); s != "openingended?" {
		t.Error(s)
	}
	if s := mux.NoListener.String() + mux.PeerDown.String() + mux.Reason(0).String() + mux.Reason(99).String(); s != "nobody listenspeer down??" {
		t.Error(s)
	}
}

// What was handed out takes no place in the backlog any more; asking for more than there is changes
// nothing.
func TestListener_AcceptMakesRoom(t *testing.T) {
	m := mux.New(mux.Config{})
	l, _ := m.Listen("x", 1)
	for stream := range uint64(3) {
		m.Handle(5, openRecord(stream, "x"), nil)
		if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Accept {
			t.Fatalf("stream %d: %+v", stream, got)
		}
		if s := l.Accept(); s == nil || s.Number() != stream {
			t.Fatalf("stream %d: handed out %+v", stream, s)
		}
	}
	for range 3 {
		if s := l.Accept(); s != nil {
			t.Fatalf("handed out %+v", s)
		}
	}
	m.Handle(5, openRecord(8, "x"), nil)
	m.Handle(5, openRecord(9, "x"), nil)
	if got := owedTo(t, m, 5); len(got) != 2 || got[1].Reason != mux.BacklogFull && got[0].Reason != mux.BacklogFull {
		t.Errorf("%+v", got)
	}
}

// A stream that owed a Window, and is over before that went, owes nothing.
func TestNext_SkipsWhatIsNotOwedAnyMore(t *testing.T) {
	m, s := accepted(t, mux.MinWindow)
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: make([]byte, mux.MinWindow)}), nil)
	s.Read(make([]byte, mux.MinWindow))
	m.Handle(5, rec(mux.Record{Kind: mux.Close, Dialer: true, Stream: 1}), nil)
	s.Close()
	if got := owedTo(t, m, 5); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A dialer that has sent and closed before its acceptor has noted that the Accept went is handed
// out, with what it has sent.
func TestSent_AfterTheDialerHasClosed(t *testing.T) {
	m := mux.New(mux.Config{})
	l, _ := m.Listen("x", 0)
	m.Handle(5, openRecord(1, "x"), nil)
	c, _ := m.Next(5)
	m.Handle(5, rec(mux.Record{Kind: mux.Data, Dialer: true, Stream: 1, Body: []byte("quick")}), nil)
	m.Handle(5, rec(mux.Record{Kind: mux.Close, Dialer: true, Stream: 1}), nil)
	if out := m.Sent(&c, nil); len(out) != 1 || out[0].Kind != mux.Acceptable {
		t.Errorf("%v", out)
	}
	if s := l.Accept(); s == nil || s.Buffered() != 5 || !s.EOF() || s.State() != mux.Ended {
		t.Errorf("%+v", s)
	}
	if n := m.Counters().Accepted; n != 1 {
		t.Errorf("%d streams were accepted", n)
	}
}

// What has ended before its acceptor noted that the Accept went is not handed out where its dialer has
// reset it, nor where the listener was closed.
func TestSent_AfterTheEnd(t *testing.T) {
	end := func(kind mux.Kind, reason mux.Reason) []byte {
		return rec(mux.Record{Kind: kind, Dialer: true, Stream: 1, Reason: reason})
	}
	for name, c := range map[string]struct {
		end    []byte
		closes bool
	}{"reset": {end(mux.Reset, mux.GivenUp), false}, "closed, and the listener": {end(mux.Close, 0), true}} {
		m := mux.New(mux.Config{})
		l, _ := m.Listen("x", 1)
		m.Handle(5, openRecord(1, "x"), nil)
		sent, _ := m.Next(5)
		m.Handle(5, c.end, nil)
		if c.closes {
			l.Close()
		}
		if out := m.Sent(&sent, nil); len(out) > 0 || l.Accept() != nil || m.Counters().Accepted != 0 || m.Owes(5) {
			t.Errorf("%s: %v, %+v", name, out, m.Counters())
		}
		if c.closes {
			continue
		}
		m.Handle(5, openRecord(2, "x"), nil) // its place in the backlog is free
		if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Accept {
			t.Errorf("%s: the next one: %+v", name, got)
		}
	}
}

// A stream ends when both halves have, whichever ends first, and one that is closed says no more than
// that.
func TestStream_HalfCloses(t *testing.T) {
	fin := rec(mux.Record{Kind: mux.Fin, Dialer: true, Stream: 1})
	for _, first := range []string{"here", "there"} {
		m, s := accepted(t, mux.MinWindow)
		if first == "there" {
			if out := m.Handle(5, fin, nil); len(out) != 1 || out[0].Kind != mux.Readable || s.State() != mux.Opened || !s.EOF() {
				t.Errorf("%v, %v", out, s.State())
			}
		}
		s.CloseWrite()
		s.CloseWrite()
		if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Fin || s.Credit() != 0 {
			t.Errorf("%+v", got)
		}
		if first == "here" {
			if m.Len() != 1 || s.State() != mux.Opened {
				t.Errorf("half of it has ended: %v", s.State())
			}
			m.Handle(5, fin, nil)
		}
		if m.Len() != 0 || s.State() != mux.Ended || m.Streams(5) != 0 || s.Broken() {
			t.Errorf("first %s: %v, %d streams are left", first, s.State(), m.Len())
		}
	}
	m, s := accepted(t, mux.MinWindow)
	s.CloseWrite()
	s.Close()
	if got := owedTo(t, m, 5); len(got) != 1 || got[0].Kind != mux.Close {
		t.Errorf("%+v", got)
	}
}

// As many streams as Linux has it wait for an Accept.
func TestListener_DefaultBacklog(t *testing.T) {
	m := mux.New(mux.Config{})
	_, _ = m.Listen("x", 0)
	for stream := range uint64(4097) {
		m.Handle(5, openRecord(stream, "x"), nil)
	}
	if got := owedTo(t, m, 5); len(got) != 4097 || got[4095].Kind != mux.Accept || got[4096].Reason != mux.BacklogFull {
		t.Errorf("%d records, the last of which are %+v", len(got), got[4094:])
	}
}

// A stream's dialer is told of a window of 256 KiB, and so is its acceptor, unless the node's settings
// say more; the least is 4 KiB.
func TestWindow_Default(t *testing.T) {
	for set, want := range map[int]uint64{0: 256 << 10, 1: 4 << 10, 4 << 10: 4 << 10, 10_000: 10_000} {
		m := mux.New(mux.Config{Window: set})
		_, _ = m.Listen("x", 0)
		m.Handle(5, openRecord(1, "x"), nil)
		if got := owedTo(t, m, 5); len(got) != 1 || got[0].Limit != want {
			t.Errorf("window %d: accepted with %+v", set, got)
		}
		s, err := m.Dial(6)
		if err != nil {
			t.Fatal(err)
		}
		var r mux.Record
		if err := r.Parse(s.AppendOpen(nil, "y")); err != nil || r.Limit != want || string(r.Body) != "y" {
			t.Errorf("window %d: dialed with %+v, %v", set, r, err)
		}
	}
}

// A Close tells those that read that no more comes, and those that write that nobody reads; a Fin
// tells the former alone.
func TestStream_EndIsTold(t *testing.T) {
	for kind, want := range map[mux.Kind][]mux.EventKind{mux.Fin: {mux.Readable}, mux.Close: {mux.Readable, mux.Writable}} {
		m, s := accepted(t, mux.MinWindow)
		var got []mux.EventKind
		for _, e := range m.Handle(5, rec(mux.Record{Kind: kind, Dialer: true, Stream: 1}), nil) {
			if got = append(got, e.Kind); e.Stream != s {
				t.Errorf("%v: of %+v", kind, e.Stream)
			}
		}
		if !slices.Equal(got, want) || s.Broken() != (kind == mux.Close) {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
}
