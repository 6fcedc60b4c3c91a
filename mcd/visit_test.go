package mcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// piped returns two endpoints that receive only when they are polled.
func piped(t *testing.T) (a, b *mcd.Endpoint) {
	t.Helper()
	x, y := linktest.Pipe()
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{x.MAC()}}, {ID: 1, MACs: []transport.MAC{y.MAC()}}}
	var es [2]*mcd.Endpoint
	for k, l := range []transport.Link{x, y} {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		es[k] = e
	}
	return es[0], es[1]
}

// Messages to one port that come together are handled between one Enter and one Leave, before anything else happens; also if the
// port is closed meanwhile. Idle follows.
func TestEnterAndLeaveEncloseWhatComesTogether(t *testing.T) {
	a, b := piped(t)
	var log strings.Builder
	note := func(s string) func() { return func() { log.WriteString(s) } }
	handler := func(m *mcd.Message) { log.Write(m.Payload) }
	first, err := b.OpenPort(1, mcd.PortOptions{Handler: handler, Enter: note("("), Leave: note(")"), Idle: note("|")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.OpenPort(2, mcd.PortOptions{Handler: handler, Enter: note("["), Leave: note("]")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.OpenPort(3, mcd.PortOptions{Handler: handler}); err != nil {
		t.Fatal(err)
	}
	closer, err := b.OpenPort(4, mcd.PortOptions{Handler: func(*mcd.Message) { first.Close() }})
	if err != nil {
		t.Fatal(err)
	}
	port(t, b, 5)
	from := port(t, a, 1)
	for _, x := range []struct{ sent, want string }{
		{"1a 1b", "(ab)"},
		{"1a 2b 1c 1d", "(a)[b](cd)"},
		{"3a 1b 3c", "a(b)c"},
		{"1a 5b 1c", "(a)(c)"},
		{"2a 1b 4x 2c 1d", "[a](b)[c]"},
	} {
		for _, s := range strings.Fields(x.sent) {
			send(t, from, mcd.Addr{Node: 1, Port: mcd.PortID(s[0] - '0')}, []byte(s[1:]))
		}
		for b.Progress() {
		}
		want := x.want
		if strings.Contains(x.sent, "1") && b.Counters().DropNoPort == 0 {
			want += "|"
		}
		if got := log.String(); got != want {
			t.Errorf("%s: %s, want %s", x.sent, got, want)
		}
		log.Reset()
	}
	if n := first.Counters().RxMessages; n != 9 {
		t.Errorf("port 1 has counted %d messages, want 9", n)
	}
	if n := closer.Counters().RxMessages; n != 1 {
		t.Errorf("port 4 has counted %d messages, want 1", n)
	}
}

// A batch may be longer than what one poll takes.
func TestEnterAndLeaveOncePerPoll(t *testing.T) {
	a, b := piped(t)
	entered, handled, inside := 0, 0, false
	p, err := b.OpenPort(1, mcd.PortOptions{
		Handler: func(*mcd.Message) {
			if handled++; !inside {
				t.Error("handled outside")
			}
		},
		Enter: func() { entered++; inside = true },
		Leave: func() { inside = false },
	})
	if err != nil {
		t.Fatal(err)
	}
	from := port(t, a, 1)
	for range 100 {
		send(t, from, p.Addr(), nil)
	}
	for b.Progress() {
		if inside {
			t.Fatal("not left")
		}
	}
	if handled != 100 || entered < 2 || entered > 10 || p.Counters().RxMessages != 100 {
		t.Errorf("entered %d times, handled %d, counted %d", entered, handled, p.Counters().RxMessages)
	}
}

func TestOpenPort_OptionsThatMakeNoSense(t *testing.T) {
	_, b := piped(t)
	nothing := func() {}
	handler := func(*mcd.Message) {}
	for _, x := range []struct {
		opts mcd.PortOptions
		want string
	}{
		{mcd.PortOptions{Idle: nothing}, "open port 9: PortOptions: Enter, Leave and Idle want a Handler"},
		{mcd.PortOptions{Enter: nothing, Leave: nothing}, "open port 9: PortOptions: Enter, Leave and Idle want a Handler"},
		{mcd.PortOptions{Handler: handler, Enter: nothing}, "open port 9: PortOptions: want both Enter and Leave, or neither"},
		{mcd.PortOptions{Handler: handler, Leave: nothing}, "open port 9: PortOptions: want both Enter and Leave, or neither"},
	} {
		if _, err := b.OpenPort(9, x.opts); err == nil || err.Error() != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
	port(t, b, 9) // it is free
}

// wakeable is a pipe's end whose server a test wakes.
type wakeable struct {
	*linktest.End
	wake chan struct{}
}

func (w wakeable) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.wake:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := w.End.Wait(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// A server that finds nothing, as others have polled in between, calls Idle where that is wanted: nobody else may come to do it.
func TestIdle_ByAServerThatFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		link := wakeable{y, make(chan struct{})}
		b, err := mcd.Open(mcd.Config{Node: 1, Spin: -1}, link)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		defer x.Close()
		idle := 0
		p, err := b.OpenPort(1, mcd.PortOptions{Handler: func(*mcd.Message) {}, Idle: func() { idle++ }})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.WantIdle()
		link.wake <- struct{}{}
		synctest.Wait()
		if idle != 1 {
			t.Errorf("called %d times", idle)
		}
	})
}
