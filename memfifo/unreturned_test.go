package memfifo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// watching has node 0 expect nodes to say something, by a handler of the given id. The nodes that it
// is told of are in down. Where do is set, it is called when it has noted one.
func watching(t *testing.T, c *cluster, id uint16, do func(), nodes ...mcd.NodeID) (down *[]mcd.NodeID) {
	t.Helper()
	down = new([]mcd.NodeID)
	h, err := c.domains[0].Handle(id, memfifo.HandlerConfig{
		Public: true, Record: func(memfifo.Sender, []byte) {},
		Down: func(err *memfifo.PeerDownError) {
			*down = append(*down, err.Node)
			if do != nil {
				do()
			}
		},
	})
	must(t, err)
	for _, node := range nodes {
		must(t, c.domains[node].Remote(memfifo.PublicKey(0, id)).Push(t.Context(), []byte("here")))
		must(t, c.domains[node].Flush(t.Context()))
		must(t, h.Expect(node))
	}
	return down
}

// A handler that ends its goroutine when it is told of a node keeps nobody from hearing of that one,
// nor of others that are silent as long.
func TestDown_ThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 1)
		q, err := c.domains[0].NewFIFO(1, make([]byte, memfifo.MinFIFO))
		must(t, err)
		var told []*[]mcd.NodeID
		for id := uint16(5); id < 9; id++ {
			told = append(told, watching(t, c, id, runtime.Goexit, 1, 2, 3))
		}
		must(t, q.Expect(1, 2, 3))
		for node := 1; node < 4; node++ {
			c.faults[node].Cut(true)
		}
		if _, err := q.Pop(limit(t), nil); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Pop: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for k, down := range told {
			if slices.Sort(*down); fmt.Sprint(*down) != "[1 2 3]" {
				t.Errorf("handler %d was told of nodes %v", k, *down)
			}
		}
	})
}

// A node that is down is told of, though its room in a FIFO goes to a sender whose next record is for
// a handler that ends its goroutine.
func TestDown_WhereItsRoomIsForAHandlerThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 1)
		q, err := c.domains[0].NewFIFO(1, make([]byte, memfifo.MinFIFO))
		must(t, err)
		down := watching(t, c, 6, nil, 1)
		got := badHandler(t, c.domains[0], runtime.Goexit)
		push := func(node, size int) {
			must(t, c.domains[node].Remote(q.Key()).Push(t.Context(), make([]byte, size)))
			synctest.Wait()
		}
		push(0, 28)
		push(0, 8)
		push(1, 28) // waits for room
		push(2, 8)  // waits for its turn
		must(t, c.domains[2].Remote(memfifo.PublicKey(0, 5)).Push(t.Context(), []byte("bad")))
		synctest.Wait()
		if len(*got) > 0 {
			t.Fatalf("%q came before the record that waits", *got)
		}
		c.faults[1].Cut(true)
		time.Sleep(2 * memfifo.DefaultPeerTimeout) // and not when it has been silent once more
		synctest.Wait()
		if fmt.Sprint(*got) != "[bad]" || fmt.Sprint(*down) != "[1]" {
			t.Errorf("%q were handled; told of nodes %v", *got, *down)
		}
	})
}

// endsWait is a context that ends the goroutine which waits, as a handler does that runs there.
type endsWait struct {
	context.Context
	end func()
}

func (e *endsWait) Done() <-chan struct{} {
	e.end()
	return nil
}

// A Get whose wait does not return leaves the memory to its caller: the reply is an orphan.
func TestGet_ThatDoesNotReturn(t *testing.T) {
	for name, end := range noreturn.Ways {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, fault.Config{}, 1)
			w := c.window(t, 1, 8)
			copy(w.Bytes(), "the data")
			r, buf := c.domains[0].Remote(w.Key()), make([]byte, 8)
			must(t, r.Get(t.Context(), 0, buf))
			clear(buf)
			c.faults[1].Cut(true) // the reply comes later
			outlive(func() {
				_ = r.Get(&endsWait{t.Context(), end}, 0, buf)
				t.Errorf("%s: Get has returned", name)
			})
			c.faults[1].Cut(false)
			time.Sleep(time.Second)
			synctest.Wait()
			if string(buf) != string(make([]byte, 8)) {
				t.Errorf("%s: %q has come to who waits no more", name, buf)
			}
			must(t, errors.Join(r.Get(t.Context(), 0, buf), c.domains[0].Flush(t.Context())))
			if string(buf) != "the data" {
				t.Errorf("%s: then %q", name, buf)
			}
		})
	}
}

// A Put, and a Push of a long record, that take what has come amid their frames, where a handler does
// not return, leave the memory to their caller: what was not in frames is not sent from there.
func TestPut_ThatDoesNotReturnAmidItsFrames(t *testing.T) {
	const size = 200 << 10 // more than a batch of frames, and than the first congestion window
	for name, end := range noreturn.Ways {
		for _, push := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				eps, d := piped(t)
				ctx := limit(t)
				got := badHandler(t, d[0], end)
				var records []string
				_, err := d[1].Handle(6, memfifo.HandlerConfig{Public: true, Record: func(_ memfifo.Sender, rec []byte) {
					records = append(records, string(rec))
				}})
				must(t, err)
				w, err := d[1].Register(1, make([]byte, size), memfifo.All)
				must(t, err)
				to := d[1].Remote(memfifo.PublicKey(0, 5))
				must(t, while(eps, func() error { return errors.Join(to.Push(ctx, []byte("good")), d[1].Flush(ctx)) }))
				must(t, to.Push(ctx, []byte("bad")))
				data := slices.Repeat([]byte("a"), size)
				outlive(func() {
					if push {
						data = data[:memfifo.MaxRecord]
						_ = d[0].Remote(memfifo.PublicKey(1, 6)).Push(ctx, data)
					} else {
						_ = d[0].Remote(w.Key()).Put(ctx, 0, data)
					}
					t.Errorf("%s: the call has returned", name)
				})
				for k := range data {
					data[k] = 'b'
				}
				must(t, while(eps, func() error {
					return errors.Join(d[0].Remote(memfifo.PublicKey(1, 6)).Push(ctx, []byte("last")), d[0].Flush(ctx))
				}))
				if slices.Contains(w.Bytes(), 'b') {
					t.Errorf("%s: what the caller has written behind the Put was sent", name)
				}
				want := []string{"last"}
				if push { // it has begun, and so is completed
					want = []string{strings.Repeat("a", memfifo.MaxRecord), "last"}
				}
				if !slices.Equal(records, want) || fmt.Sprint(*got) != "[good bad]" {
					t.Errorf("%s: %d records came, and %s were handled", name, len(records), *got)
				}
			})
		}
	}
}

// A Close in whose wait another port's function panics, or ends the goroutine, closes the domain all
// the same: its waits end, and the port is free behind it.
func TestClose_ThatDoesNotReturn(t *testing.T) {
	for name, end := range noreturn.Ways {
		for returned := true; returned; { // on a busy machine it may sleep in place of polling
			eps, d := pipedWith(t, mcd.Config{Spin: time.Minute}) // in real time: Close polls
			ctx := limit(t)
			_, err := eps[1].OpenPort(7, mcd.PortOptions{Receive: func([]mcd.Message, bool) { end() }})
			must(t, err)
			from, err := eps[0].OpenPort(7, mcd.PortOptions{})
			must(t, err)
			w, err := d[0].Register(1, make([]byte, 64), memfifo.All)
			must(t, err)
			r := d[1].Remote(w.Key())
			must(t, while(eps, func() error { return errors.Join(r.Signal(ctx), d[1].Flush(ctx)) }))
			must(t, r.Signal(ctx)) // which nobody answers
			must(t, from.Send(ctx, mcd.Addr{Node: 1, Port: 7}, []byte("bad")))
			outlive(func() {
				returned = false
				_ = d[1].Close()
				returned = true
			})
			must(t, d[1].Close())
			if err := r.Put(ctx, 0, []byte("late")); !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("%s: then a Put: %v", name, err)
			}
			again, err := memfifo.Open(eps[1], memfifo.Config{})
			if err != nil {
				t.Fatalf("%s: then Open: %v", name, err)
			}
			must(t, errors.Join(again.Close(), d[0].Close(), eps[0].Close(), eps[1].Close())) // among many open ones none polls
		}
	}
}
