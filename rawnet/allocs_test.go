package rawnet_test

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport/fabric"
)

// A Write and a Read allocate nothing, of few bytes and of many.
func TestConn_DoesNotAllocate(t *testing.T) {
	c := open(t, options{spin: 100 * time.Microsecond, bare: true})
	a, b := c.pair(t, "x")
	far := time.Now().Add(time.Hour)
	for _, size := range []int{64, 100_000} {
		data := make([]byte, size)
		pingPong := func() {
			_, err := a.Write(data)
			must(t, err)
			_, err = io.ReadFull(b, data)
			must(t, err)
			must(t, b.SetDeadline(far))
			_, err = b.Write(data)
			must(t, err)
			_, err = io.ReadFull(a, data)
			must(t, err)
		}
		rounds := max(50, 64_000/size)
		for range rounds {
			pingPong()
		}
		if n := testing.AllocsPerRun(rounds, pingPong); n != 0 {
			t.Errorf("%d bytes there and back: %v allocations, want 0", size, n)
		}
	}
}

// An idle connection takes 4 KiB or less, both ends together, and no goroutine.
func TestConn_IdleOnesAreSmall(t *testing.T) {
	conns := 10_000
	if testing.Short() {
		conns = 1000
	}
	c := open(t, options{spin: time.Microsecond, cfg: rawnet.Config{Backlog: conns, MaxConns: conns}})
	l, err := c.nets[1].Listen("x")
	must(t, err)
	one := make([]byte, 1)
	used := func() (a, b net.Conn) {
		a, err := c.nets[0].Dial("rawlane", "1:x")
		must(t, err)
		b, err = l.Accept()
		must(t, err)
		_, err = a.Write(one)
		must(t, err)
		_, err = b.Read(one)
		must(t, err)
		return a, b
	}
	a, b := used()
	for range fabric.DefaultQueueFrames { // the links have the memory of all their frames then
		for _, w := range []net.Conn{a, b} {
			_, err := w.Write(one)
			must(t, err)
		}
		for _, r := range []net.Conn{a, b} {
			_, err := r.Read(one)
			must(t, err)
		}
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	all := make([]any, 0, 2*conns)
	for range conns - 1 {
		a, b := used()
		all = append(all, a, b)
	}
	if each := (heap() - before) / int64(conns); each > 4<<10 {
		t.Errorf("an idle connection takes %d bytes", each)
	} else {
		t.Logf("an idle connection takes %d bytes, both ends together", each)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 4 {
		t.Errorf("%d goroutines more", n)
	}
	runtime.KeepAlive(append(all, a, b))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Idle connections send no frames of their own, whatever their number: a node is probed, and not
// its connections. A goroutine waits in Read at either end of each.
func TestConn_IdleOnesAreSilent(t *testing.T) {
	frames := func(conns int) (count uint64) {
		bubble(t, options{cfg: rawnet.Config{Backlog: conns}}, func(t *testing.T, c *cluster) {
			l, err := c.nets[1].Listen("x")
			must(t, err)
			for range conns {
				a, err := c.nets[0].Dial("rawlane", "1:x")
				must(t, err)
				b, err := l.Accept()
				must(t, err)
				for _, end := range []net.Conn{a, b} {
					go func() { _, _ = end.Read(make([]byte, 1)) }() // until the cluster closes
				}
			}
			time.Sleep(time.Minute)
			before := c.eps[0].Counters()
			time.Sleep(time.Minute)
			after := c.eps[0].Counters()
			count = after.TxMessages - before.TxMessages + after.RxMessages - before.RxMessages
		})
		return count
	}
	// Each end probes the other after a quarter of PeerTimeout of silence, and is answered. Where the
	// probes cross there are both; else one will do.
	const most = 4 * int64(time.Minute) / int64(memfifo.DefaultPeerTimeout/4)
	for _, conns := range []int{1, 100} {
		if n := frames(conns); n == 0 || int64(n) > most+most/10 {
			t.Errorf("%d idle connections: %d frames in a minute, want %d at most", conns, n, most)
		}
	}
}
