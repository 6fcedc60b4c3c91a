package rawnet_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport"
)

// slowLocks is a link whose ports' locks a service grants that takes its time, as another process may.
type slowLocks struct {
	transport.Link
	asked   chan<- struct{}
	granted <-chan struct{}
}

func (l slowLocks) LockPort(_ uint32, port uint8) (io.Closer, error) {
	if mcd.PortID(port) == rawnet.DefaultPacketPort {
		l.asked <- struct{}{}
		<-l.granted
	}
	return io.NopCloser(nil), nil
}

// Connections go on while the packets' port is being opened. A Net that closes meanwhile waits for
// that, and leaves no port behind.
func TestListenPacket_HoldsUpNobody(t *testing.T) {
	granted := make(chan struct{})
	asked := make(chan struct{}, 1)
	wrap := func(_ mcd.NodeID, inner transport.Link) transport.Link { return slowLocks{inner, asked, granted} }
	c := open(t, options{wrap: wrap, spin: 20 * time.Microsecond}) // in real time: a bubble waits for no mutex
	grant := sync.OnceFunc(func() { close(granted) })
	t.Cleanup(grant)
	a, b := c.pair(t, "x")
	opened := make(chan error, 1)
	go func() { _, err := c.nets[0].ListenPacket(""); opened <- err }()
	<-asked
	done := make(chan error, 1)
	go func() {
		_, err := b.Write([]byte("x"))
		if err == nil {
			_, err = a.Read(make([]byte, 1))
		}
		done <- err
	}()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("a connection waits for the port of packets")
	}
	closed := make(chan error, 1)
	go func() { closed <- c.nets[0].Close() }()
	if _, err := io.ReadAll(b); err != nil { // it is under way
		t.Error(err)
	}
	grant()
	must(t, <-closed)
	isOp(t, <-opened, "listen", net.ErrClosed, "")
	port, err := c.eps[0].OpenPort(rawnet.DefaultPacketPort, mcd.PortOptions{})
	must(t, err)
	must(t, port.Close())
}
