package rawnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
)

// A Write that its deadline ends while it waits for room in the network has sent what it says, and
// the next one goes on behind that.
func TestWrite_SaysWhatWasSent(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 16 << 20}}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		got := make(chan []byte)
		go func() { data, _ := io.ReadAll(b); got <- data }()
		data := make([]byte, 2<<20)
		for i := range data {
			data[i] = byte(i ^ i>>8 ^ i>>16)
		}
		sent, cut := 0, 0
		for sent < len(data) {
			c.faults[0].Cut(cut < 5)
			must(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
			n, err := a.Write(data[sent:])
			if sent += n; err != nil {
				isOp(t, err, "write", os.ErrDeadlineExceeded, "")
				cut++
			}
			c.faults[0].Cut(false)
			must(t, a.SetWriteDeadline(time.Time{}))
			synctest.Wait()
		}
		must(t, a.Close())
		if all := <-got; !bytes.Equal(all, data) || cut < 5 {
			t.Errorf("%d bytes came, not the %d that were written; %d deadlines", len(all), len(data), cut)
		}
	})
}

// Writes that fail take no credit with them: a window's bytes can be written afterwards.
func TestWrite_ThatFailsTakesNoCredit(t *testing.T) {
	const window = 256 << 10
	bubble(t, options{cfg: rawnet.Config{Window: window}}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		c.stuff(t)
		for range 20 {
			must(t, a.SetWriteDeadline(time.Now().Add(time.Millisecond)))
			n, err := a.Write(make([]byte, window))
			isOp(t, err, "write", os.ErrDeadlineExceeded, "")
			if n != 0 {
				t.Errorf("%d bytes were written where there is no room", n)
			}
		}
		c.faults[0].Cut(false)
		must(t, a.SetWriteDeadline(time.Now().Add(time.Minute)))
		_, err := a.Write(make([]byte, window))
		must(t, err)
	})
}

// A dial whose record finds no room ends with its context, and nobody hears of it; and with the
// node's death, as one that was sent does.
func TestDial_ThatFindsNoRoom(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
		_, err := c.nets[1].Listen("x")
		must(t, err)
		c.stuff(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = c.nets[0].DialContext(ctx, rawnet.Network, "1:x")
		isOp(t, err, "dial", context.DeadlineExceeded, "")
		c.faults[0].Cut(false)
		time.Sleep(time.Second)
		if s := c.nets[1].Counters(); s.NoStream != 0 || s.Conns != 8 || c.nets[0].Counters().Conns != 8 {
			t.Errorf("%+v", s)
		}
		c.stuff(t)
		begun := time.Now()
		_, err = c.nets[0].Dial(rawnet.Network, "1:x")
		isOp(t, err, "dial", syscall.ETIMEDOUT, "node 1 has not answered for 2s")
		isOp(t, err, "dial", memfifo.ErrPeerDown, "is the node up")
		if took := time.Since(begun); took > 2*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// A Net that closes ends a dial that waits for its answer, at once.
func TestDial_EndsWithTheNet(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		c.faults[1].Cut(true)
		done := make(chan error)
		go func() { _, err := c.nets[0].Dial(rawnet.Network, "1:x"); done <- err }()
		synctest.Wait()
		begun := time.Now()
		go func() { _ = c.nets[0].Close() }()
		isOp(t, <-done, "dial", net.ErrClosed, "")
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A node that leaves while it is dialed is dialed once more, as another program may follow; that it
// has left again is what the dial says.
func TestDial_TheNodeLeavesTwice(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		must(t, c.nets[1].Close())
		done := make(chan error, 1)
		go func() { _, err := c.nets[0].Dial(rawnet.Network, "1:x"); done <- err }()
		for range 2 {
			if len(done) > 0 {
				t.Fatalf("the first leave ends it: %v", <-done)
			}
			d, err := memfifo.Open(c.eps[1], memfifo.Config{Port: rawnet.DefaultPort})
			must(t, err)
			time.Sleep(memfifo.DefaultPeerTimeout / 2) // the record is there
			must(t, d.Close())
			synctest.Wait()
		}
		err := <-done
		isOp(t, err, "dial", syscall.ECONNRESET, "node 1 has left")
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Reason != memfifo.Left {
			t.Errorf("%v", err)
		}
	})
}

// CloseRead lets a Write of the other end go on that has waited for a reader.
func TestCloseRead_FreesTheWriter(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		done := make(chan error, 1)
		go func() { _, err := a.Write(make([]byte, 10<<20)); done <- err }()
		synctest.Wait()
		must(t, b.CloseRead())
		select {
		case err := <-done:
			must(t, err)
		case <-time.After(time.Minute):
			t.Error("it waits still")
		}
	})
}

// Close has said to the other ends that connections are closed, however full the way was: they read
// EOF. It names a node that took nothing any more.
func TestClose_WithoutRoom(t *testing.T) {
	for _, dies := range []bool{false, true} {
		bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
			var others []*rawnet.Conn
			for range 5 {
				_, other := c.pair(t, "x")
				others = append(others, other)
			}
			c.stuff(t)
			closed := make(chan error, 1)
			go func() { closed <- c.nets[0].Close() }()
			time.Sleep(100 * time.Millisecond)
			if len(closed) > 0 {
				t.Fatalf("it does not wait: %v", <-closed)
			}
			if dies {
				err := <-closed
				if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Node != 1 || down.Reason != memfifo.Silent {
					t.Errorf("%v, want node 1", err)
				}
				must(t, c.nets[0].Close()) // it says so once
				return
			}
			c.faults[0].Cut(false)
			must(t, <-closed)
			for i, other := range others {
				if n, err := other.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("connection %d: %d bytes, %v; want EOF", i, n, err)
				}
			}
		})
	}
}

// The last connection with a node is closed where there is no room: its other end hears of it.
func TestConn_ClosesWithoutRoom(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 16 << 20}}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		c.faults[0].Cut(true)
		written := make(chan int)
		go func() { n, _ := a.Write(make([]byte, 10<<20)); written <- n }()
		synctest.Wait()
		must(t, a.Close())
		n := <-written
		c.faults[0].Cut(false)
		got, err := io.ReadAll(b)
		if len(got) != n || n == 0 || err != nil {
			t.Errorf("%d bytes of %d, %v", len(got), n, err)
		}
	})
}

// One goroutine waits for room to say what is owed to a node, however much that is.
func TestControl_OneGoroutineWaits(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
		var conns []*rawnet.Conn
		for range 20 {
			a, _ := c.pair(t, "x")
			conns = append(conns, a)
		}
		c.stuff(t)
		before := runtime.NumGoroutine()
		for _, a := range conns {
			must(t, a.CloseWrite())
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > len(conns)/4 {
			t.Errorf("%d goroutines wait", n)
		}
	})
}

// muteLink is a link that loses what it is to send while it is mute.
type muteLink struct {
	transport.Link
	mute *atomic.Bool
}

// mutes makes a node's link one that may be mute.
func mutes(node mcd.NodeID, mute *atomic.Bool) func(mcd.NodeID, transport.Link) transport.Link {
	return func(n mcd.NodeID, inner transport.Link) transport.Link {
		if n == node {
			return &muteLink{inner, mute}
		}
		return inner
	}
}

func (l *muteLink) Send(frames []transport.Frame) (int, error) {
	if l.mute.Load() {
		return len(frames), nil
	}
	return l.Link.Send(frames)
}

// Each of a crowd that dials where nobody listens is refused, though the node has no room for its
// answers when they come.
func TestDial_ACrowdIsRefusedWithoutRoom(t *testing.T) {
	var mute atomic.Bool
	o := options{cfg: rawnet.Config{Window: 256 << 10}, wrap: mutes(1, &mute)}
	bubble(t, o, func(t *testing.T, c *cluster) {
		dial := func() error { _, err := c.nets[0].Dial(rawnet.Network, "1:nobody"); return err }
		for range 3000 { // the way there is wide by then
			isOp(t, dial(), "dial", syscall.ECONNREFUSED, "")
		}
		c.fill(t, 1, func() { mute.Store(true) })
		ends := make(chan error)
		const crowd = 4096
		for range crowd {
			go func() { ends <- dial() }()
		}
		time.Sleep(10 * time.Millisecond)
		mute.Store(false)
		for range crowd {
			isOp(t, <-ends, "dial", syscall.ECONNREFUSED, "nobody listens")
		}
	})
}

// A Net that closes while a dial waits for room ends it, though there is room before all is said.
func TestDial_NetClosesWhereThereIsNoRoom(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
		_, err := c.nets[1].Listen("x")
		must(t, err)
		c.stuff(t)
		done, closed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.nets[0].Dial(rawnet.Network, "1:x"); done <- err }()
		synctest.Wait()
		go func() { closed <- c.nets[0].Close() }()
		synctest.Wait()
		if len(done)+len(closed) > 0 {
			t.Fatal("there is room")
		}
		c.faults[0].Cut(false)
		isOp(t, <-done, "dial", net.ErrClosed, "")
		must(t, <-closed)
	})
}

// trainsLink is a link that says that it sends trains: there records are cut where a frame ends.
type trainsLink struct{ transport.Link }

func (l trainsLink) TrainMTU() int               { return l.MTU() - 8 }
func (l trainsLink) TrainFrames() int            { return 16 }
func (l trainsLink) TrainHeadroom() int          { return 0 }
func (l trainsLink) Trains() (sent, came uint64) { return 0, 0 }

// A deadline and Close end a Write that waits for room also where a part of its record has gone:
// the rest follows, and counts as written.
func TestWrite_EndsInTheMiddleOfARecord(t *testing.T) {
	wrap := func(_ mcd.NodeID, inner transport.Link) transport.Link { return trainsLink{inner} }
	for how, want := range map[string]error{"deadline": os.ErrDeadlineExceeded, "close": net.ErrClosed} {
		bubble(t, options{cfg: rawnet.Config{Window: 16 << 20}, wrap: wrap}, func(t *testing.T, c *cluster) {
			a, b := c.pair(t, "x")
			c.faults[0].Cut(true)
			begun, took := time.Now(), time.Duration(0)
			if how == "deadline" {
				must(t, a.SetWriteDeadline(begun.Add(100*time.Millisecond)))
			} else {
				time.AfterFunc(100*time.Millisecond, func() {
					_ = a.Close()
					took = time.Since(begun)
				})
			}
			sent := 0
			for {
				n, err := a.Write(make([]byte, 700))
				if sent += n; err != nil {
					isOp(t, err, "write", want, "")
					break
				}
			}
			if how == "deadline" {
				took = time.Since(begun)
			}
			c.faults[0].Cut(false)
			synctest.Wait()
			if took != 100*time.Millisecond {
				t.Errorf("%s: it took %v", how, took)
			}
			_ = a.Close()
			if got, err := io.ReadAll(b); len(got) != sent || err != nil {
				t.Errorf("%s: %d bytes of %d came, %v", how, len(got), sent, err)
			}
		})
	}
}
