package rawnet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
)

// What is closed takes no memory, though its deadlines are far ahead.
func TestClose_LeavesNoTimer(t *testing.T) {
	c := open(t, options{spin: 20 * time.Microsecond, bare: true})
	const each = 50
	far := time.Now().Add(time.Hour)
	alive := map[string][]func() bool{}
	closed := func(kind string, c interface{ Close() error }, isAlive func() bool) {
		must(t, c.Close())
		alive[kind] = append(alive[kind], isAlive)
	}
	for range each {
		a, b := c.pair(t, "x")
		must(t, a.SetReadDeadline(far))
		must(t, b.SetWriteDeadline(far))
		closed("read", a, isAlive(a))
		closed("write", b, isAlive(b))
		l, err := c.nets[0].Listen("y")
		must(t, err)
		must(t, l.SetDeadline(far))
		closed("accept", l, isAlive(l))
		p, err := c.nets[0].ListenPacket("")
		must(t, err)
		must(t, p.SetReadDeadline(far))
		closed("read of packets", p, isAlive(p))
		p, err = c.nets[0].ListenPacket("")
		must(t, err)
		must(t, p.SetWriteDeadline(far))
		closed("write of packets", p, isAlive(p))
	}
	for kind, all := range alive {
		count := 0
		for range 10 {
			runtime.GC()
			count = 0
			for _, is := range all {
				if is() {
					count++
				}
			}
			if count <= each/5 { // memory that is used again may hold the last few
				break
			}
		}
		if count > each/5 {
			t.Errorf("deadline of %s: %d of %d that are closed take memory", kind, count, each)
		}
	}
}

func isAlive[T any](p *T) func() bool {
	w := weak.Make(p)
	return func() bool { return w.Value() != nil }
}

// A deadline that is moved in the instant in which it passes is the new one.
func TestConn_DeadlineMovesAsItPasses(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		const rounds = 200
		_, err := b.Write(make([]byte, rounds))
		must(t, err)
		for range rounds {
			must(t, a.SetReadDeadline(time.Now().Add(time.Second)))
			time.Sleep(time.Second)
			must(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
			synctest.Wait()
			_, err := a.Read(make([]byte, 1))
			must(t, err)
		}
	})
}

// plainContext is a context of a kind of its own: one that is derived from it has a goroutine.
type plainContext struct {
	context.Context
	done chan struct{}
}

func (c plainContext) Done() <-chan struct{} { return c.done }

// A dial leaves nothing behind in its context.
func TestDial_LeavesNothingInItsContext(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		l, err := c.nets[1].Listen("x")
		must(t, err)
		ctx := plainContext{t.Context(), make(chan struct{})}
		before := runtime.NumGoroutine()
		const dials = 20
		for range dials {
			a, err := c.nets[0].DialContext(ctx, rawnet.Network, "1:x")
			must(t, err)
			b, err := l.Accept()
			must(t, err)
			must(t, errors.Join(a.Close(), b.Close()))
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > dials/2 {
			t.Errorf("%d goroutines are left of %d dials", n, dials)
		}
	})
}

// A setting that makes no sense is refused, and says which; the least that does is taken.
func TestOpen_Config(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		must(t, c.nets[0].Close())
		for want, cfg := range map[string]rawnet.Config{
			"Port and Config.PacketPort are both 9":   {Port: 9, PacketPort: 9},
			"Port and Config.PacketPort are both 251": {PacketPort: rawnet.DefaultPort},
			"Window 4095: want 4096 bytes or more":    {Window: rawnet.MinWindow - 1},
			"Backlog -1":                              {Backlog: -1},
			"MaxConns -1":                             {MaxConns: -1},
			"MaxConns -2":                             {Backlog: 1, MaxConns: -2},
			`Names has "5"`:                           {Names: map[string]mcd.NodeID{"5": 1}},
			`Names has "a:b"`:                         {Names: map[string]mcd.NodeID{"a:b": 1, "c": 1}},
			`Names has ""`:                            {Names: map[string]mcd.NodeID{"": 1}},
		} {
			n, err := rawnet.Open(c.eps[0], cfg)
			if err == nil || !strings.Contains(err.Error(), "rawnet: Config.") || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, %v: want %q", cfg, n, err, want)
			}
		}
		for _, cfg := range []rawnet.Config{{}, {Window: rawnet.MinWindow}, {Backlog: 1, MaxConns: 2}, {Port: 8, PacketPort: 9}} {
			n, err := rawnet.Open(c.eps[0], cfg)
			must(t, err)
			if _, err := rawnet.Open(c.eps[0], cfg); !errors.Is(err, mcd.ErrPortBusy) {
				t.Errorf("a second one: %v", err)
			}
			c.nets[0] = n
			l, err := n.Listen("x")
			must(t, err)
			a, err := n.Dial("", "0:x")
			must(t, err)
			b, err := l.Accept()
			must(t, err)
			must(t, errors.Join(a.Close(), b.Close(), n.Close()))
		}
	})
}

// The ports are those of docs/wire-format.md: nodes of all versions find each other.
func TestPorts(t *testing.T) {
	if rawnet.DefaultPort != 251 || rawnet.DefaultPacketPort != 250 {
		t.Errorf("%d for connections, %d for packets", rawnet.DefaultPort, rawnet.DefaultPacketPort)
	}
}

// A ReadFrom that has ended takes no packet any more: the next one gets it.
func TestPacketConn_ReadThatHasEndedTakesNothing(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		p, err := c.nets[0].ListenPacket("self")
		must(t, err)
		done := make(chan error)
		one := make([]byte, 1)
		go func() { _, _, err := p.ReadFrom(one); done <- err }()
		synctest.Wait()
		must(t, c.eps[0].Close())
		isOp(t, <-done, "read", net.ErrClosed, "")
		_, err = p.WriteTo([]byte("x"), p.LocalAddr())
		must(t, err)
		if n, _, err := p.ReadFrom(one); n != 1 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// Packets that have waited in many connections leave no memory behind once they were read.
func TestPacketConn_LeavesNoMemory(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		inUse := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := inUse()
		var conns []*rawnet.PacketConn
		for i := range 100 {
			p, err := c.nets[0].ListenPacket(fmt.Sprint(i))
			must(t, err)
			for range 256 {
				_, err := p.WriteTo([]byte("x"), p.LocalAddr())
				must(t, err)
			}
			conns = append(conns, p)
		}
		full := inUse() - before
		for _, p := range conns {
			for range 256 {
				_, _, err := p.ReadFrom(nil)
				must(t, err)
			}
			must(t, p.Close())
		}
		if left := inUse() - before; left > full/10 {
			t.Errorf("%d bytes are left of %d", left, full)
		}
	})
}
