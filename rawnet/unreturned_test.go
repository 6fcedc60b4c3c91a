package rawnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// polled is two nodes that receive only when they are polled, and a port of node 1 whose function
// does not return.
type polled struct {
	cluster
	bad *mcd.Port // of node 0: what it sends ends the goroutine that polls node 1
}

func openPolled(t *testing.T, end func()) *polled {
	t.Helper()
	const badPort = 9
	x, y := linktest.Pipe()
	cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: time.Minute}} // in real time: waits poll
	p := &polled{}
	p.eps = mcdtest.OpenLinks(t, cfg, []transport.Link{x}, []transport.Link{y})
	for node, ep := range p.eps {
		n, err := rawnet.Open(ep, rawnet.Config{Window: 4 << 20, MaxConns: 8 - 7*node, PeerTimeout: time.Minute})
		must(t, err)
		p.nets = append(p.nets, n)
	}
	var err error
	p.bad, err = p.eps[0].OpenPort(badPort, mcd.PortOptions{})
	must(t, err)
	_, err = p.eps[1].OpenPort(badPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if len(batch) > 0 { // else the batch has ended
			end()
		}
	}})
	must(t, err)
	t.Cleanup(func() {
		p.while(t, func() error { return errors.Join(p.nets[0].Close(), p.nets[1].Close()) })
	})
	return p
}

// while polls until a function has returned.
func (p *polled) while(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		p.settle()
		select {
		case err := <-done:
			must(t, err)
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}

func (p *polled) settle() {
	for p.eps[0].Progress() || p.eps[1].Progress() {
	}
}

// pollPatience is how long one wait is given to poll: on a busy machine it may sleep in place of that.
const pollPatience = 20 * time.Millisecond

// interrupt calls a function of node 1 that waits until a time: what it polls first does not return.
// If it has slept, it is called again.
func (p *polled) interrupt(t *testing.T, wait func(until time.Time)) {
	t.Helper()
	must(t, p.bad.Send(t.Context(), mcd.Addr{Node: 1, Port: p.bad.ID()}, []byte("bad")))
	for begun := time.Now(); ; {
		returned, done := false, make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			wait(time.Now().Add(pollPatience))
			returned = true
		}()
		<-done
		if !returned {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("no wait has polled")
		}
	}
}

// Another port's function that panics, or ends its goroutine, in one that polls in a wait for a
// connection, a packet or their bytes unlocks nothing that is not locked, which would end the
// process, and leaves nothing of the wait behind.
func TestWaits_ThatDoNotReturn(t *testing.T) {
	ends := noreturn.Ways
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			p := openPolled(t, end)
			t.Run("Accept and Read", p.acceptAndRead)
			t.Run("Dial", p.dial)
			t.Run("ReadFrom", p.readFrom)
			t.Run("Write", p.write)
		})
	}
}

func (p *polled) acceptAndRead(t *testing.T) {
	l, err := p.nets[1].Listen("x")
	must(t, err)
	p.interrupt(t, func(until time.Time) {
		_ = l.SetDeadline(until) // it is open
		_, _ = l.Accept()
	})
	must(t, l.SetDeadline(time.Time{}))
	var a, b net.Conn
	p.while(t, func() (err error) { a, err = p.nets[0].Dial(rawnet.Network, "1:x"); return err })
	p.while(t, func() (err error) { b, err = l.Accept(); return err })
	must(t, l.Close())
	memory, got := make([]byte, 4), make([]byte, 4)
	p.interrupt(t, func(until time.Time) {
		_ = b.SetReadDeadline(until)
		_, _ = b.Read(memory)
	})
	must(t, b.SetReadDeadline(time.Time{}))
	p.while(t, func() error { _, err := a.Write([]byte("data")); return err })
	p.settle()
	p.while(t, func() error { _, err := io.ReadFull(b, got); return err })
	if string(got) != "data" || string(memory) != "\x00\x00\x00\x00" {
		t.Errorf("%q was read, and %q came to the Read before", got, memory)
	}
	p.while(t, func() error { return errors.Join(a.Close(), b.Close()) })
}

// A Dial leaves no connection, of which there may be one.
func (p *polled) dial(t *testing.T) {
	l, err := p.nets[0].Listen("x")
	must(t, err)
	p.interrupt(t, func(until time.Time) {
		ctx, cancel := context.WithDeadline(t.Context(), until)
		defer cancel()
		_, _ = p.nets[1].DialContext(ctx, rawnet.Network, "0:x")
	})
	p.settle()
	var a net.Conn
	p.while(t, func() (err error) { a, err = p.nets[1].Dial(rawnet.Network, "0:x"); return err })
	p.while(t, func() error { return errors.Join(a.Close(), l.Close()) })
}

func (p *polled) readFrom(t *testing.T) {
	to, err := p.nets[1].ListenPacket("x")
	must(t, err)
	from, err := p.nets[0].ListenPacket("")
	must(t, err)
	memory := make([]byte, 4)
	p.interrupt(t, func(until time.Time) {
		_ = to.SetReadDeadline(until)
		_, _, _ = to.ReadFrom(memory)
	})
	must(t, to.SetReadDeadline(time.Time{}))
	p.while(t, func() error { _, err := from.WriteTo([]byte("data"), to.LocalAddr()); return err })
	p.settle()
	must(t, to.SetReadDeadline(time.Now()))
	if _, _, err := to.ReadFrom(memory); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	must(t, to.SetReadDeadline(time.Time{}))
	if n, _, err := to.ReadFrom(memory); err != nil || string(memory[:n]) != "data" {
		t.Errorf("%q, %v", memory[:n], err)
	}
	must(t, errors.Join(to.Close(), from.Close()))
}

// A Write of which nobody knows how much has gone resets its connection at both ends, and leaves
// nothing of it: another one works, of which there may be one.
func (p *polled) write(t *testing.T) {
	l, err := p.nets[0].Listen("x")
	must(t, err)
	dial := func() (a, b net.Conn) {
		p.while(t, func() (err error) { a, err = p.nets[1].Dial(rawnet.Network, "0:x"); return err })
		p.while(t, func() (err error) { b, err = l.Accept(); return err })
		return a, b
	}
	a, b := dial()
	p.interrupt(t, func(until time.Time) {
		_ = a.SetWriteDeadline(until)
		_, _ = a.Write(make([]byte, 4<<20)) // more than fits while nobody confirms
	})
	must(t, a.SetWriteDeadline(time.Time{}))
	for name, op := range map[string]func([]byte) (int, error){"write": a.Write, "read": a.Read} {
		if n, err := op([]byte{1}); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	p.while(t, func() error {
		if _, err := io.Copy(io.Discard, b); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the other end: %v", err)
		}
		return errors.Join(a.Close(), b.Close())
	})
	a, b = dial()
	p.while(t, func() error { _, err := a.Write([]byte("data")); return err })
	got := make([]byte, 4)
	p.while(t, func() error { _, err := io.ReadFull(b, got); return err })
	if string(got) != "data" {
		t.Errorf("%q", got)
	}
	p.while(t, func() error { return errors.Join(a.Close(), b.Close(), l.Close()) })
}
