package rawnet_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
)

// A client may start before its server: it is connected a tenth of a second after somebody listens,
// also where the node itself was not there before.
func TestDialWait(t *testing.T) {
	for _, how := range []string{"no listener", "no node", "left", "another program", "leaves"} {
		bubble(t, options{}, func(t *testing.T, c *cluster) {
			switch how {
			case "no listener":
			case "no node":
				c.faults[1].Cut(true)
			default:
				must(t, c.nets[1].Close())
			}
			other := func(d time.Duration) { // another program's port
				domain, err := memfifo.Open(c.eps[1], memfifo.Config{Port: rawnet.DefaultPort})
				must(t, err)
				time.Sleep(d)
				must(t, domain.Close())
			}
			type dialed struct {
				conn net.Conn
				err  error
				at   time.Time
			}
			done := make(chan dialed)
			go func() {
				conn, err := c.nets[0].DialWait(t.Context(), rawnet.Network, "1:late")
				done <- dialed{conn, err, time.Now()}
			}()
			switch how {
			case "another program":
				other(4 * memfifo.DefaultPeerTimeout)
			case "leaves":
				for range 4 {
					other(memfifo.DefaultPeerTimeout / 2)
				}
			default:
				time.Sleep(4 * memfifo.DefaultPeerTimeout)
			}
			c.faults[1].Cut(false)
			if how != "no listener" && how != "no node" {
				n, err := rawnet.Open(c.eps[1], rawnet.Config{})
				must(t, err)
				c.nets[1] = n
			}
			l, err := c.nets[1].Listen("late")
			must(t, err)
			there := time.Now()
			d := <-done
			must(t, d.err)
			if wait := d.at.Sub(there); wait > memfifo.DefaultPeerTimeout || how == "no listener" && wait > 110*time.Millisecond {
				t.Errorf("%s: connected after %v", how, wait)
			}
			_, err = l.Accept()
			must(t, err)
			must(t, d.conn.Close())
		})
	}
}

// A node whose port is another program's answers, and nobody answers the dial: it ends all the same.
func TestDial_NobodyAnswersAtThePort(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		must(t, c.nets[1].Close())
		d, err := memfifo.Open(c.eps[1], memfifo.Config{Port: rawnet.DefaultPort})
		must(t, err)
		defer d.Close()
		begun := time.Now()
		_, err = c.nets[0].Dial("rawlane", "1:x")
		isOp(t, err, "dial", syscall.ETIMEDOUT, "node 1 is up, and what it has on port 251 does not answer")
		if took := time.Since(begun); took < 2*memfifo.DefaultPeerTimeout || took > 2*memfifo.DefaultPeerTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		if n := c.nets[0].Counters().Conns; n != 0 {
			t.Errorf("%d connections are left", n)
		}
		must(t, c.nets[0].Close()) // the dial has told it
	})
}

// What does not pass is said at once, and the context's end says what it has waited for.
func TestDialWait_Errors(t *testing.T) {
	bubble(t, options{nodes: 3}, func(t *testing.T, c *cluster) {
		n := c.nets[0]
		begun := time.Now()
		_, err := n.DialWait(t.Context(), "rawlane", "9:x")
		isOp(t, err, "dial", mcd.ErrUnknownNode, "node 9")
		_, err = n.DialWait(t.Context(), "udp", "1:x")
		isOp(t, err, "dial", net.UnknownNetworkError("udp"), "")
		must(t, c.nets[2].Close())
		d, err := memfifo.Open(c.eps[2], memfifo.Config{Port: rawnet.DefaultPort})
		must(t, err)
		defer d.Close()
		refuse := []byte("\x23\x00\x04\x00........") // of version 2
		_, err = d.Handle(1, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, rec []byte) {
			must(t, from.Post(1, 0, append(refuse[:4], rec[4:12]...)))
		}})
		must(t, err)
		_, err = n.DialWait(t.Context(), "rawlane", "2:x")
		isOp(t, err, "dial", syscall.ECONNREFUSED, "update the older")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := n.Counters().Dialed
		_, err = n.DialWait(ctx, "rawlane", "1:nobody")
		isOp(t, err, "dial", context.DeadlineExceeded, "1:nobody")
		isOp(t, err, "dial", context.DeadlineExceeded, "nobody listens")
		if dials := n.Counters().Dialed - before; dials > 610 || dials < 500 {
			t.Errorf("%d dials in a minute, want ten a second", dials)
		}
		_, err = n.DialWait(ctx, "rawlane", "1:nobody")
		isOp(t, err, "dial", context.DeadlineExceeded, "1:nobody")

		done := make(chan error)
		go func() { _, err := n.DialWait(t.Context(), "rawlane", "1:nobody"); done <- err }()
		time.Sleep(time.Second) // now it dials each tenth of a second
		closed := time.Now()
		must(t, n.Close())
		isOp(t, <-done, "dial", net.ErrClosed, "")
		if took := time.Since(closed); took != 0 {
			t.Errorf("it goes on for %v", took)
		}
	})
}

// A node that is dialed the moment it is down, as its connections' readers do, is missed again when
// it dies again: it is probed from then on.
func TestDial_TheMomentItsNodeIsDown(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		_, err := c.nets[1].Listen("x")
		must(t, err)
		const rounds = 5
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for round := range rounds {
					conn, err := c.nets[0].Dial(rawnet.Network, "1:x")
					if err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
					_, err = conn.Read(make([]byte, 1))
					if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Reason != memfifo.Silent {
						t.Errorf("round %d: %v, want that node 1 has not answered", round, err)
					}
					_ = conn.Close()
				}
			})
		}
		for range rounds {
			time.Sleep(time.Second)
			c.faults[1].Cut(true)
			time.Sleep(3 * memfifo.DefaultPeerTimeout / 2)
			c.faults[1].Cut(false)
		}
		all.Wait()
	})
}

// The longest timeout that there is, for those who want none, is no short one.
func TestPeerTimeout_Longest(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{PeerTimeout: math.MaxInt64}}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		c.faults[0].Cut(true)
		_, err := a.Write([]byte("x"))
		must(t, err)
		time.AfterFunc(time.Minute, func() { c.faults[0].Cut(false) })
		must(t, c.nets[0].Close())
		if got, err := io.ReadAll(b); string(got) != "x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A listener that closes while it accepts refuses the dial: DialWait waits for the next one.
func TestDialWait_TheListenerCloses(t *testing.T) {
	for range 10 { // in some the dial ends between the two records, and the connection is reset
		var mute atomic.Bool
		o := options{cfg: rawnet.Config{Window: 256 << 10}, wrap: mutes(1, &mute)}
		bubble(t, o, func(t *testing.T, c *cluster) {
			c.fill(t, 1, func() { mute.Store(true) })
			l, err := c.nets[1].Listen("late")
			must(t, err)
			done := make(chan error, 1)
			go func() { _, err := c.nets[0].DialWait(t.Context(), "", "1:late"); done <- err }()
			synctest.Wait() // there is no room for the answer
			must(t, l.Close())
			mute.Store(false)
			time.Sleep(time.Second)
			_, err = c.nets[1].Listen("late")
			must(t, err)
			must(t, <-done)
		})
	}
}

// looked is a context that does something where its end is looked at.
type looked struct {
	context.Context
	do func()
}

func (c looked) Err() error { c.do(); return c.Context.Err() }

// A dial whose stream has ended in the instant before it asks the other node says why: the Net is being
// closed, or the node has left, and then it dials once more.
func TestDial_EndsBeforeItAsks(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		looks := 0
		conn, err := c.nets[0].DialContext(looked{t.Context(), func() {
			if looks++; looks != 2 {
				return
			}
			c.faults[1].Cut(true)
			_, err := a.Write([]byte("lost")) // Close waits for the answer
			must(t, err)
			go func() { _ = c.nets[0].Close() }()
			synctest.Wait()
		}}, rawnet.Network, "1:x")
		isOp(t, err, "dial", net.ErrClosed, "")
		if conn != nil {
			t.Error("it has connected")
		}
	})
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		c.pair(t, "x")
		looks := 0
		conn, err := c.nets[0].DialContext(looked{t.Context(), func() {
			if looks++; looks != 2 {
				return
			}
			must(t, c.nets[1].Close())
			n, err := rawnet.Open(c.eps[1], rawnet.Config{})
			must(t, err)
			c.nets[1] = n
			_, err = n.Listen("x")
			must(t, err)
			other, err := c.nets[0].Dial(rawnet.Network, "1:x") // goes on with the node
			must(t, err)
			must(t, other.Close())
		}}, rawnet.Network, "1:x")
		must(t, err)
		must(t, conn.Close())
		synctest.Wait()
		if s := c.nets[1].Counters(); s.Accepted != 2 || s.NoStream > 0 {
			t.Errorf("%+v", s)
		}
	})
}
