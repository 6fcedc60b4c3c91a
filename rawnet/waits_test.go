package rawnet_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport/fabric"
)

// A Write that waits for room in the network ends with its deadline, and with Close.
func TestWrite_ThatWaitsForRoomEnds(t *testing.T) {
	bubble(t, options{cfg: rawnet.Config{Window: 16 << 20}}, func(t *testing.T, c *cluster) {
		a, _ := c.pair(t, "x")
		c.faults[1].Cut(true)
		ends := make(chan error)
		write := func() { _, err := a.Write(make([]byte, 10<<20)); ends <- err }
		begun := time.Now()
		go write()
		synctest.Wait()
		must(t, a.SetWriteDeadline(begun.Add(100*time.Millisecond)))
		isOp(t, <-ends, "write", os.ErrDeadlineExceeded, "")
		must(t, a.SetWriteDeadline(time.Time{}))
		go write()
		synctest.Wait()
		must(t, a.Close())
		isOp(t, <-ends, "write", net.ErrClosed, "")
		if took := time.Since(begun); took != 100*time.Millisecond {
			t.Errorf("they took %v", took)
		}
	})
}

// A peer's death ends each wait of its connections: a Read, a Write that waits for the reader, also
// beside connections that nobody has accepted.
func TestWaits_EndWithThePeer(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		_, err := c.nets[0].Listen("slow")
		must(t, err)
		for range 3 {
			_, err := c.nets[1].Dial(rawnet.Network, "0:slow")
			must(t, err)
		}
		ends := make(chan error)
		for i := range 4 {
			a, _ := c.pair(t, "x")
			go func() {
				var err error
				if i%2 == 0 {
					_, err = a.Write(make([]byte, 10<<20))
				} else {
					_, err = a.Read(make([]byte, 1))
				}
				ends <- err
			}()
		}
		time.Sleep(time.Second) // all that may be sent was confirmed
		c.faults[1].Cut(true)
		for range 4 {
			select {
			case err := <-ends:
				op := "read"
				if strings.Contains(err.Error(), "write") {
					op = "write"
				}
				isOp(t, err, op, syscall.ECONNRESET, "node 1 has not answered")
			case <-time.After(time.Minute):
				t.Fatal("one waits still")
			}
		}
	})
}

// Packets that wait in a queue keep their bytes each, also in memory that was used before.
func TestPacketConn_QueueKeepsBytes(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		p, err := c.nets[0].ListenPacket("self")
		must(t, err)
		b := make([]byte, 9)
		for _, round := range []string{"a", "bc", "def", "ghi"} {
			for i := range round {
				_, err := p.WriteTo([]byte(round[i:]), p.LocalAddr())
				must(t, err)
			}
			for i := range round {
				n, _, err := p.ReadFrom(b)
				if must(t, err); string(b[:n]) != round[i:] {
					t.Errorf("%q came, want %q", b[:n], round[i:])
				}
			}
		}
	})
}

// Messages that hold no control record are too short, which Open says. In the shortest that do, a
// service of the longest name is dialed and served.
func TestOpen_ShortMessages(t *testing.T) {
	const least = 325 // bytes: an Open with its service, in a record of a domain
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{200, least - 1, least} {
			eps := mcdtest.Open(t, 1, mcdtest.Config{Fabric: fabric.Config{MTU: mcd.HeaderLen + size}, Endpoint: mcd.Config{Spin: -1}})
			n, err := rawnet.Open(eps[0], rawnet.Config{})
			if size < least {
				if err == nil || !strings.Contains(err.Error(), "too short") {
					t.Errorf("%d bytes: %v, %v", size, n, err)
				}
				continue
			}
			must(t, err)
			longest := strings.Repeat("s", 255)
			l, err := n.Listen(longest)
			must(t, err)
			c, err := n.Dial("", "0:"+longest)
			must(t, err)
			_, err = l.Accept()
			must(t, err)
			must(t, c.Close())
			must(t, n.Close())
		}
	})
}
