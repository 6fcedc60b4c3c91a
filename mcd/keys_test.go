package mcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

func ring(n byte, encrypt bool) *keyring.Ring {
	return &keyring.Ring{Keys: []keyring.Key{{n, 0xff}}, Encrypt: encrypt}
}

func keyed(r *keyring.Ring) func(*mcd.Config) { return func(c *mcd.Config) { c.Keys = r } }

// Messages of all kinds and probes go from any node to any other, with keys as without, the first
// one of each pair too.
func TestKeys_CoverAllKinds(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		es := open(t, 3, 2, keyed(ring(1, encrypt)))
		if n := es[0].MaxPayload(); n != fabric.DefaultMTU-mcd.AuthHeaderLen || es[0].HeaderLen() != mcd.AuthHeaderLen {
			t.Errorf("MaxPayload is %d, HeaderLen %d", n, es[0].HeaderLen())
		}
		var ports []*mcd.Port
		for _, e := range es {
			ports = append(ports, port(t, e, 5))
			if err := e.Join(9); err != nil {
				t.Fatal(err)
			}
		}
		long := strings.Repeat("x", es[0].MaxPayload())
		expect := func(k int, want string) {
			t.Helper()
			buf := make([]byte, len(long))
			n, _, err := ports[k].Recv(limit(t), buf)
			if err != nil || string(buf[:n]) != want {
				t.Fatalf("node %d got %d bytes, %v; want %d", k, n, err, len(want))
			}
		}
		for _, text := range []string{"", "one", long} {
			for nic := range 2 {
				if err := ports[0].SendVia(limit(t), nic, mcd.To(ports[1].Addr()), []byte(text)); err != nil {
					t.Fatal(err)
				}
				expect(1, text)
				for _, to := range []mcd.Dest{mcd.ToGroup(9, 5), mcd.ToAll(5)} {
					if err := ports[0].SendVia(limit(t), nic, to, []byte(text)); err != nil {
						t.Fatal(err)
					}
					expect(1, text)
					expect(2, text)
				}
				if _, err := es[2].Ping(limit(t), mcd.Path{Node: 0, NIC: nic}, mcd.ProbeOptions{Size: es[0].MaxPayload()}); err != nil {
					t.Fatal(err)
				}
			}
			message := append(make([]byte, es[2].Headroom()), text...)
			for range 2 { // it stays as it is, to be sent again
				if n, err := ports[2].TrySendInPlace(0, mcd.To(ports[1].Addr()), message); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				expect(1, text)
			}
		}
		for k, e := range es {
			if c := e.Counters(); c.DropTag+c.DropKey+c.DropReplay+c.DropStale+c.DropBudget+c.DropPlain > 0 {
				t.Errorf("node %d dropped %+v", k, c)
			}
		}
	}
}

// With keys, too, sending and receiving allocate nothing.
func TestKeys_AllocateNothing(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		es := open(t, 2, 1, keyed(ring(1, encrypt)))
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		b, to := make([]byte, 1000), p1.Addr()
		ctx := limit(t)
		inPlace := make([]byte, es[0].Headroom()+1000)
		for name, transmit := range map[string]func() error{
			"Send":           func() error { return p0.Send(ctx, to, b) },
			"TrySendInPlace": func() error { _, err := p0.TrySendInPlace(0, mcd.To(to), inPlace); return err },
		} {
			if n := testing.AllocsPerRun(200, func() {
				if err := transmit(); err != nil {
					t.Fatal(err)
				}
				if _, _, err := p1.Recv(ctx, b); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, encrypt %v: %v allocations", name, encrypt, n)
			}
		}
	}
}

// Nodes of which one has a key, or another one, do not hear each other, and can say why.
func TestKeys_MismatchIsCountedAndSaid(t *testing.T) {
	for _, c := range []struct {
		name          string
		mine, theirs  *keyring.Ring
		mineWhy, want string
		count         func(*mcd.Counters) *uint64
	}{
		{"only here", ring(1, false), nil, "has no key, and this node has one", "has a key, and this node has none",
			func(c *mcd.Counters) *uint64 { return &c.DropPlain }},
		{"another key", ring(1, false), ring(2, false), "has another key than this node", "has another key than this node", nil},
	} {
		es := mcdtest.Open(t, 2, mcdtest.Config{Customize: func(k mcd.NodeID, cfg *mcd.Config) {
			cfg.Keys = []*keyring.Ring{c.mine, c.theirs}[k]
		}})
		for k, want := range []string{c.mineWhy, c.want} {
			// Each has heard of the other: no frame, as discovery does, is believed.
			p := port(t, es[1-k], 3)
			if err := p.Send(limit(t), mcd.Addr{Node: es[k].Node(), Port: 3}, nil); err != nil {
				t.Fatal(err)
			}
			for es[k].KeyMismatch() == nil {
				es[k].Progress()
			}
			if err := es[k].KeyMismatch(); !errors.Is(err, mcd.ErrKeyMismatch) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: node %d says %v, want %q", c.name, k, err, want)
			}
			if n := es[k].Counters(); n.RxMessages != 0 {
				t.Errorf("%s: node %d has received %+v", c.name, k, n)
			}
		}
		if c.count == nil { // both have keys, and are given the same one
			for _, e := range es {
				if err := e.SetKeys(ring(3, false)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := es[0].Ping(limit(t), mcd.Path{Node: 1}, mcd.ProbeOptions{}); err != nil {
				t.Error(err)
			}
			if err := es[0].KeyMismatch(); err != nil {
				t.Errorf("node 1 has answered, and %v", err)
			}
			continue
		}
		if n := es[0].Counters(); *c.count(&n) == 0 {
			t.Errorf("%s: not counted: %+v", c.name, n)
		}
	}
}

// A stranger on the wire sends again whatever it has recorded, to the nodes as they are, and after
// each was opened again. It is never delivered, and live messages are.
func TestKeys_RecordedFramesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attach := oneSwitch(t)
		var recorded []transport.Frame
		var mu sync.Mutex
		stranger := attach(mac(99))
		defer stranger.Close()
		nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}, {ID: 1, MACs: []transport.MAC{mac(2)}}}
		es, ports := make([]*mcd.Endpoint, 2), make([]*mcd.Port, 2)
		start := func(k int) {
			if es[k] != nil {
				_ = es[k].Close()
			}
			tap := frameRecorder{Link: attach(nodes[k].MACs[0]), mu: &mu, frames: &recorded}
			e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1, Keys: ring(1, false)}, &tap)
			if err != nil {
				t.Fatal(err)
			}
			es[k] = e
			ports[k] = port(t, es[k], 1)
		}
		start(0)
		start(1)
		defer func() { _, _ = es[0].Close(), es[1].Close() }()
		buf := make([]byte, 100)
		talk := func(text string) {
			t.Helper()
			for k := range 2 {
				send(t, ports[k], ports[1-k].Addr(), []byte(text))
				if n, _, err := ports[1-k].Recv(limit(t), buf); err != nil || string(buf[:n]) != text {
					t.Fatalf("node %d got %q, %v; want %q", 1-k, buf[:n], err, text)
				}
			}
		}
		replay := func(when string) {
			t.Helper()
			mu.Lock()
			all := slices.Clone(recorded)
			mu.Unlock()
			before := es[0].Counters().RxMessages + es[1].Counters().RxMessages
			for range 2 {
				if n, err := stranger.Send(all); n != len(all) || err != nil {
					t.Fatal(n, err)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
			}
			if after := es[0].Counters().RxMessages + es[1].Counters().RxMessages; after != before {
				t.Errorf("%s: %d messages were delivered again", when, after-before)
			}
			for _, p := range ports { // the switch has learned that both nodes are where the stranger is
				if err := p.SendVia(limit(t), 0, mcd.ToAll(2), nil); err != nil {
					t.Fatal(err)
				}
			}
			talk(when)
		}
		talk("one")
		talk("two")
		replay("as they are")
		start(1)
		replay("node 1 again")
		start(0)
		replay("node 0 again")
		start(0)
		start(1)
		replay("both again")
		if c := es[0].Counters(); c.DropReplay+c.DropStale == 0 {
			t.Errorf("nothing was refused: %+v", c)
		}
	})
}

// frameRecorder records what a link sends.
type frameRecorder struct {
	transport.Link
	mu     *sync.Mutex
	frames *[]transport.Frame
}

func (r *frameRecorder) Send(frames []transport.Frame) (int, error) {
	r.mu.Lock()
	for _, f := range frames {
		f.Payload, f.Headroom = slices.Clone(f.Payload), nil
		*r.frames = append(*r.frames, f)
	}
	r.mu.Unlock()
	return r.Link.Send(frames)
}

func (r *frameRecorder) Unwrap() transport.Link { return r.Link }

// On a network that loses, doubles and reorders frames, with nodes that are opened again under way,
// no message is delivered twice, and those that are sent later arrive.
func TestKeys_BadNetwork(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f, err := fabric.New(fabric.Config{})
			if err != nil {
				t.Fatal(err)
			}
			sw := f.AddSwitch("")
			const size = 3
			var nodes []mcd.Node
			for k := range size {
				nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{mac(byte(k))}})
			}
			var mu sync.Mutex
			got := map[string]int{}
			life := 0
			start := func(k int) (*mcd.Endpoint, *mcd.Port) {
				l, err := f.Attach(sw, fabric.Station{MAC: mac(byte(k))})
				if err != nil {
					t.Fatal(err)
				}
				life++
				bad, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(life))), fault.Config{Loss: 0.15, Duplicate: 0.2, Reorder: 0.2,
					Delay: 0.1, DelayMax: 5 * time.Millisecond, Corrupt: 0.05})
				if err != nil {
					t.Fatal(err)
				}
				e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: nodes, Spin: -1, Keys: ring(1, seed%2 == 1)}, bad)
				if err != nil {
					t.Fatal(err)
				}
				p, err := e.OpenPort(1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
					mu.Lock()
					defer mu.Unlock()
					for i := range batch {
						got[fmt.Sprint(k, " ", string(batch[i].Payload))]++
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				return e, p
			}
			var es [size]*mcd.Endpoint
			var ports [size]*mcd.Port
			for k := range size {
				es[k], ports[k] = start(k)
			}
			rng := rand.New(rand.NewPCG(seed, 0))
			const messages = 600
			for i := range messages {
				from := rng.IntN(size)
				to := (from + 1 + rng.IntN(size-1)) % size
				if err := ports[from].Send(t.Context(), ports[to].Addr(), fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
				if k := rng.IntN(100 * size); k < size {
					_ = es[k].Close()
					es[k], ports[k] = start(k)
				}
			}
			time.Sleep(5 * time.Second)
			for _, e := range es {
				_ = e.Close()
			}
			for what, n := range got {
				if n != 1 {
					t.Errorf("seed %d: node %s was delivered %d times", seed, what, n)
				}
			}
			if len(got) < messages/2 {
				t.Errorf("seed %d: %d of %d messages arrived at 15 %% of loss", seed, len(got), messages)
			}
		})
	}
}

// The key file changes under traffic, as docs/security.md says, and no message is lost.
func TestKeys_RotationLosesNothing(t *testing.T) {
	old, next := keyring.Key{1}, keyring.Key{2}
	path := filepath.Join(t.TempDir(), "key")
	write := func(keys ...keyring.Key) {
		t.Helper()
		r := &keyring.Ring{Keys: keys}
		fresh := path + ".new"
		if err := r.WriteFile(fresh); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	synctest.Test(t, func(t *testing.T) {
		es := open(t, 2, 1, func(c *mcd.Config) { c.KeyFile, c.Spin = path, -1 })
		p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
		steps := [][]keyring.Key{{old, next}, {next, old}, {next}}
		const each = 3000
		buf := make([]byte, 100)
		for i := range each * (len(steps) + 1) {
			if i%each == 0 && i > 0 {
				write(steps[i/each-1]...)
			}
			send(t, p0, p1.Addr(), fmt.Append(nil, i))
			if n, _, err := p1.Recv(limit(t), buf); err != nil || string(buf[:n]) != fmt.Sprint(i) {
				t.Fatalf("message %d: got %q, %v", i, buf[:n], err)
			}
			time.Sleep(time.Millisecond)
		}
		for k, e := range es {
			if c := e.Counters(); c.KeyReloads != uint64(len(steps)) || c.KeyReloadFailures != 0 {
				t.Errorf("node %d: %d reloads and %d failures, want %d", k, c.KeyReloads, c.KeyReloadFailures, len(steps))
			}
		}
		if err := os.WriteFile(path, []byte("no key\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := es[0].ReloadKeys(); !errors.Is(err, keyring.ErrFormat) {
			t.Errorf("a bad file: %v", err)
		}
		time.Sleep(3 * time.Second)
		send(t, p0, p1.Addr(), []byte("still"))
		if n, _, err := p1.Recv(limit(t), buf); err != nil || string(buf[:n]) != "still" {
			t.Errorf("after a bad file: %q, %v", buf[:n], err)
		}
		if c := es[1].Counters(); c.KeyReloadFailures != 1 {
			t.Errorf("%d failures, want the bad file counted once", c.KeyReloadFailures)
		}
	})
}

func TestKeys_Refused(t *testing.T) {
	l := switched(t, 1)[0]
	defer l.Close()
	for _, c := range []struct {
		cfg  mcd.Config
		want string
	}{
		{mcd.Config{Keys: ring(1, false), KeyFile: "x"}, "both set"},
		{mcd.Config{Keys: &keyring.Ring{}}, "0 keys"},
		{mcd.Config{KeyFile: "/nowhere/key"}, "no such file"},
	} {
		if _, err := mcd.Open(c.cfg, l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	e := open(t, 1, 1)[0]
	if err := e.SetKeys(ring(1, false)); !errors.Is(err, mcd.ErrNoKeys) {
		t.Errorf("SetKeys without keys: %v", err)
	}
	if err := e.ReloadKeys(); !errors.Is(err, mcd.ErrNoKeys) {
		t.Errorf("ReloadKeys without keys: %v", err)
	}
	k := open(t, 1, 1, keyed(ring(1, false)))[0]
	for _, none := range []*keyring.Ring{nil, {}} {
		if err := k.SetKeys(none); !errors.Is(err, keyring.ErrFormat) {
			t.Errorf("SetKeys of none: %v", err)
		}
	}
	_ = k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- k.SetKeys(ring(2, false)) }()
	select {
	case err := <-done:
		if !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("SetKeys of a closed endpoint: %v", err)
		}
	case <-ctx.Done():
		t.Error("SetKeys of a closed endpoint does not return")
	}
}
