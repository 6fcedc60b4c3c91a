package mcd_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// blockingLink does not return from its first Send before it is let go.
type blockingLink struct {
	transport.Link
	once  sync.Once
	letGo chan struct{}
}

func (l *blockingLink) Send(frames []transport.Frame) (int, error) {
	l.once.Do(func() { <-l.letGo })
	return l.Link.Send(frames)
}

func (l *blockingLink) Unwrap() transport.Link { return l.Link }

// A program sends to more neighbours than can be met at once, while the endpoint is still busy with
// its first contact frame. Contact with all of them follows, and Close returns.
func TestKeys_ManyNeighboursAtTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &blockingLink{Link: switched(t, 1)[0], letGo: make(chan struct{})}
		second := switched(t, 1)[0]
		nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{first.MAC(), second.MAC()}}}
		const others = 200
		for k := range others {
			nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k + 1), MACs: []transport.MAC{{2, 9, 1, 0, 0, byte(k)}, {2, 9, 2, 0, 0, byte(k)}}})
		}
		e, err := mcd.Open(mcd.Config{Nodes: nodes, Spin: -1, Keys: ring(1, false)}, first, second)
		if err != nil {
			t.Fatal(err)
		}
		p := port(t, e, 1)
		for k := range others {
			if err := p.TrySend(1, mcd.To(mcd.Addr{Node: mcd.NodeID(k + 1), Port: 1}), nil); err != nil {
				t.Fatal(err)
			}
		}
		close(first.letGo)
		time.Sleep(3 * time.Second)
		if n := e.Counters().TxContacts; n < 2+64 {
			t.Errorf("%d contact frames, want one for each link and more for 64 neighbours", n)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// lookedAt is a link that calls a function when an endpoint asks for its MTU first.
type lookedAt struct {
	transport.Link
	once sync.Once
	f    func()
}

func (l *lookedAt) MTU() int {
	l.once.Do(l.f)
	return l.Link.MTU()
}

func (l *lookedAt) Unwrap() transport.Link { return l.Link }

// A key file that is replaced while Open reads it is read again.
func TestKeys_FileReplacedDuringOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(n byte) {
		fresh := path + ".new"
		if err := (&keyring.Ring{Keys: []keyring.Key{{n}}}).WriteFile(fresh); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	synctest.Test(t, func(t *testing.T) {
		l := &lookedAt{Link: switched(t, 1)[0], f: func() { write(2) }}
		e, err := mcd.Open(mcd.Config{KeyFile: path, Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		time.Sleep(3 * time.Second)
		if c := e.Counters(); c.KeyReloads != 1 || c.KeyReloadFailures != 0 {
			t.Errorf("%d reloads and %d failures, want the file that came during Open read", c.KeyReloads, c.KeyReloadFailures)
		}
	})
}

// What the program does with its ring after it gave it away changes no key.
func TestKeys_RingIsCopied(t *testing.T) {
	mine := ring(1, false)
	es := open(t, 2, 1, func(c *mcd.Config) {
		c.Keys = ring(1, false)
		if c.Node == 1 {
			c.Keys = mine
		}
	})
	clear(mine.Keys)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	send(t, p0, p1.Addr(), []byte("hello"))
	buf := make([]byte, 10)
	if n, _, err := p1.Recv(limit(t), buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}

// contacts is a link that notes the tags of the contact frames that are sent: of those with a
// response, and of challenges alone.
type contacts struct {
	transport.Link
	mu                    sync.Mutex
	responses, challenges []transport.OptionalTag
}

func (c *contacts) Send(frames []transport.Frame) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		var h wire.Header
		var a wire.Auth
		var body wire.ContactBody
		if wire.ParseAuth(frames[i].Payload, &h, &a) != wire.OK || h.Kind != wire.Contact || !body.Parse(h.Payload) {
			continue
		}
		if body.Has(wire.ContactResponse) {
			c.responses = append(c.responses, frames[i].OptionalTag)
		} else {
			c.challenges = append(c.challenges, frames[i].OptionalTag)
		}
	}
	return c.Link.Send(frames)
}

func (c *contacts) Unwrap() transport.Link { return c.Link }

// Contact takes the routes as messages do, and a response goes back where its challenge came from:
// the route there may be another one, or dead.
func TestKeys_ContactTakesTheRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var links [2]*contacts
		for k, l := range switched(t, 2) {
			links[k] = &contacts{Link: l}
		}
		es := mcdtest.OpenLinks(t, mcdtest.Config{
			Endpoint: mcd.Config{Cluster: cluster, Keys: ring(1, false), Spin: -1},
			Customize: func(node mcd.NodeID, cfg *mcd.Config) {
				vid := transport.VID(2 + node)
				cfg.Router = table(t, routeTo(links[1-node].MAC(), vid), routeTo(transport.Broadcast, vid))
			},
		}, []transport.Link{links[0]}, []transport.Link{links[1]})
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		send(t, p0, p1.Addr(), []byte("there"))
		expect(t, p1, p0.Addr(), "there")
		send(t, p1, p0.Addr(), []byte("back"))
		expect(t, p0, p1.Addr(), "back")
		for k, l := range links {
			l.mu.Lock()
			own, others := by(transport.VID(2+k)), by(transport.VID(3-k))
			if !slices.Contains(l.responses, others) {
				t.Errorf("node %d: responses with %v, and none with that of the other's challenge, %v", k, l.responses, others)
			}
			if !slices.Contains(l.challenges, own) || slices.Contains(l.challenges, transport.OptionalTag{}) {
				t.Errorf("node %d: challenges with %v, want the routes' tag, %v", k, l.challenges, own)
			}
			l.mu.Unlock()
		}
	})
}

// The frames by which a node is got to know are counted, those with another key not among them.
func TestKeys_ContactsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := open(t, 3, 1, func(c *mcd.Config) {
			c.Keys, c.Spin = ring(1+byte(c.Node)/2, false), -1 // node 2 has another key
		})
		send(t, port(t, es[0], 1), port(t, es[1], 1).Addr(), []byte("hello"))
		time.Sleep(3 * time.Second)
		for k, e := range es {
			if c := e.Counters(); (c.RxContacts > 0) != (k < 2) || c.TxContacts == 0 || c.DropKey == 0 {
				t.Errorf("node %d: received %d contact frames, sent %d; %d with another key",
					k, c.RxContacts, c.TxContacts, c.DropKey)
			}
		}
	})
}

// mute is a link whose endpoint says nothing about itself: its contact frames are lost.
type mute struct{ transport.Link }

func (m *mute) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		var h wire.Header
		var a wire.Auth
		if wire.ParseAuth(frames[i].Payload, &h, &a) == wire.OK && h.Kind == wire.Contact {
			continue
		}
		if _, err := m.Link.Send(frames[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(frames), nil
}

func (m *mute) Unwrap() transport.Link { return m.Link }

// What is kept until its sender has answered is counted when the endpoint closes, and when its key is
// removed.
func TestKeys_WhatIsKeptIsCounted(t *testing.T) {
	for name, end := range map[string]func(*mcd.Endpoint) error{
		"closed":      (*mcd.Endpoint).Close,
		"key removed": func(e *mcd.Endpoint) error { return e.SetKeys(ring(2, false)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			links := switched(t, 2)
			es := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Keys: ring(1, false), Spin: -1}},
				[]transport.Link{&mute{links[0]}}, []transport.Link{links[1]})
			p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
			for range 3 {
				send(t, p0, p1.Addr(), []byte("kept"))
			}
			synctest.Wait()
			before := es[1].Counters().DropStale
			if err := end(es[1]); err != nil {
				t.Fatal(err)
			}
			if c := es[1].Counters(); before != 0 || c.DropStale != 3 {
				t.Errorf("%s: %d stale messages, and %d before, want 3 and 0", name, c.DropStale, before)
			}
		})
	}
}

// A receiver that had nothing to do for long asks a new sender again and again who it is, and not
// for ever: challenges and their answers are lost as all frames are.
func TestKeys_ChallengesOfAReceiverAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		sender, receiver := &mute{links[0]}, &contacts{Link: links[1]}
		nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{sender.MAC()}}, {ID: 1, MACs: []transport.MAC{receiver.MAC()}}}
		start := func(node mcd.NodeID, l transport.Link) *mcd.Endpoint {
			e, err := mcd.Open(mcd.Config{Node: node, Nodes: nodes, Spin: -1, Keys: ring(1, false)}, l)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			return e
		}
		port(t, start(1, receiver), 1)
		time.Sleep(10 * time.Second)
		challenges := func() int {
			receiver.mu.Lock()
			defer receiver.mu.Unlock()
			return len(receiver.challenges)
		}
		before := challenges()
		send(t, port(t, start(0, sender), 1), mcd.Addr{Node: 1, Port: 1}, []byte("hello"))
		synctest.Wait()
		if n := challenges() - before; n != 1 {
			t.Fatalf("%d challenges at once, want 1", n)
		}
		time.Sleep(40 * time.Millisecond) // after 5, 15 and 35 ms
		if n := challenges() - before; n != 4 {
			t.Errorf("%d challenges in 40 ms, want 4", n)
		}
		time.Sleep(10 * time.Second)
		last := challenges()
		time.Sleep(10 * time.Second)
		if n := challenges() - last; n != 0 {
			t.Errorf("%d challenges after 10 s, want none", n)
		}
	})
}

// Probes of any length have their replies, with encrypted payloads, too.
func TestKeys_ProbesOfAnyLength(t *testing.T) {
	es := open(t, 2, 1, keyed(ring(1, true)))
	for size := mcd.MinProbe; size <= es[0].MaxPayload(); size++ {
		if _, err := es[0].Ping(limit(t), mcd.Path{Node: 1}, mcd.ProbeOptions{Size: size}); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	if c := es[0].Counters(); c.DropTag != 0 {
		t.Errorf("%d replies were taken for forged ones", c.DropTag)
	}
}
