package mcd_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// piped returns two endpoints that receive only when they are polled.
func piped(t *testing.T) (a, b *mcd.Endpoint) {
	t.Helper()
	x, y := linktest.Pipe()
	es := wrapped(t, mcd.Config{}, x, y)
	return es[0], es[1]
}

// recorder notes each call of Receive: the payloads in brackets, "+" if more is to follow.
type recorder struct {
	mu  sync.Mutex
	log strings.Builder
}

func (r *recorder) options(open, closing string) mcd.PortOptions {
	return mcd.PortOptions{Receive: func(batch []mcd.Message, more bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log.WriteString(open)
		for _, m := range batch {
			r.log.Write(m.Payload)
		}
		if more {
			r.log.WriteString("+")
		}
		r.log.WriteString(closing)
	}}
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.log.Reset()
	return r.log.String()
}

func openPort(t *testing.T, e *mcd.Endpoint, id mcd.PortID, opts mcd.PortOptions) *mcd.Port {
	t.Helper()
	p, err := e.OpenPort(id, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What one poll finds for a port in a row comes in one call, and a last call follows when a poll
// finds nothing; also if the port is closed meanwhile: then it hears no more.
func TestReceive_RunsOfOnePoll(t *testing.T) {
	a, b := piped(t)
	var rec recorder
	first := openPort(t, b, 1, rec.options("(", ")"))
	openPort(t, b, 2, rec.options("[", "]"))
	closer := openPort(t, b, 4, mcd.PortOptions{Receive: func([]mcd.Message, bool) { first.Close() }})
	port(t, b, 5)
	from := port(t, a, 1)
	for _, x := range []struct{ sent, want string }{
		{"1a 1b", "(ab+)()"},
		{"1a 2b 1c 1d", "(a+)[b+](cd+)()[]"},
		{"1a 5b 1c", "(a+)(c+)()"},
		{"2a 1b 4x 2c 1d", "[a+](b+)[c+][]"},
		{"4x 1d", ""},
	} {
		for s := range strings.FieldsSeq(x.sent) {
			send(t, from, mcd.Addr{Node: 1, Port: mcd.PortID(s[0] - '0')}, []byte(s[1:]))
		}
		for b.Progress() {
		}
		if got := rec.take(); got != x.want {
			t.Errorf("%s: %s, want %s", x.sent, got, x.want)
		}
	}
	if n := first.Counters().RxMessages; n != 8 {
		t.Errorf("port 1 has counted %d messages, want 8", n)
	}
	if n := closer.Counters().RxMessages; n != 2 {
		t.Errorf("port 4 has counted %d messages, want 2", n)
	}
	if n := b.Counters().DropNoPort; n != 2 {
		t.Errorf("%d messages for the closed port were counted, want 2", n)
	}
}

// The message that follows the one whose Receive closes its port is not delivered, though it was
// parsed.
func TestReceive_ClosedByTheRunBefore(t *testing.T) {
	a, b := piped(t)
	var rec recorder
	victim := openPort(t, b, 1, rec.options("(", ")"))
	openPort(t, b, 4, mcd.PortOptions{Receive: func([]mcd.Message, bool) { victim.Close() }})
	from := port(t, a, 1)
	send(t, from, mcd.Addr{Node: 1, Port: 4}, nil)
	send(t, from, victim.Addr(), []byte("late"))
	b.Progress()
	if got := rec.take(); got != "" || b.Counters().DropNoPort != 1 {
		t.Errorf("a closed port received %s; %d drops, want 1", got, b.Counters().DropNoPort)
	}
}

// A batch may be longer than what one poll takes.
func TestReceive_OncePerPoll(t *testing.T) {
	a, b := piped(t)
	calls, messages := 0, 0
	p := openPort(t, b, 1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if len(batch) > 0 {
			calls++
			messages += len(batch)
		}
	}})
	from := port(t, a, 1)
	for range 100 {
		send(t, from, p.Addr(), nil)
	}
	for b.Progress() {
	}
	if messages != 100 || calls < 2 || calls > 10 || p.Counters().RxMessages != 100 {
		t.Errorf("%d calls with %d messages; %d counted", calls, messages, p.Counters().RxMessages)
	}
}

// A poller may stop with the last call owed. If nobody polls then, the endpoint itself makes it.
func TestReceive_LastCallWhenNobodyPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piped(t)
		var rec recorder
		p := openPort(t, b, 1, rec.options("(", ")"))
		send(t, port(t, a, 1), p.Addr(), []byte("x"))
		b.Progress()
		synctest.Wait()
		if got := rec.take(); got != "(x+)" {
			t.Errorf("after one poll: %s, want (x+)", got)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := rec.take(); got != "()" {
			t.Errorf("later: %q, want the last call", got)
		}
	})
}

// A last call that ends the endpoint's goroutine is not its last one.
func TestReceive_LastCallEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piped(t)
		calls := 0
		p := openPort(t, b, 1, mcd.PortOptions{Receive: func(_ []mcd.Message, more bool) {
			if !more {
				calls++
				runtime.Goexit()
			}
		}})
		from := port(t, a, 1)
		for want := 1; want <= 2; want++ {
			send(t, from, p.Addr(), []byte("x"))
			b.Progress()
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if calls != want {
				t.Errorf("%d last calls, want %d", calls, want)
			}
		}
	})
}

// A goroutine whose own wait is fulfilled returns at once: the last call comes with a later poll.
func TestReceive_LastCallAfterTheLeadersOwnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time stands still, and so does the unmaskLoop
		x, y := linktest.Pipe()
		es := mcdtest.OpenLinks(t, mcdtest.Config{}, []transport.Link{x}, []transport.Link{y})
		var rec recorder
		p := openPort(t, es[1], 1, rec.options("(", ")"))
		own, from := port(t, es[1], 2), port(t, es[0], 1)
		send(t, from, p.Addr(), []byte("x"))
		send(t, from, own.Addr(), []byte("mine"))
		expect(t, own, from.Addr(), "mine")
		if got := rec.take(); got != "(x+)" {
			t.Errorf("when the wait ended: %s, want (x+)", got)
		}
		es[1].Progress()
		if got := rec.take(); got != "()" {
			t.Errorf("with the next poll: %q, want the last call", got)
		}
	})
}

// wakeable is a pipe's end whose Wait a test ends.
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

// A link's own goroutine does not look again after one message, and says so. If it finds nothing,
// as others have polled since it was woken, it makes the call that they owe.
func TestReceive_FromALinksOwnGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		link := wakeable{y, make(chan struct{})}
		es := wrapped(t, mcd.Config{}, x, link)
		var rec recorder
		p := openPort(t, es[1], 1, rec.options("(", ")"))
		from := port(t, es[0], 1)
		for _, polled := range []bool{false, true} {
			want := "(x)"
			send(t, from, p.Addr(), []byte("x"))
			if polled {
				want = "(x+)()"
				es[1].Progress()
			}
			link.wake <- struct{}{}
			synctest.Wait()
			if got := rec.take(); got != want {
				t.Errorf("polled by others first %v: %s, want %s", polled, got, want)
			}
		}
	})
}

// A Receive function that panics, or ends its goroutine, does not keep others from polling.
func TestReceive_ThatDoesNotReturn(t *testing.T) {
	for name, fail := range noreturn.Ways {
		for _, poll := range []struct {
			name string
			once func(*mcd.Endpoint)
		}{
			{"Progress", func(e *mcd.Endpoint) { e.Progress() }},
			{"Await", func(e *mcd.Endpoint) { _ = e.Await(context.Background(), new(mcd.Completion)) }},
		} {
			t.Run(name+" in "+poll.name, func(t *testing.T) {
				x, y := linktest.Pipe()
				es := mcdtest.OpenLinks(t, mcdtest.Config{}, []transport.Link{x}, []transport.Link{y})
				bad := openPort(t, es[1], 1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
					if len(batch) > 0 { // and not where the endpoint's own goroutine makes the last call
						fail()
					}
				}})
				own, from := port(t, es[1], 2), port(t, es[0], 1)
				send(t, from, bad.Addr(), nil)
				var polled sync.WaitGroup
				polled.Add(1)
				go func() {
					defer polled.Done()
					defer func() { _ = recover() }()
					poll.once(es[1])
				}()
				polled.Wait()
				if err := bad.Close(); err != nil {
					t.Fatal(err)
				}
				send(t, from, own.Addr(), []byte("next"))
				expect(t, own, from.Addr(), "next")
			})
		}
	}
}

// One that ends a link's goroutine, which polls while nobody else does, gives the poll lock back, and
// another goroutine has its place.
func TestReceive_EndsALinksGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := wrapped(t, mcd.Config{}, switched(t, 2)...)
		bad := openPort(t, es[1], 1, mcd.PortOptions{Receive: func([]mcd.Message, bool) { runtime.Goexit() }})
		own, from := port(t, es[1], 2), port(t, es[0], 1)
		send(t, from, bad.Addr(), nil)
		synctest.Wait()
		if c := bad.Counters(); c.RxMessages != 1 {
			t.Errorf("%d messages came, want 1", c.RxMessages)
		}
		send(t, from, own.Addr(), []byte("next"))
		es[1].Progress()
		expect(t, own, from.Addr(), "next")
		send(t, from, bad.Addr(), nil)
		synctest.Wait()
		if c := bad.Counters(); c.RxMessages != 2 {
			t.Errorf("%d messages came, want 2: nobody polls", c.RxMessages)
		}
	})
}

// One that does not return takes nothing from the other messages that came with its own, be they for
// other ports or the same, or probes: they are received by the next poll, and the counters add up. Where
// nobody polls but the endpoint's own goroutines, these go on with them.
func TestReceive_ThatDoesNotReturn_LosesNoMessages(t *testing.T) {
	const rounds = 6
	for name, keys := range map[string]func(*mcd.Config){
		"without keys": func(*mcd.Config) {}, "with keys": keyed(ring(1, true)),
	} {
		for _, byItself := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				cfg := mcd.Config{Spin: -1}
				keys(&cfg)
				links := switched(t, 2)
				if !byItself {
					links[0], links[1] = linktest.Pipe()
				}
				es := wrapped(t, cfg, links...)
				from := port(t, es[0], 1)
				first := openPort(t, es[1], 9, mcd.PortOptions{Receive: func([]mcd.Message, bool) {}})
				send(t, from, first.Addr(), nil)
				for range 100 { // they get to know each other
					es[0].Progress()
					es[1].Progress()
					time.Sleep(time.Millisecond)
				}
				var rec recorder
				ends := 0
				bad := openPort(t, es[1], 1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
					if len(batch) == 0 {
						return
					}
					if ends++; !byItself && ends%2 == 0 {
						panic("by the test")
					}
					runtime.Goexit()
				}})
				good, backlog := openPort(t, es[1], 2, rec.options("(", ")")), port(t, es[1], 3)
				for range rounds {
					for _, p := range []*mcd.Port{bad, good, bad, bad, backlog, good} {
						send(t, from, p.Addr(), []byte("x"))
					}
				}
				for range 100 {
					if byItself {
						time.Sleep(time.Millisecond)
						continue
					}
					var polled sync.WaitGroup
					polled.Add(1)
					go func() {
						defer polled.Done()
						defer func() { _ = recover() }()
						es[1].Progress()
					}()
					polled.Wait()
				}
				for i, p := range []*mcd.Port{bad, good, backlog} {
					if got, want := p.Counters().RxMessages, uint64(rounds*[]int{3, 2, 1}[i]); got != want {
						t.Errorf("%s, by itself: %v: port %v has received %d messages, want %d", name, byItself, p.Addr(), got, want)
					}
				}
				if got := strings.Count(rec.take(), "x"); got != 2*rounds {
					t.Errorf("%s, by itself: %v: a port's function has got %d messages, want %d", name, byItself, got, 2*rounds)
				}
			})
		}
	}
}

// One that does not return, before a probe of the same batch, and a watcher of that probe that does not,
// have no message received twice.
func TestReceive_ThatDoesNotReturn_BeforeAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piped(t)
		var rec recorder
		from, good := port(t, a, 1), openPort(t, b, 2, rec.options("(", ")"))
		bad := openPort(t, b, 3, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
			if len(batch) > 0 {
				panic("by the test")
			}
		}})
		defer b.WatchProbes(func(*mcd.Probe) { panic("by the test") })()
		send(t, from, good.Addr(), []byte("x"))
		send(t, from, bad.Addr(), nil)
		if _, err := a.TryProbe(mcd.Path{Node: b.Node()}, mcd.ProbeOptions{}); err != nil {
			t.Fatal(err)
		}
		panics := 0
		for range 10 {
			func() {
				defer func() {
					if recover() != nil {
						panics++
					}
				}()
				b.Progress()
			}()
		}
		if panics != 2 {
			t.Errorf("%d calls did not return, want 2", panics)
		}
		if g, b := good.Counters().RxMessages, bad.Counters().RxMessages; g != 1 || b != 1 || strings.Count(rec.take(), "x") != 1 {
			t.Errorf("received %d and %d messages, want 1 and 1", g, b)
		}
	})
}

// A last call that panics takes none from the other ports that are owed theirs.
func TestReceive_LastCallThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piped(t)
		var rec recorder
		from := port(t, a, 1)
		panics := 0
		bad := mcd.PortOptions{Receive: func(_ []mcd.Message, more bool) {
			if !more {
				panics++
				panic("by the test")
			}
		}}
		for _, p := range []*mcd.Port{
			openPort(t, b, 1, bad), openPort(t, b, 2, rec.options("(", ")")),
			openPort(t, b, 3, bad), openPort(t, b, 4, rec.options("[", "]")),
		} {
			send(t, from, p.Addr(), []byte("x"))
		}
		poll := func() {
			defer func() { _ = recover() }()
			b.Progress()
		}
		for range 4 {
			poll()
		}
		if got := rec.take(); got != "(x+)[x+]()[]" || panics != 2 {
			t.Errorf("%s, and %d panics; want all last calls", got, panics)
		}
	})
}

// A message says from whom it came: node and port, the link, and the address, be it one that no table
// knows.
func TestReceive_WhereAMessageCameFrom(t *testing.T) {
	for _, c := range []struct {
		name string
		keys func(*mcd.Config)
	}{{"without keys", func(*mcd.Config) {}}, {"with keys", keyed(ring(1, true))}} {
		es := open(t, 2, 2, c.keys)
		var mu sync.Mutex
		var got []mcd.Message
		openPort(t, es[1], 1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, batch...)
		}})
		p := port(t, es[0], 7)
		for nic := range 2 {
			if err := p.SendVia(limit(t), nic, mcd.To(mcd.Addr{Node: 1, Port: 1}), []byte{1}); err != nil {
				t.Fatal(err)
			}
			for came := 0; came <= nic; {
				es[1].Progress()
				runtime.Gosched()
				mu.Lock()
				came = len(got)
				mu.Unlock()
			}
			mu.Lock()
			if m := got[nic]; m.From != p.Addr() || m.NIC != nic || m.Src != es[0].MAC(nic) {
				t.Errorf("%s: from %v, link %d, %v; want %v, %d, %v", c.name, m.From, m.NIC, m.Src, p.Addr(), nic, es[0].MAC(nic))
			}
			mu.Unlock()
		}
	}
}
