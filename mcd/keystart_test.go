package mcd_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
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
