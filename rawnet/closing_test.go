package rawnet

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
)

// gatedLink holds up the first frame that is sent once it is armed.
type gatedLink struct {
	transport.Link
	armed         atomic.Bool
	sending, open chan struct{}
}

func (l *gatedLink) Send(frames []transport.Frame) (int, error) {
	if l.armed.CompareAndSwap(true, false) {
		close(l.sending)
		<-l.open
	}
	return l.Link.Send(frames)
}

// ends is both ends of some connections from node 0 to node 1, whose link is node 0's.
type ends struct {
	n            *Net
	link         *gatedLink
	conns, other []*Conn
}

func newEnds(t *testing.T, conns int) *ends {
	e := &ends{link: &gatedLink{sending: make(chan struct{}), open: make(chan struct{})}}
	eps := mcdtest.Open(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			if node != 0 {
				return inner
			}
			e.link.Link = inner
			return e.link
		},
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var nets []*Net
	for _, ep := range eps {
		n, err := Open(ep, Config{})
		must(err)
		t.Cleanup(func() { _ = n.Close() })
		nets = append(nets, n)
	}
	e.n = nets[0]
	l, err := nets[1].Listen("x")
	must(err)
	for range conns {
		a, err := e.n.Dial(Network, "1:x")
		must(err)
		b, err := l.Accept()
		must(err)
		e.conns, e.other = append(e.conns, a.(*Conn)), append(e.other, b.(*Conn))
	}
	return e
}

// checkEOF checks that the other ends have heard that theirs were closed.
func (e *ends) checkEOF(t *testing.T) {
	t.Helper()
	for k, c := range e.other {
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("connection %d: %v, want EOF", k, err)
		}
	}
}

// A Close of a Net tells the other ends also of connections whose own Close has begun, and waits for
// a Write to end, or has not sent the news yet.
func TestClose_BesideThatOfAConnection(t *testing.T) {
	e := newEnds(t, 2)
	e.n.mu.Lock()
	e.conns[0].closed = true
	e.conns[1].closed = true
	e.conns[1].s.Close()
	e.n.mu.Unlock()
	if err := e.n.Close(); err != nil {
		t.Error(err)
	}
	e.checkEOF(t)
}

// A Close of a Net waits for the goroutine that sends another connection's news, as it sends those
// of all.
func TestClose_BesideWhoSendsTheNews(t *testing.T) {
	e := newEnds(t, 2)
	e.link.armed.Store(true)
	closed := make(chan struct{})
	go func() { _ = e.conns[0].Close() }()
	<-e.link.sending
	go func() {
		defer close(closed)
		if err := e.n.Close(); err != nil {
			t.Error(err)
		}
	}()
	for e.n.mu.Lock(); !e.n.stopped; e.n.mu.Lock() {
		e.n.mu.Unlock()
	}
	close(e.link.open)
	select { // the goroutine stands still before the second record
	case <-closed:
	case <-time.After(50 * time.Millisecond):
	}
	e.n.mu.Unlock()
	<-closed
	e.checkEOF(t)
}

// Close does not wait for ever for a node that acknowledges what comes, and says nothing of it: here
// one in whose memory a FIFO is full, behind which all is held.
func TestClose_BehindANodeThatNeverAnswers(t *testing.T) {
	for _, what := range []string{"a flush", "room"} {
		t.Run(what, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { closeBehindSilent(t, what) }) })
	}
}

func closeBehindSilent(t *testing.T, what string) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	n, err := Open(eps[0], Config{})
	must(err)
	other, err := memfifo.Open(eps[1], memfifo.Config{Port: DefaultPort})
	must(err)
	defer other.Close()
	full, err := other.NewFIFO(2, make([]byte, 1<<10))
	must(err)
	push := n.layer.Domain.Remote(full.Key())
	for range 4 {
		must(push.Push(t.Context(), make([]byte, 500)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if what == "room" { // an Open is sent, and its end finds none
		dialed := make(chan error)
		go func() { _, err := n.DialContext(ctx, Network, "1:x"); dialed <- err }()
		synctest.Wait()
		for range 10 {
			go func() {
				for push.Push(context.Background(), nil) == nil { // until Close
				}
			}()
		}
		if err := <-dialed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	n.mu.Lock()
	p := n.layer.Node(1)
	p.needsFlush = p.needsFlush || what == "a flush" // as behind a restart of the node
	n.startControl(p)
	n.mu.Unlock()
	synctest.Wait()
	n.mu.Lock()
	if !p.controlled {
		t.Error("nothing waits for it")
	}
	n.mu.Unlock()
	closed := make(chan error, 1)
	begun := time.Now()
	go func() { closed <- n.Close() }()
	select {
	case <-closed:
	case <-time.After(time.Hour):
		t.Error("Close waits for an hour")
		must(full.Close())
		<-closed
	}
	if took := time.Since(begun); took > 4*memfifo.DefaultPeerTimeout+time.Second {
		t.Errorf("Close took %v", took)
	}
}
