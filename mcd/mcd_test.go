package mcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(inBed{m}) }

// inBed runs the tests where they may make network namespaces.
type inBed struct{ m *testing.M }

func (b inBed) Run() int { return testbed.Main(b.m) }

const cluster mcd.ClusterID = 0x0102_0304

// limit is far beyond what any of these waits takes; a test that reaches it has failed.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// open opens nodes 0 to n-1 of a cluster on one in-memory switch per NIC.
func open(t testing.TB, n, nics int, change ...func(*mcd.Config)) []*mcd.Endpoint {
	t.Helper()
	return mcdtest.Open(t, n, mcdtest.Config{
		NICs:     nics,
		Endpoint: mcd.Config{Cluster: cluster},
		Customize: func(_ mcd.NodeID, cfg *mcd.Config) {
			for _, c := range change {
				c(cfg)
			}
		},
	})
}

func port(t testing.TB, e *mcd.Endpoint, id mcd.PortID) *mcd.Port {
	t.Helper()
	p, err := e.OpenPort(id, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func send(t testing.TB, p *mcd.Port, to mcd.Addr, b []byte) {
	t.Helper()
	if err := p.Send(limit(t), to, b); err != nil {
		t.Fatal(err)
	}
}

// expect receives one message and compares it.
func expect(t testing.TB, p *mcd.Port, from mcd.Addr, want string) {
	t.Helper()
	b := make([]byte, 2000)
	n, got, err := p.Recv(limit(t), b)
	if err != nil || got != from || string(b[:n]) != want {
		t.Fatalf("received %q from %v (%v), want %q from %v", b[:n], got, err, want, from)
	}
}

func TestMCD_2_2_SendToNodeAndPort(t *testing.T) {
	es := open(t, 3, 1)
	p0, p1, other := port(t, es[0], 7), port(t, es[1], 9), port(t, es[1], 10)
	send(t, p0, mcd.Addr{Node: 1, Port: 9}, []byte("to nine"))
	send(t, p0, mcd.Addr{Node: 1, Port: 10}, []byte("to ten"))
	expect(t, other, mcd.Addr{Node: 0, Port: 7}, "to ten")
	expect(t, p1, mcd.Addr{Node: 0, Port: 7}, "to nine")
	send(t, p1, mcd.Addr{Node: 0, Port: 7}, nil)
	expect(t, p0, mcd.Addr{Node: 1, Port: 9}, "")
	if c := es[2].Counters(); c.RxMessages != 0 {
		t.Errorf("node 2 received %d messages that were for others", c.RxMessages)
	}
}

func TestMCD_2_3_PortHasOneOwner(t *testing.T) {
	es := open(t, 1, 1)
	p := port(t, es[0], 255)
	_, err := es[0].OpenPort(255, mcd.PortOptions{})
	var busy *mcd.PortBusyError
	if !errors.Is(err, mcd.ErrPortBusy) || !errors.As(err, &busy) || busy.Port != 255 || busy.PID == 0 {
		t.Errorf("second owner: %v, want ErrPortBusy that names us", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	port(t, es[0], 255)
}

func TestMCD_2_3_MessageWithoutBufferIsDropped(t *testing.T) {
	es := open(t, 2, 1, func(c *mcd.Config) { c.Backlog = -1 })
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	sentinel := port(t, es[1], 2)
	posted := &mcd.RecvDesc{Buf: make([]byte, 10)}
	if err := sentinel.PostRecv(posted); err != nil {
		t.Fatal(err)
	}
	send(t, p0, p1.Addr(), []byte("nobody waits"))
	send(t, p0, sentinel.Addr(), []byte("then"))
	if err := posted.Wait(limit(t)); err != nil || string(posted.Buf[:posted.N]) != "then" || posted.From != p0.Addr() {
		t.Errorf("%q from %v, %v", posted.Buf[:posted.N], posted.From, err)
	}
	if c := p1.Counters(); c.DropNoBuffer != 1 || c.RxMessages != 0 {
		t.Errorf("%+v, want 1 drop and no message", c)
	}
	if c := es[1].Counters(); c.DropNoBuffer != 1 || c.RxMessages != 1 {
		t.Errorf("%+v, want 1 drop and 1 message", c)
	}
}

func TestBacklogKeepsTheFirstMessages(t *testing.T) {
	es := open(t, 2, 1, func(c *mcd.Config) { c.Backlog = 2 })
	p0, p1, sentinel := port(t, es[0], 1), port(t, es[1], 1), port(t, es[1], 2)
	for i := range 4 {
		send(t, p0, p1.Addr(), []byte{'a' + byte(i)})
	}
	send(t, p0, sentinel.Addr(), nil)
	expect(t, sentinel, p0.Addr(), "")
	expect(t, p1, p0.Addr(), "a")
	expect(t, p1, p0.Addr(), "b")
	if c := p1.Counters(); c.DropNoBuffer != 2 {
		t.Errorf("dropped %d, want 2", c.DropNoBuffer)
	}
}

func TestPostedBuffersAreFilledInOrder(t *testing.T) {
	es := open(t, 2, 1)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	ds := make([]*mcd.RecvDesc, 3)
	for i := range ds {
		ds[i] = &mcd.RecvDesc{Buf: make([]byte, 8)}
		if err := p1.PostRecv(ds[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p1.PostRecv(ds[0]); !errors.Is(err, mcd.ErrPosted) {
		t.Errorf("posted twice: %v, want ErrPosted", err)
	}
	if !ds[1].Cancel() || ds[1].Cancel() {
		t.Error("Cancel should take the descriptor back once")
	}
	send(t, p0, p1.Addr(), []byte("one"))
	send(t, p0, p1.Addr(), []byte("two"))
	for i, want := range map[int]string{0: "one", 2: "two"} {
		if err := ds[i].Wait(limit(t)); err != nil || string(ds[i].Buf[:ds[i].N]) != want {
			t.Errorf("descriptor %d: %q, %v, want %q", i, ds[i].Buf[:ds[i].N], err, want)
		}
	}
	if err := ds[1].Err(); !ds[1].Done() || !errors.Is(err, context.Canceled) || ds[1].N != 0 {
		t.Errorf("the cancelled descriptor: done %v, %d bytes, %v", ds[1].Done(), ds[1].N, err)
	}
}

func TestReceiveRunsWhileNobodyWaits(t *testing.T) {
	es := open(t, 2, 1)
	got := make(chan string, 1)
	p1, err := es[1].OpenPort(3, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		for _, m := range batch {
			got <- fmt.Sprintf("%s from %v to %v by NIC %d", m.Payload, m.From, m.To, m.NIC)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	send(t, port(t, es[0], 4), p1.Addr(), []byte("hello"))
	if text, want := <-got, "hello from 0:4 to 1:3 by NIC 0"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if err := p1.PostRecv(new(mcd.RecvDesc)); !errors.Is(err, mcd.ErrHandled) {
		t.Errorf("PostRecv: %v, want ErrHandled", err)
	}
}

// An echo server that is a Receive function answers while its program does something else, here
// nothing at all.
func TestReceiveMaySend(t *testing.T) {
	es := open(t, 2, 1)
	var echo *mcd.Port
	ready := make(chan struct{})
	echo, err := es[1].OpenPort(7, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-ready
		for _, m := range batch {
			if err := echo.TrySend(m.NIC, mcd.To(m.From), bytes.ToUpper(m.Payload)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	p0 := port(t, es[0], 1)
	for range 100 {
		send(t, p0, echo.Addr(), []byte("echo"))
		expect(t, p0, echo.Addr(), "ECHO")
	}
}

func TestShortBufferSaysHowLongTheMessageWas(t *testing.T) {
	es := open(t, 2, 1)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	send(t, p0, p1.Addr(), []byte("hello"))
	b := make([]byte, 3)
	n, _, err := p1.Recv(limit(t), b)
	var short *mcd.ShortBufferError
	if !errors.Is(err, io.ErrShortBuffer) || !errors.As(err, &short) || short.Size != 5 || n != 3 || string(b) != "hel" {
		t.Errorf("%d bytes %q, %v; want 3 of 5", n, b, err)
	}
}

func TestSendRefusesBeforeAnythingIsSent(t *testing.T) {
	es := open(t, 2, 1)
	p := port(t, es[0], 1)
	size := es[0].MaxPayload()
	for _, c := range []struct {
		name string
		to   mcd.Addr
		b    []byte
		want error
		text string
	}{
		{"unknown node", mcd.Addr{Node: 9, Port: 1}, nil, mcd.ErrUnknownNode, "9:1"},
		{"itself", mcd.Addr{Node: 0, Port: 1}, nil, mcd.ErrSelf, "0:1"},
		{"one byte over", mcd.Addr{Node: 1, Port: 1}, make([]byte, size+1), mcd.ErrTooLarge, fmt.Sprintf("%d bytes, at most %d", size+1, size)},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := p.Send(limit(t), c.to, c.b)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Send: %v, want %v that says %q", err, c.want, c.text)
			}
			good := &mcd.SendDesc{To: mcd.To(mcd.Addr{Node: 1, Port: 1})}
			bad := &mcd.SendDesc{To: mcd.To(c.to), Payload: c.b}
			if err := p.PostSend(good, bad); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "descriptor 1") {
				t.Errorf("PostSend: %v, want %v of descriptor 1", err, c.want)
			}
		})
	}
	if c := es[0].LinkCounters(0); c.TxFrames != 0 {
		t.Errorf("%d frames were sent", c.TxFrames)
	}
	p1 := port(t, es[1], 1)
	largest := bytes.Repeat([]byte{7}, size)
	send(t, p, p1.Addr(), largest)
	expect(t, p1, p.Addr(), string(largest))
}

func TestWaitsEnd(t *testing.T) {
	es := open(t, 1, 1)
	p := port(t, es[0], 1)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	wait := func(ctx context.Context) {
		_, _, err := p.Recv(ctx, nil)
		result <- err
	}
	go wait(ctx)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	go wait(context.Background())
	go wait(context.Background())
	if err := es[0].Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-result; !errors.Is(err, mcd.ErrClosed) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v, want ErrClosed", err)
		}
	}
	if _, err := es[0].OpenPort(2, mcd.PortOptions{}); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("Port after Close: %v", err)
	}
	if err := p.Send(context.Background(), mcd.Addr{Node: 1}, nil); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if err := es[0].Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestTryRecvDoesNotWait(t *testing.T) {
	es := open(t, 2, 1, func(c *mcd.Config) { c.Backlog = -1 })
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	if _, _, ok, err := p1.TryRecv(nil); ok || err != nil {
		t.Errorf("got a message (%v, %v) though none was sent", ok, err)
	}
	b := make([]byte, 8)
	d := &mcd.RecvDesc{Buf: b}
	if err := p1.PostRecv(d); err != nil {
		t.Fatal(err)
	}
	send(t, p0, p1.Addr(), []byte("x"))
	if err := d.Wait(limit(t)); err != nil || d.N != 1 {
		t.Errorf("%d bytes, %v", d.N, err)
	}
}

func TestSeveralNICs(t *testing.T) {
	es := open(t, 2, 2)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	for nic := range 2 {
		if err := p0.SendVia(limit(t), nic, mcd.To(p1.Addr()), []byte("x")); err != nil {
			t.Fatal(err)
		}
		d := &mcd.RecvDesc{Buf: make([]byte, 8)}
		if err := p1.PostRecv(d); err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(limit(t)); err != nil || d.NIC != nic {
			t.Errorf("came by NIC %d (%v), want %d", d.NIC, err, nic)
		}
	}
	if err := p0.SendVia(limit(t), 2, mcd.To(p1.Addr()), nil); err == nil {
		t.Error("sent by a NIC that does not exist")
	}
}

// Many goroutines wait on one endpoint: one of them polls for all.
func TestManyWaitersOfOneEndpoint(t *testing.T) {
	const ports, rounds = 16, 200
	es := open(t, 2, 1)
	var all sync.WaitGroup
	for id := range mcd.PortID(ports) {
		p0, p1 := port(t, es[0], id), port(t, es[1], id)
		all.Go(func() {
			b := make([]byte, 8)
			for range rounds {
				send(t, p0, p1.Addr(), []byte{byte(id)})
				if n, _, err := p0.Recv(limit(t), b); err != nil || n != 1 || b[0] != byte(id) {
					t.Errorf("port %d: %v %v", id, b[:n], err)
					return
				}
			}
		})
		all.Go(func() {
			b := make([]byte, 8)
			for range rounds {
				n, from, err := p1.Recv(limit(t), b)
				if err != nil {
					t.Error(err)
					return
				}
				send(t, p1, from, b[:n])
			}
		})
	}
	all.Wait()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	es := open(t, 2, 1)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	b, ctx := make([]byte, 64), context.Background()
	d := &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: b}
	if err := es[1].Join(3); err != nil {
		t.Fatal(err)
	}
	for name, transmit := range map[string]func() error{
		"Send":      func() error { return p0.Send(ctx, p1.Addr(), b) },
		"Multicast": func() error { return p0.Multicast(ctx, 3, 1, b) },
		"PostSend":  func() error { return p0.PostSend(d) },
	} {
		t.Run(name, func(t *testing.T) {
			round := func() {
				if err := transmit(); err != nil {
					t.Fatal(err)
				}
				if _, _, err := p1.Recv(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			if n := testing.AllocsPerRun(200, round); n != 0 {
				t.Errorf("%v allocs a message, want 0", n)
			}
		})
	}
	if n := testing.AllocsPerRun(200, func() { _, _, _, _ = p1.TryRecv(b) }); n != 0 {
		t.Errorf("%v allocs a TryRecv, want 0", n)
	}
}
