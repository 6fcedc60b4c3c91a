package mcd

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// contactLog notes to which addresses a link sends contact frames.
type contactLog struct {
	mu sync.Mutex
	to []transport.MAC
}

func (l *contactLog) send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range frames {
		if wire.Kind(f.Payload[0]&0x0f) == wire.Contact {
			l.to = append(l.to, f.Dst)
		}
	}
	return len(frames), nil
}

func (l *contactLog) count(to transport.MAC) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.to {
		if m == to {
			n++
		}
	}
	return n
}

// oneBad is a router whose tag for one destination is none that a frame can carry, once it is set.
type oneBad struct {
	mu  sync.Mutex
	dst transport.MAC
}

func (r *oneBad) set(dst transport.MAC) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dst = dst
}

func (r *oneBad) Route(dst transport.MAC) transport.OptionalTag {
	r.mu.Lock()
	defer r.mu.Unlock()
	if dst == r.dst {
		return transport.Tagged(transport.Tag{VID: 4095})
	}
	return transport.Untagged
}

// An endpoint asks all nodes once, when it is opened. A neighbour is asked before the first message
// or probe to it, and then again; a route to another one that no frame can carry does not keep it from that.
// What is counted is what was sent.
func TestKeys_WhoIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := linktest.Pipe()
		var log contactLog
		link, routes := &script{Link: x, send: log.send}, &oneBad{}
		bad, good, probed := transport.MAC{2, 1, 0, 0, 0, 1}, transport.MAC{2, 1, 0, 0, 0, 2}, transport.MAC{2, 1, 0, 0, 0, 3}
		e, err := Open(Config{Spin: -1, Keys: keyring.New(), Router: routes, Nodes: []Node{
			{ID: 1, MACs: []transport.MAC{bad}}, {ID: 2, MACs: []transport.MAC{good}},
			{ID: 3, MACs: []transport.MAC{probed}},
		}}, link)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		routes.set(bad)
		for node := range NodeID(2) {
			if err := p.TrySend(0, To(Addr{Node: node + 1, Port: 1}), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.TryProbe(Path{Node: 3}, ProbeOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Millisecond) // at once, and after 5, 15 and 35 ms
		synctest.Wait()
		for what, mac := range map[string]transport.MAC{"message": good, "probe": probed} {
			if n := log.count(mac); n != 4 {
				t.Errorf("a neighbour that a %s goes to was asked %d times, want 4", what, n)
			}
		}
		if n := log.count(bad); n != 0 {
			t.Errorf("%d contact frames by a route that no frame can take", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := log.count(transport.Broadcast); n != 1 {
			t.Errorf("all nodes were asked %d times, want once", n)
		}
		if c := e.Counters(); c.TxContacts != uint64(len(log.to)) || c.RxContacts != 0 {
			t.Errorf("%d contact frames are counted, and %d received; want %d, 0", c.TxContacts, c.RxContacts, len(log.to))
		}
	})
}

// Contact is begun with 64 neighbours at once, while the endpoint has not come to the first of them;
// the receiver begins with more of them.
func TestKeys_FirstContactsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := linktest.Pipe()
		var log contactLog
		var nodes []Node
		for k := range 100 {
			nodes = append(nodes, Node{ID: NodeID(k + 1), MACs: []transport.MAC{{2, 1, 0, 0, 0, byte(k + 1)}}})
		}
		e, err := Open(Config{Spin: -1, Keys: keyring.New(), Nodes: nodes}, &script{Link: x, send: log.send})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !e.lockPoll() { // without which the endpoint asks nobody
			t.Fatal("no poll lock")
		}
		for k := range nodes {
			if err := p.TrySend(0, To(Addr{Node: NodeID(k + 1), Port: 1}), nil); err != nil {
				t.Fatal(err)
			}
		}
		e.unlockPoll()
		synctest.Wait()
		asked := map[transport.MAC]bool{}
		log.mu.Lock()
		for _, m := range log.to {
			asked[m] = true
		}
		log.mu.Unlock()
		delete(asked, transport.Broadcast)
		if len(asked) != 64 {
			t.Errorf("%d neighbours were asked at once, want 64", len(asked))
		}
	})
}

// Whatever is sent, in whatever way, is preceded by a checkpoint every 4 ms; the first one is made
// when the endpoint opens.
func TestKeys_Checkpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := clock.Now()
		e, p, _, _ := openScripts(t, 1, func(c *Config) { c.Keys = keyring.New() })
		defer e.Close()
		l := e.nics[0].auth
		if at := time.Duration(l.checked.Load()); at != opened.Since() {
			t.Errorf("the first checkpoint is of %v, want %v", at, opened.Since())
		}
		to := To(Addr{Node: 1, Port: 1})
		for _, c := range []struct {
			name string
			send func() error
		}{
			{"TrySend", func() error { return p.TrySend(0, to, nil) }},
			{"TrySendInPlace", func() error { _, err := p.TrySendInPlace(0, to, make([]byte, p.e.Headroom())); return err }},
			{"PostSend", func() error { return p.PostSend(descTo(1, "x")) }},
			{"TryProbe", func() error { _, err := e.TryProbe(Path{Node: 1}, ProbeOptions{}); return err }},
		} {
			l.checkpoint(clock.Now())
			due := time.Duration(l.checked.Load()) + 4*time.Millisecond
			time.Sleep(due - clock.Now().Since() - time.Nanosecond)
			for _, want := range []bool{false, true} {
				before := l.checked.Load()
				if err := c.send(); err != nil {
					t.Fatal(err)
				}
				if made := l.checked.Load() != before; made != want {
					age := clock.Now().Since() - time.Duration(before)
					t.Errorf("%s %v after the last checkpoint: made %v, want %v", c.name, age, made, want)
				}
				time.Sleep(time.Nanosecond)
			}
		}
	})
}

// slowMTU is a link that takes its time to say what its MTU is.
type slowMTU struct {
	*linktest.End
	once sync.Once
}

func (l *slowMTU) MTU() int {
	l.once.Do(func() { time.Sleep(5 * time.Millisecond) })
	return l.End.MTU()
}

// With keys, Open takes auth.OpeningTime in all, and no longer if it was slow; without, no time.
func TestOpen_OpeningTime(t *testing.T) {
	for _, keys := range []*keyring.Ring{nil, keyring.New()} {
		synctest.Test(t, func(t *testing.T) {
			x, _ := linktest.Pipe()
			begun := time.Now()
			e, err := Open(Config{Spin: -1, Keys: keys}, &slowMTU{End: x})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			want := 5 * time.Millisecond
			if keys != nil {
				want = auth.OpeningTime
			}
			if took := time.Since(begun); took != want {
				t.Errorf("keys %v: Open took %v, want %v", keys != nil, took, want)
			}
		})
	}
}

// The key file is looked at once a second. One that the program had read again by itself is not read
// once more.
func TestKeyFile_ReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(n byte) {
		t.Helper()
		if err := (&keyring.Ring{Keys: []keyring.Key{{n}}}).WriteFile(path + ".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		e := openWithKeyFile(t, path)
		defer e.Close()
		reloads := func(want uint64, when string) {
			t.Helper()
			synctest.Wait()
			if c := e.Counters(); c.KeyReloads != want || c.KeyReloadFailures != 0 {
				t.Errorf("%s: %d reloads and %d failures, want %d", when, c.KeyReloads, c.KeyReloadFailures, want)
			}
		}
		write(2)
		time.Sleep(time.Second - time.Since(begun) - time.Nanosecond)
		reloads(0, "within a second")
		time.Sleep(time.Nanosecond)
		reloads(1, "after a second")
		write(3)
		if err := e.ReloadKeys(); err != nil {
			t.Fatal(err)
		}
		reloads(2, "by the program")
		time.Sleep(3 * time.Second)
		reloads(2, "three seconds later")
	})
}

// The messages that were kept until their sender had answered come in its order, with more to follow,
// and then the last call.
func TestKeys_KeptMessagesAndMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := keyring.New()
		x, y := twoLinks(t)
		links := []*script{{Link: x}, {Link: y}}
		nodes := []Node{{ID: 0, MACs: []transport.MAC{x.MAC()}}, {ID: 1, MACs: []transport.MAC{y.MAC()}}}
		for _, l := range links { // what asks all nodes is lost
			l.send = func(frames []transport.Frame) (int, error) {
				if frames[0].Dst == transport.Broadcast {
					return len(frames), nil
				}
				return l.Link.Send(frames)
			}
		}
		var es [2]*Endpoint
		for k := range es {
			e, err := Open(Config{Node: NodeID(k), Nodes: nodes, Spin: -1, Keys: ring}, links[k])
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			es[k] = e
		}
		var mu sync.Mutex
		var calls []string
		if _, err := es[1].OpenPort(1, PortOptions{Receive: func(batch []Message, more bool) {
			mu.Lock()
			defer mu.Unlock()
			call := ""
			for _, m := range batch {
				call += string(m.Payload)
			}
			if more {
				call += "+"
			}
			calls = append(calls, call)
		}}); err != nil {
			t.Fatal(err)
		}
		p, err := es[0].OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !es[1].lockPoll() { // it answers no sooner than both are there
			t.Fatal("no poll lock")
		}
		for _, text := range []string{"a", "b"} {
			if err := p.TrySend(0, To(Addr{Node: 1, Port: 1}), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		es[1].unlockPoll()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"a+", "b+", ""}; !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
	})
}

// A key file that could not be read is read again, though it looks as it did: what was wrong may
// have been its owner, or that this process had too many files open. It is counted once.
func TestKeyFile_ReadAgainAfterAFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	good := (&keyring.Ring{Keys: []keyring.Key{{2}}}).Append(nil)
	written := time.Unix(1_700_000_000, 0)
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&keyring.Ring{Keys: []keyring.Key{{1}}}).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := openWithKeyFile(t, path)
		defer e.Close()
		for _, step := range []struct {
			text              []byte
			reloads, failures uint64
		}{
			{bytes.Repeat([]byte("?"), len(good)), 0, 1},
			{good, 1, 1},
		} {
			write(step.text)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if c := e.Counters(); c.KeyReloads != step.reloads || c.KeyReloadFailures != step.failures {
				t.Errorf("%.9q: %d reloads and %d failures, want %d and %d", step.text,
					c.KeyReloads, c.KeyReloadFailures, step.reloads, step.failures)
			}
		}
	})
}
