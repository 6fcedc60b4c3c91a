package rawnet_test

import (
	"context"
	"net"
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
	for _, how := range []string{"no listener", "no node", "left"} {
		bubble(t, options{}, func(t *testing.T, c *cluster) {
			switch how {
			case "no node":
				c.faults[1].Cut(true)
			case "left":
				must(t, c.nets[1].Close())
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
			time.Sleep(4 * memfifo.DefaultPeerTimeout)
			c.faults[1].Cut(false)
			if how == "left" {
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
		if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		if n := c.nets[0].Counters().Conns; n != 0 {
			t.Errorf("%d connections are left", n)
		}
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
		synctest.Wait()
		must(t, n.Close())
		isOp(t, <-done, "dial", net.ErrClosed, "")
	})
}
