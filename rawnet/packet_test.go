package rawnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
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
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// packets opens a packet connection on each of two nodes.
func (c *cluster) packets(t testing.TB) (a, b *rawnet.PacketConn) {
	t.Helper()
	a, err := c.nets[0].ListenPacket("")
	must(t, err)
	b, err = c.nets[1].ListenPacket("time")
	must(t, err)
	return a, b
}

// addr resolves an address.
func (c *cluster) addr(t testing.TB, s string) rawnet.Addr {
	t.Helper()
	a, err := c.nets[0].Resolve(s)
	must(t, err)
	return a
}

// Packets of all lengths come whole, with their sender's address, and go back to it; also those of
// a node to itself.
func TestPacketConn_ThereAndBack(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		own, err := c.nets[1].ListenPacket("own")
		must(t, err)
		got := make([]byte, 10_000)
		for _, from := range []*rawnet.PacketConn{a, own} {
			most := from.MaxData(c.addr(t, "1:time"))
			for _, size := range []int{0, 1, 100, most} {
				data := bytes.Repeat([]byte{byte(size)}, size)
				n, err := from.WriteTo(data, c.addr(t, "1:time"))
				if n != size || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
				n, sender, err := b.ReadFrom(got)
				must(t, err)
				if !bytes.Equal(got[:n], data) || sender != from.LocalAddr() {
					t.Fatalf("%d bytes of %v, want %d of %v", n, sender, size, from.LocalAddr())
				}
				_, err = b.WriteTo(data, sender)
				must(t, err)
				if n, sender, err = from.ReadFrom(got); n != size || sender != b.LocalAddr() || err != nil {
					t.Fatalf("back: %d bytes of %v, %v", n, sender, err)
				}
			}
			n, err := from.WriteTo(make([]byte, most+1), c.addr(t, "1:time"))
			isOp(t, err, "write", syscall.EMSGSIZE, fmt.Sprintf("%d bytes (at most %d)", most+1, most))
			if n != 0 {
				t.Errorf("%d bytes of a packet that is too long", n)
			}
		}
	})
}

// Reads and their ends: what waits, what is cut off, deadlines and Close.
func TestPacketConn_KeepsNetsPromises(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		to := c.addr(t, "1:time")
		_, err := c.nets[1].ListenPacket("time")
		isOp(t, err, "listen", syscall.EADDRINUSE, "1:time")
		for range 3 {
			_, err = a.WriteTo([]byte("abc"), to)
			must(t, err)
		}
		synctest.Wait()
		two := make([]byte, 2)
		for range 2 {
			if n, _, err := b.ReadFrom(two); n != 2 || string(two) != "ab" || err != nil {
				t.Errorf("what does not fit is lost: %d %q, %v", n, two, err)
			}
		}
		if n, from, err := b.ReadFrom(nil); n != 0 || from == nil || err != nil {
			t.Errorf("%d, %v, %v", n, from, err)
		}
		waits := make(chan error)
		read := func() { _, _, err := b.ReadFrom(nil); waits <- err }
		must(t, b.SetDeadline(time.Now().Add(time.Second)))
		begun := time.Now()
		go read()
		isOp(t, <-waits, "read", os.ErrDeadlineExceeded, "")
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v", took)
		}
		synctest.Wait() // the two deadlines have a timer each
		_, err = b.WriteTo(two, a.LocalAddr())
		isOp(t, err, "write", os.ErrDeadlineExceeded, "")
		must(t, b.SetDeadline(time.Time{}))
		_, err = b.WriteTo(two, a.LocalAddr())
		must(t, err)
		go read()
		synctest.Wait()
		must(t, b.SetReadDeadline(time.Now().Add(-time.Second)))
		isOp(t, <-waits, "read", os.ErrDeadlineExceeded, "")
		must(t, b.SetReadDeadline(time.Time{}))
		go read()
		synctest.Wait()
		_, err = a.WriteTo(two, to)
		must(t, err)
		must(t, <-waits)
		go read()
		synctest.Wait()
		must(t, b.Close())
		isOp(t, <-waits, "read", net.ErrClosed, "")
		isOp(t, b.Close(), "close", net.ErrClosed, "")
		isOp(t, b.SetDeadline(time.Time{}), "set", net.ErrClosed, "")
		_, err = b.WriteTo(two, a.LocalAddr())
		isOp(t, err, "write", net.ErrClosed, "")
		_, err = a.WriteTo(two, to) // nobody says that it is lost
		must(t, err)
		_, err = a.WriteTo(two, rawnet.Addr{Node: 9, Service: "x"})
		isOp(t, err, "write", mcd.ErrUnknownNode, "9:x")
		_, err = a.WriteTo(two, rawnet.Addr{Node: 1, Service: strings.Repeat("x", 256)})
		isOp(t, err, "write", err, "service of 256 bytes (want 1 to 255)")
		_, err = a.WriteTo(two, &net.UDPAddr{})
		isOp(t, err, "write", err, "want a rawnet.Addr")
		_, err = c.nets[0].Resolve("nobody:x")
		if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if s := c.nets[1].Counters().Packets; s.NoService != 1 || s.Full+s.Malformed != 0 {
			t.Errorf("%+v", s)
		}
		go func() { _, _, err := a.ReadFrom(nil); waits <- err }()
		synctest.Wait()
		go func() { _, _, err := a.ReadFrom(nil); waits <- err }()
		must(t, <-waits) // what b has sent
		must(t, c.nets[0].Close())
		isOp(t, <-waits, "read", net.ErrClosed, "")
		_, err = c.nets[0].ListenPacket("x")
		isOp(t, err, "listen", net.ErrClosed, "")
	})
}

// A connection that nobody reads keeps a bounded number of packets; what makes no sense is counted.
func TestPacketConn_DropsAndCounts(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		for range 1000 {
			_, err := a.WriteTo([]byte("x"), c.addr(t, "1:time"))
			must(t, err)
			synctest.Wait()
		}
		port, err := c.eps[0].OpenPort(99, mcd.PortOptions{})
		must(t, err)
		bad := [][]byte{nil, {1, 4, 1}, {2, 4, 1, 0, 't', 'i', 'm', 'e', 'x'}, {1, 0, 1, 0, 'x'}, {1, 4, 0, 0, 't', 'i', 'm', 'e'}, {1, 4, 1, 7, 't', 'i', 'm', 'e', 'x'}, {1, 4, 1, 0, 't', 'i', 'm', 'e'}}
		for _, data := range bad {
			must(t, port.Send(limit(t), mcd.Addr{Node: 1, Port: rawnet.DefaultPacketPort}, data))
		}
		synctest.Wait()
		if s := c.nets[1].Counters().Packets; s.Full != 1000-256 || s.Malformed != uint64(len(bad)) || s.NoService != 0 {
			t.Errorf("%+v", s)
		}
		for range 256 {
			_, _, err := b.ReadFrom(nil)
			must(t, err)
		}
		must(t, b.SetReadDeadline(time.Now().Add(time.Second)))
		_, _, err = b.ReadFrom(nil)
		isOp(t, err, "read", os.ErrDeadlineExceeded, "")
	})
}

// Packets may be lost, duplicated and reordered, and each that comes is whole.
func TestPacketConn_OverFaults(t *testing.T) {
	bubble(t, options{fault: fault.Config{Loss: 0.2, Duplicate: 0.2, Reorder: 0.2}, seed: 8}, func(t *testing.T, c *cluster) {
		a, b := c.packets(t)
		for i := range 200 {
			_, err := a.WriteTo(bytes.Repeat([]byte{byte(i)}, i), c.addr(t, "1:time"))
			must(t, err)
		}
		must(t, b.SetReadDeadline(time.Now().Add(time.Second)))
		seen, buf := map[int]bool{}, make([]byte, 1000)
		for {
			n, from, err := b.ReadFrom(buf)
			if err != nil {
				break
			}
			if from != a.LocalAddr() || !bytes.Equal(buf[:n], bytes.Repeat([]byte{byte(n)}, n)) {
				t.Fatalf("%d bytes of %v", n, from)
			}
			seen[n] = true
		}
		if len(seen) < 100 || len(seen) == 200 {
			t.Errorf("%d of 200 packets came", len(seen))
		}
	})
}

// WriteTo and ReadFrom allocate nothing while packets come from one sender.
func TestPacketConn_DoesNotAllocate(t *testing.T) {
	c := open(t, options{spin: 100 * time.Microsecond, bare: true})
	a, b := c.packets(t)
	own, err := c.nets[0].ListenPacket("own")
	must(t, err)
	there := own.LocalAddr()
	data := make([]byte, 64)
	var to net.Addr = c.addr(t, "1:time")
	pingPong := func() {
		_, err := a.WriteTo(data, to)
		must(t, err)
		_, from, err := b.ReadFrom(data)
		must(t, err)
		_, err = b.WriteTo(data, from)
		must(t, err)
		_, _, err = a.ReadFrom(data)
		must(t, err)
		_, err = own.WriteTo(data, there) // it waits in the queue
		must(t, err)
		_, _, err = own.ReadFrom(data)
		must(t, err)
	}
	for range 1000 {
		pingPong()
	}
	if n := testing.AllocsPerRun(1000, pingPong); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// Packets between two nodes.
func ExampleNet_ListenPacket() {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	var conns []*rawnet.PacketConn
	var nets []*rawnet.Net
	for _, ep := range eps {
		n, err := rawnet.Open(ep, rawnet.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer n.Close()
		c, err := n.ListenPacket("gossip")
		if err != nil {
			log.Fatal(err)
		}
		nets, conns = append(nets, n), append(conns, c)
	}
	to, err := nets[0].Resolve("1:gossip")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conns[0].WriteTo([]byte("hello"), to); err != nil {
		log.Fatal(err)
	}
	b := make([]byte, 100)
	n, from, err := conns[1].ReadFrom(b)
	fmt.Printf("%s of %v, %v\n", b[:n], from, err)
	// Output: hello of 0:gossip, <nil>
}

// A client's own name is one that nobody else has.
func TestPacketConn_NamesOfClients(t *testing.T) {
	bubble(t, options{nodes: 1}, func(t *testing.T, c *cluster) {
		names := map[string]bool{}
		for _, service := range []string{"client 1", "client 3", "", "", ":", ""} {
			p, err := c.nets[0].ListenPacket(service)
			must(t, err)
			names[p.LocalAddr().String()] = true
		}
		if len(names) != 6 {
			t.Errorf("%v", names)
		}
	})
}

// An answer to a client of a node's former life does not reach one of its next life.
func TestPacketConn_AnswersToAFormerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := fabric.New(fabric.Config{})
		must(t, err)
		sw := f.AddSwitch("s")
		var table []mcd.Node
		open := func(id mcd.NodeID) (*mcd.Endpoint, *rawnet.Net) {
			l, err := f.Attach(sw, fabric.Station{MAC: table[id].MACs[0]})
			must(t, err)
			e, err := mcd.Open(mcd.Config{Node: id, Nodes: table, Spin: -1}, l)
			must(t, err)
			n, err := rawnet.Open(e, rawnet.Config{})
			must(t, err)
			return e, n
		}
		for id := range mcd.NodeID(2) {
			table = append(table, mcd.Node{ID: id, MACs: []transport.MAC{{2, 0, 0, 0, 0, byte(1 + id)}}})
		}
		ea, a := open(0)
		server, err := a.ListenPacket("dns")
		must(t, err)
		to := server.LocalAddr()
		var clients [2]net.Addr // that the server has heard, one of each life
		var read string
		for life := range clients {
			e, n := open(1)
			client, err := n.ListenPacket("")
			must(t, err)
			question := fmt.Sprintf("of life %d", life)
			_, err = client.WriteTo([]byte(question), to)
			must(t, err)
			b := make([]byte, 100)
			k, from, err := server.ReadFrom(b)
			if clients[life] = from; err != nil || string(b[:k]) != question {
				t.Fatalf("%q, %v", b[:k], err)
			}
			if life > 0 {
				for k, from := range clients {
					_, err := server.WriteTo(fmt.Appendf(nil, "answer to life %d", k), from)
					must(t, err)
				}
				must(t, client.SetReadDeadline(time.Now().Add(time.Minute)))
				k, _, err := client.ReadFrom(b)
				must(t, err)
				read = string(b[:k])
			}
			must(t, errors.Join(n.Close(), e.Close()))
		}
		if read != "answer to life 1" {
			t.Errorf("the second life has read %q", read)
		}
		must(t, errors.Join(a.Close(), ea.Close()))
	})
}

// Names that leave no room in a packet have no data, and not less than none; who sends to one hears
// of the names.
func TestPacketConn_NamesThatLeaveNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 1, mcdtest.Config{Fabric: fabric.Config{MTU: mcd.HeaderLen + 400}, Endpoint: mcd.Config{Spin: -1}})
		n, err := rawnet.Open(eps[0], rawnet.Config{})
		must(t, err)
		defer n.Close()
		p, err := n.ListenPacket(strings.Repeat("s", 200))
		must(t, err)
		for _, c := range []struct {
			name, most int
			want       string
		}{
			{190, 6, "7 bytes (at most 6)"},
			{196, 0, "7 bytes (at most 0)"},
			{197, 0, "the services' names have 200 and 197 bytes, and a packet 396"},
			{255, 0, "the services' names have 200 and 255 bytes, and a packet 396"},
			{256, 0, "service of 256 bytes (want 1 to 255)"},
			{5000, 0, "service of 5000 bytes (want 1 to 255)"},
		} {
			to := rawnet.Addr{Service: strings.Repeat("t", c.name)}
			if got := p.MaxData(to); got != c.most {
				t.Errorf("a name of %d bytes: at most %d bytes of data, want %d", c.name, got, c.most)
			}
			if _, err := p.WriteTo(make([]byte, 7), to); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a name of %d bytes: %v, want %q", c.name, err, c.want)
			}
		}
	})
}
