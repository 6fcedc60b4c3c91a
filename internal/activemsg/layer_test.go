package activemsg_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a layer. Its functions need no lock in these tests.
func open(t *testing.T, ep *mcd.Endpoint, h memfifo.HandlerConfig) *activemsg.Layer[activemsg.Node] {
	t.Helper()
	l, err := activemsg.Open(ep, memfifo.Config{}, h, func(n activemsg.Node) *activemsg.Node { return &n })
	must(t, err)
	return l
}

// The handler is there before the port is: a record that comes in between would be refused, of which
// nobody hears, and a Dial or a Call waits for ever.
func TestOpen_TheHandlerIsTheDomainsFirst(t *testing.T) {
	eps := mcdtest.Open(t, 1, mcdtest.Config{})
	l := open(t, eps[0], memfifo.HandlerConfig{
		Record: func(memfifo.Sender, []byte) {}, Down: func(*memfifo.PeerDownError) {},
	})
	if h := l.Domain.Handler(activemsg.HandlerID); h == nil || h != l.Handler || h.Key() != memfifo.PublicKey(0, 1) {
		t.Errorf("%v, want the handler of Config.Handlers", h)
	}
	must(t, l.Close())
}

// A node is one, however often it is asked for, and takes records; what Down is told comes to the
// layer; a node that has left is no error of Close.
func TestLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		var mu sync.Mutex // guards got and down
		var got []string
		var down []*memfifo.PeerDownError
		h := memfifo.HandlerConfig{
			Record: func(_ memfifo.Sender, rec []byte) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, string(rec))
			},
			Down: func(err *memfifo.PeerDownError) {
				mu.Lock()
				defer mu.Unlock()
				down = append(down, err)
			},
		}
		a, b := open(t, eps[0], h), open(t, eps[1], h)
		if first := a.Node(1); a.Node(1) != first || first.ID != 1 || len(a.Nodes) != 1 {
			t.Errorf("%v", a.Nodes)
		}
		must(t, a.Node(1).To.Push(t.Context(), []byte("hello")))
		must(t, a.Domain.Flush(t.Context()))
		must(t, b.Close())
		time.Sleep(time.Second)
		mu.Lock()
		if len(got) != 1 || got[0] != "hello" || len(down) == 0 || down[0].Node != 1 || down[0].Reason != memfifo.Left {
			t.Errorf("%q, %v", got, down)
		}
		mu.Unlock()
		must(t, a.Close())
	})
}

// Close names a node that has not confirmed what was pushed to it, unless the layer knows that it is
// down.
func TestLayer_KnowDown(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			h := memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}, Down: func(*memfifo.PeerDownError) {}}
			a, b := open(t, eps[0], h), open(t, eps[1], h)
			must(t, a.Node(1).To.Push(t.Context(), []byte("hello")))
			must(t, a.Domain.Flush(t.Context()))
			must(t, eps[1].Close())
			must(t, a.Node(1).To.Push(t.Context(), []byte("hello?")))
			if known {
				a.KnowDown(1)
			}
			err := a.Close()
			if down, ok := errors.AsType[*memfifo.PeerDownError](err); ok == known || !known && down.Node != 1 {
				t.Errorf("node 1 is known to be down: %v; Close: %v", known, err)
			}
			_ = b.Close()
		})
	}
}

// Close does not name a node that has left meanwhile, also if something was pushed to it behind that.
func TestLayer_LeftMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		h := memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}, Down: func(*memfifo.PeerDownError) {}}
		a, b := open(t, eps[0], h), open(t, eps[1], h)
		must(t, a.Node(1).To.Push(t.Context(), []byte("hello")))
		must(t, a.Domain.Flush(t.Context()))
		a.Closing()
		must(t, b.Close())
		synctest.Wait()
		must(t, a.Node(1).To.Push(t.Context(), []byte("hello?")))
		must(t, a.Close())
	})
}

// A node that was found down before Closing is known to be, also if Down comes to say so only
// behind that: it waits for the layer's lock, which is held by who closes.
func TestLayer_DownAsItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		var a *activemsg.Layer[activemsg.Node]
		told := 0
		down := func(err *memfifo.PeerDownError) {
			if told++; told == 1 {
				a.Closing()
			}
			a.KnowDown(err.Node)
		}
		a = open(t, eps[0], memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}, Down: down})
		b := open(t, eps[1], memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}, Down: func(*memfifo.PeerDownError) {}})
		must(t, a.Node(1).To.Push(t.Context(), []byte("hello")))
		must(t, a.Domain.Flush(t.Context()))
		must(t, b.Close())
		synctest.Wait()
		must(t, a.Node(1).To.Push(t.Context(), []byte("hello?")))
		must(t, a.Close())
		if told != 2 {
			t.Errorf("Down was told %d times, want 2: it has left, and does not answer", told)
		}
	})
}

// Close does not tell that another program, which a node's port is, has refused the layer's records;
// what it has refused of other memory it tells.
func TestLayer_AnotherProgramsPort(t *testing.T) {
	const window = 9
	for _, id := range []uint16{activemsg.HandlerID, window} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			h := memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}, Down: func(*memfifo.PeerDownError) {}}
			a := open(t, eps[0], h)
			other, err := memfifo.Open(eps[1], memfifo.Config{})
			must(t, err)
			must(t, a.Node(1).To.Push(t.Context(), []byte("hello?")))
			if id != activemsg.HandlerID {
				must(t, a.Domain.Remote(memfifo.Key{Node: 1, ID: id}).Put(t.Context(), 0, []byte("hello?")))
			}
			err = a.Close()
			refused, ok := errors.AsType[*memfifo.AccessError](err)
			if ok != (id == window) || ok && refused.ID != window || !ok && err != nil {
				t.Errorf("id %d is refused: Close: %v", id, err)
			}
			must(t, other.Close())
		})
	}
}
