package memfifo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Config.Handlers are handlers as those of Handle are.
func TestConfig_Handlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		must(t, c.domains[1].Close())
		if _, err := memfifo.Open(c.eps[1], memfifo.Config{Handlers: map[uint16]memfifo.HandlerConfig{5: {}}}); err == nil {
			t.Error("a handler without a function")
		}
		var got calls
		d, err := memfifo.Open(c.eps[1], memfifo.Config{Handlers: map[uint16]memfifo.HandlerConfig{5: got.config()}})
		must(t, err)
		c.domains[1] = d
		if _, err := d.Handle(5, got.config()); !errors.Is(err, memfifo.ErrTaken) {
			t.Errorf("%v, want that the id is taken", err)
		}
		ctx := limit(t)
		must(t, c.domains[0].Remote(memfifo.PublicKey(1, 5)).Push(ctx, []byte("first")))
		must(t, c.domains[0].Flush(ctx))
		synctest.Wait()
		if len(got.records) != 1 || string(got.records[0]) != "first" {
			t.Errorf("%q were handled", got.records)
		}
		h, err := d.Handle(6, got.config())
		must(t, err)
		if d.Handler(5).Key() != memfifo.PublicKey(1, 5) || d.Handler(6) != nil {
			t.Errorf("%v, %v", d.Handler(5), d.Handler(6))
		}
		must(t, h.Close())
		must(t, d.Handler(5).Close())
		if _, err := d.Handle(5, got.config()); err != nil {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A handler hears of nodes that are down, and of none as its own domain closes.
func TestHandler_HearsOfNoneAsItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		var down []*memfifo.PeerDownError
		h, err := c.domains[0].Handle(5, memfifo.HandlerConfig{
			Record: func(memfifo.Sender, []byte) {},
			Down:   func(err *memfifo.PeerDownError) { down = append(down, err) },
		})
		must(t, err)
		must(t, h.Expect(1))
		_, err = c.domains[1].Handle(5, memfifo.HandlerConfig{Public: true, Record: func(memfifo.Sender, []byte) {}})
		must(t, err)
		must(t, c.domains[0].Remote(memfifo.PublicKey(1, 5)).Push(limit(t), []byte("x")))
		must(t, c.domains[0].Close())
		if len(down) > 0 {
			t.Errorf("%v", down)
		}
	})
}

// A node that is down can be expected anew, also if a FIFO of the domain has expected it all the time: it is
// probed anew, and the handler is told anew.
func TestHandler_ExpectsAnewBesideAFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		var got calls
		h, r := c.handler(t, got.config())
		q := c.fifo(t, 1, 64)
		must(t, r.Push(limit(t), nil))
		must(t, q.Expect(0))
		c.faults[0].Cut(true)
		for times := 1; times <= 3; times++ {
			must(t, h.Expect(0))
			time.Sleep(3 * memfifo.DefaultPeerTimeout)
			synctest.Wait()
			if len(got.down) != times || len(q.Down()) != 1 {
				t.Errorf("expected for the %d. time: the handler was told %v, the FIFO %v", times, got.down, q.Down())
			}
		}
		c.faults[0].Cut(false)
	})
}

// A node that is silent has lost what was under way to it, and else nothing: not what it has
// acknowledged before a Flush found it silent.
func TestHandler_DownTellsWhetherSomethingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		var got calls
		h, r := c.handler(t, got.config())
		must(t, r.Push(limit(t), nil))
		must(t, c.domains[0].Flush(limit(t)))
		c.faults[0].Cut(true)
		must(t, h.Expect(0))
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		synctest.Wait()
		if len(got.down) != 1 || got.down[0].Lost {
			t.Errorf("of a node to which nothing was under way: %+v", got.down)
		}
		must(t, r.Push(limit(t), nil))
		err := c.domains[0].Flush(limit(t))
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || !down.Lost {
			t.Errorf("of a node to which a record was under way: %v", err)
		}
		c.faults[0].Cut(false)
		must(t, r.Push(limit(t), nil))
		time.Sleep(time.Second) // it is acknowledged
		c.faults[0].Cut(true)
		err = c.domains[0].Flush(limit(t))
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); !ok || down.Lost {
			t.Errorf("of a node that has acknowledged all: %v", err)
		}
		c.faults[0].Cut(false)
	})
}

// An answer that no frame has room for is refused as such: to wait for room would be in vain.
func TestHandler_AnswerLongerThanAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		var answers []error
		_, r := c.handler(t, memfifo.HandlerConfig{Public: true, Record: func(from memfifo.Sender, _ []byte) {
			for longer := range 2 {
				answers = append(answers, from.Post(9, 0, make([]byte, c.domains[1].MaxFrameRecord()+longer)))
			}
		}})
		must(t, r.Push(limit(t), nil))
		must(t, c.domains[0].Flush(limit(t)))
		synctest.Wait()
		if len(answers) != 2 || answers[0] != nil || !errors.Is(answers[1], memfifo.ErrTooLarge) {
			t.Errorf("Post of the longest record, and of one that is a byte longer: %v", answers)
		}
	})
}

// A function that appends to its record writes over nothing that is behind it in the frame.
func TestHandler_AppendsToItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 3)
		var got []string
		_, r := c.handler(t, memfifo.HandlerConfig{Public: true, Record: func(_ memfifo.Sender, rec []byte) {
			got = append(got, string(append(rec, " and more"...)))
		}})
		must(t, r.PushBatch(limit(t), []byte("one"), []byte("two")))
		must(t, c.domains[0].Flush(limit(t)))
		if len(got) != 2 || !strings.HasPrefix(got[0], "one ") || !strings.HasPrefix(got[1], "two ") {
			t.Errorf("%q", got)
		}
	})
}
