package mcd

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
)

// ailing is a link whose Wait fails while it is told to.
type ailing struct {
	transport.Link
	mu  sync.Mutex
	err error
}

func (l *ailing) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// Wait ends now and then, as if frames for others came, and tells what is wrong.
func (l *ailing) Wait(ctx context.Context) error {
	if err := l.failure(); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := l.Link.Wait(short); ctx.Err() != nil || short.Err() == nil {
		return err
	}
	return l.failure()
}

func (l *ailing) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// An endpoint goes on while one of its links is well. LinkErr tells of the others. When the last is
// gone, all waits end with the reason, and nothing can be begun.
func TestLinkErr_WaitsEndWithTheLastLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := linktest.Pipe()
		y, _ := linktest.Pipe()
		links := []*ailing{{Link: x}, {Link: y}}
		e, err := Open(Config{Spin: -1}, links[0], links[1])
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		p, err := e.OpenPort(1, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() {
			_, _, err := p.Recv(context.Background(), make([]byte, 10))
			ended <- err
		}()
		go func() { ended <- e.Await(context.Background(), new(Completion)) }()
		check := func(what string, want [2]error) {
			t.Helper()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			for nic, w := range want {
				if err := e.LinkErr(nic); !errors.Is(err, w) {
					t.Errorf("%s: LinkErr(%d): %v, want %v", what, nic, err, w)
				}
			}
		}
		check("at first", [2]error{})
		links[0].fail(transport.ErrInterfaceDown)
		links[1].fail(transport.ErrInterfaceDown)
		check("both are down", [2]error{transport.ErrInterfaceDown, transport.ErrInterfaceDown})
		links[0].fail(nil)
		check("one is back", [2]error{nil, transport.ErrInterfaceDown})
		links[0].fail(transport.ErrNoInterface)
		check("it is gone", [2]error{transport.ErrNoInterface, transport.ErrInterfaceDown})
		links[1].fail(nil)
		check("the other is back", [2]error{transport.ErrNoInterface, nil})
		if len(ended) > 0 {
			t.Fatalf("a wait has ended while a link is well: %v", <-ended)
		}
		links[1].fail(transport.ErrNoInterface)
		check("both are gone", [2]error{transport.ErrNoInterface, transport.ErrNoInterface})
		_, _, recvErr := p.Recv(context.Background(), make([]byte, 10))
		_, openErr := e.OpenPort(2, PortOptions{})
		_, pingErr := e.Ping(context.Background(), Path{Node: 1}, ProbeOptions{})
		for what, err := range map[string]error{
			"a wait": <-ended, "another wait": <-ended, "a later Recv": recvErr, "OpenPort": openErr, "Ping": pingErr,
			"PostSend": p.PostSend(&SendDesc{To: ToAll(1)}), "TrySend": p.TrySend(0, ToAll(1), nil),
			"Await": e.Await(context.Background(), new(Completion)),
		} {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), "links are gone") {
				t.Errorf("%s: %v, want ErrClosed as all links are gone", what, err)
			}
		}
	})
}

// No port is opened once Close has begun, however many are being opened meanwhile.
func TestOpenPort_RacesClose(t *testing.T) {
	for range 10 {
		links, err := fabric.Links(1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(Config{}, links[0])
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		started := make(chan struct{}, Ports)
		for id := range Ports {
			running.Go(func() {
				started <- struct{}{}
				if _, err := e.OpenPort(PortID(id), PortOptions{}); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		for range Ports / 2 {
			<-started
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		running.Wait()
		if open := e.openPorts(); len(open) > 0 {
			t.Fatalf("%d ports are open after Close", len(open))
		}
	}
}

// slowToClose is a link whose Close ends when it is told to.
type slowToClose struct {
	transport.Link
	told chan struct{}
}

func (l *slowToClose) Close() error {
	<-l.told
	return l.Link.Close()
}

// Whoever calls Close, nothing of the endpoint is there any more when it returns.
func TestClose_TwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := twoLinks(t)
		l := &slowToClose{x, make(chan struct{})}
		e, err := Open(Config{Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- e.Close() }()
		}
		synctest.Wait()
		if n := len(closed); n > 0 {
			t.Errorf("%d of two calls have returned, and the link is open", n)
		}
		close(l.told)
		for range 2 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	})
}

// slowToUnlock is a link whose ports are given back when it is told to.
type slowToUnlock struct {
	transport.Link
	told chan struct{}
}

func (l *slowToUnlock) LockPort(uint32, uint8) (io.Closer, error) { return toldLock(l.told), nil }

type toldLock chan struct{}

func (l toldLock) Close() error {
	<-l
	return nil
}

// A port whose Close has still to give its lock back is one that the endpoint's Close waits for.
func TestClose_WhileAPortCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := twoLinks(t)
		l := &slowToUnlock{x, make(chan struct{})}
		e, err := Open(Config{Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.OpenPort(9, PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan string, 2)
		go func() { _ = p.Close(); ended <- "port" }()
		synctest.Wait() // it gives the lock back
		go func() { _ = e.Close(); ended <- "endpoint" }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("the %s is closed, and the port's lock is there", <-ended)
		}
		close(l.told)
		<-ended
	})
}

// A message is as long as the lowest MTU allows, whichever link it takes: receivers have buffers of
// MaxPayload.
func TestSend_LongestIsMaxPayloadOnEveryLink(t *testing.T) {
	small, large := fabricOf(t, 1500), fabricOf(t, 9000)
	nodes := []Node{
		{ID: 0, MACs: []transport.MAC{small[0].MAC(), large[0].MAC()}},
		{ID: 1, MACs: []transport.MAC{small[1].MAC(), large[1].MAC()}},
	}
	var ports [2]*Port
	for k := range ports {
		e, err := Open(Config{Node: NodeID(k), Nodes: nodes}, small[k], large[k])
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if e.MaxPayload() != 1500-HeaderLen {
			t.Fatalf("MaxPayload %d", e.MaxPayload())
		}
		if ports[k], err = e.OpenPort(1, PortOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	most := 1500 - HeaderLen
	for nic := range 2 {
		to := To(ports[1].Addr())
		for what, err := range map[string]error{
			"TrySend":  ports[0].TrySend(nic, to, make([]byte, most+1)),
			"PostSend": ports[0].PostSend(&SendDesc{NIC: nic, To: to, Payload: make([]byte, most+1)}),
		} {
			var size *transport.SizeError
			if !errors.As(err, &size) || size.Max != most || size.Size != most+1 {
				t.Errorf("link %d: %s of one byte more: %v", nic, what, err)
			}
		}
		if _, err := ports[0].TrySendInPlace(nic, to, make([]byte, ports[0].e.Headroom()+most+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("link %d: TrySendInPlace of one byte more: %v", nic, err)
		}
		if err := ports[0].TrySend(nic, to, make([]byte, most)); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		n, _, err := ports[1].Recv(ctx, make([]byte, most))
		cancel()
		if n != most || err != nil {
			t.Errorf("link %d: %d bytes, %v; want %d", nic, n, err, most)
		}
	}
}

func fabricOf(t *testing.T, mtu int) []*fabric.Link {
	t.Helper()
	f, err := fabric.New(fabric.Config{MTU: mtu})
	if err != nil {
		t.Fatal(err)
	}
	links, err := f.AddSwitch("").Links(2)
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// A port keeps no payload alive that was sent in place: it is the caller's again.
func TestTrySendInPlace_KeepsNoPayload(t *testing.T) {
	x, y := linktest.Pipe()
	e, err := Open(Config{Nodes: []Node{{ID: 1, MACs: []transport.MAC{y.MAC()}}}}, x)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p, err := e.OpenPort(1, PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, e.Headroom()+100)
	if n, err := p.TrySendInPlace(0, To(Addr{Node: 1, Port: 1}), b, b, b); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for i := range p.out.frames {
		if f := &p.out.frames[i]; f.Payload != nil || f.Headroom != nil {
			t.Errorf("frame %d of the last batch is still referred to", i)
		}
	}
}

// When the last link is gone while a goroutine polls, those that want the poll lock end too: they
// neither wait for it nor spin.
func TestLockPoll_EndsWithTheLastLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := linktest.Pipe()
		l := &ailing{Link: x}
		e, err := Open(Config{Spin: -1, Keys: keyring.New()}, l)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if !e.lockPoll() {
			t.Fatal("no poll lock")
		}
		ended := make(chan error, 1)
		go func() { ended <- e.SetKeys(keyring.New()) }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatalf("SetKeys did not wait for the poll lock: %v", <-ended)
		}
		l.fail(transport.ErrNoInterface)
		if err := <-ended; !errors.Is(err, ErrClosed) || !errors.Is(err, transport.ErrNoInterface) {
			t.Errorf("SetKeys: %v, want ErrClosed as the link is gone", err)
		}
		e.unlockPoll()
	})
}

// While one goroutine polls, Progress of another does not wait for it, and says that nothing came.
func TestProgress_WhileAnotherPolls(t *testing.T) {
	e, _, links, _ := openScripts(t, 1)
	polls := 0
	links[0].poll = func() {
		if polls++; polls == 1 && e.Progress() {
			t.Error("something came")
		}
	}
	if e.Progress() || polls != 1 {
		t.Errorf("%d polls, want 1", polls)
	}
}

// A probe of an endpoint that is closed is not sent, and says why.
func TestTryProbe_AfterClose(t *testing.T) {
	e, p, links, _ := openScripts(t, 1)
	links[0].send = func(frames []transport.Frame) (int, error) {
		t.Errorf("%d frames were sent", len(frames))
		return 0, nil
	}
	if p.ID() != 1 {
		t.Errorf("port %d, want 1", p.ID())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.TryProbe(Path{Node: 1}, ProbeOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// Waits end at once when their port is closed, or the endpoint, however long the service takes to have
// the locks back; and so do those whose contexts end meanwhile.
func TestClose_WaitsEndBeforeTheLocksAreBack(t *testing.T) {
	for name, end := range map[string]func(e *Endpoint, last *Port){
		"port":     func(_ *Endpoint, last *Port) { _ = last.Close() },
		"endpoint": func(e *Endpoint, _ *Port) { _ = e.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			x, _ := twoLinks(t)
			l := &slowToUnlock{x, make(chan struct{})}
			e, err := Open(Config{Spin: -1}, l)
			if err != nil {
				t.Fatal(err)
			}
			var ports []*Port
			for id := range PortID(3) {
				p, err := e.OpenPort(id, PortOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ports = append(ports, p)
			}
			var posted RecvDesc
			if err := ports[2].PostRecv(&posted); err != nil {
				t.Fatal(err)
			}
			received, awaited := make(chan error, 1), make(chan error, 1)
			go func() {
				_, _, err := ports[2].Recv(t.Context(), nil)
				received <- err
			}()
			go func() {
				var never Completion
				awaited <- e.Await(t.Context(), &never)
			}()
			synctest.Wait()
			closed := make(chan struct{})
			go func() { end(e, ports[2]); close(closed) }()
			synctest.Wait()
			if len(received) == 0 || name == "endpoint" && len(awaited) == 0 {
				t.Errorf("%s: %d of Recv and %d of Await have ended while it closes", name, len(received), len(awaited))
			}
			if !posted.Done() {
				t.Errorf("%s: a posted descriptor is not done while it closes", name)
			}
			close(l.told)
			<-closed
			if err := <-received; !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Recv: %v", name, err)
			}
			_ = e.Close()
			<-awaited
		})
	}
}

// A message that is to be sent in place without the room before it is an error, behind those that are
// sent, and does no harm.
func TestTrySendInPlace_WithoutHeadroom(t *testing.T) {
	for _, keys := range []*keyring.Ring{nil, {Keys: []keyring.Key{{1}}}, {Keys: []keyring.Key{{1}}, Encrypt: true}} {
		e, p, _, _ := openScripts(t, 1, func(c *Config) { c.Keys = keys })
		headroom := e.Headroom()
		for _, short := range [][]byte{nil, make([]byte, headroom-1), make([]byte, headroom-1, 2*headroom)} {
			n, err := p.TrySendInPlace(0, To(Addr{1, 1}), make([]byte, headroom), short, make([]byte, headroom))
			if n != 1 || err == nil {
				t.Errorf("%d bytes: %d sent, %v; want the first one, and an error", len(short), n, err)
			}
		}
	}
}
