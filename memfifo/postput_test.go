package memfifo_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// beyond is longer than what a connection takes before it is acknowledged.
const beyond = 900_000

// heard notes what the Sent of posted puts is told.
type heard struct{ errs []error }

// put is data for the window of r, and a record for to.
func (h *heard) put(r *memfifo.Remote, off int64, data []byte, to *memfifo.Remote, rec string) *memfifo.PostedPut {
	return &memfifo.PostedPut{
		Window: r.Key(), Off: off, Data: data, Tail: to.Key(), Record: []byte(rec),
		Sent: func(err error) *memfifo.PostedPut { h.errs = append(h.errs, err); return nil },
	}
}

// sent reports whether all has been said, once, and without an error.
func (h *heard) sent() bool { return len(h.errs) == 1 && h.errs[0] == nil }

// tailed is two nodes that have met: a window of the second, and a handler there that notes, with
// each record, the first and the last byte of the window.
func tailed(t *testing.T) (c *cluster, r, to *memfifo.Remote, got *[]string) {
	t.Helper()
	c = open(t, 2, -1, fault.Config{}, 0)
	w := c.window(t, 1, beyond)
	got = new([]string)
	_, to = c.handler(t, memfifo.HandlerConfig{Public: true, Record: func(_ memfifo.Sender, rec []byte) {
		b := w.Bytes()
		*got = append(*got, string(append(bytes.Clone(rec), b[0], b[len(b)-1])))
	}})
	must(t, to.Push(limit(t), nil))
	must(t, c.domains[0].Flush(limit(t)))
	*got = nil
	return c, c.domains[0].Remote(w.Key()), to, got
}

// A record comes once all of its put is in place, behind what was posted before, and before what is
// pushed next, be the put short or longer than a window of frames.
func TestPostPut_InTheOrderOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, to, got := tailed(t)
		d := c.domains[0]
		var long, short, again heard
		one := long.put(r, 0, bytes.Repeat([]byte{'1'}, beyond), to, "long")
		must(t, d.PostPut(one))
		copy(one.Record, "next") // by the caller
		must(t, to.Push(limit(t), one.Record))
		*one = *short.put(r, 0, []byte{'2'}, to, "short")
		must(t, d.PostPut(one))
		must(t, d.PostPut(again.put(r, beyond-1, []byte{'3'}, to, "again")))
		must(t, d.Flush(limit(t)))
		if want := []string{"long11", "next11", "short21", "again23"}; !slices.Equal(*got, want) {
			t.Errorf("records %q, want %q", *got, want)
		}
		if !long.sent() || !short.sent() || !again.sent() {
			t.Errorf("told %v, %v, %v", long, short, again)
		}
	})
}

// Sent is told when a put's last bytes are in frames: not before there is room for these, and before
// they are acknowledged.
func TestPostPut_IsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, to, got := tailed(t)
		c.faults[1].Cut(true) // nothing is acknowledged
		data := bytes.Repeat([]byte{'1'}, beyond)
		var short, long heard
		must(t, c.domains[0].PostPut(short.put(r, 0, data[:1], to, "short")))
		must(t, c.domains[0].PostPut(long.put(r, 0, data, to, "long")))
		if !short.sent() || len(long.errs) > 0 {
			t.Errorf("told %v of a byte, and %v of more than a window", short, long)
		}
		c.faults[1].Cut(false)
		must(t, c.domains[0].Flush(limit(t)))
		if want := []string{"short1\x00", "long11"}; !slices.Equal(*got, want) || !long.sent() {
			t.Errorf("records %q, want %q; told %v", *got, want, long)
		}
	})
}

// What Sent returns is posted next, behind what others have posted meanwhile; on the node itself,
// too.
func TestPostPut_Next(t *testing.T) {
	for name, here := range map[string]bool{"to another node": false, "to itself": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r, to, got := tailed(t)
				d := c.domains[0]
				if here {
					d = c.domains[1]
				}
				var told []error
				first, wrong := new(heard).put(r, 0, bytes.Repeat([]byte{'1'}, beyond), to, "a"), &memfifo.PostedPut{}
				first.Sent = func(err error) *memfifo.PostedPut {
					if told = append(told, err); len(told) == 3 {
						return wrong
					}
					first.Data, first.Record = []byte{'1' + byte(len(told))}, []byte{'a' + byte(len(told))}
					return first
				}
				wrong = new(heard).put(r, 0, nil, to, "wrong")
				wrong.Tail.Node++
				wrong.Sent = func(err error) *memfifo.PostedPut { told = append(told, err); return first }
				must(t, d.PostPut(first))
				must(t, d.Remote(to.Key()).Push(limit(t), []byte("push")))
				must(t, d.Flush(limit(t)))
				want := []string{"a11", "push11", "b21", "c31"}
				if here {
					want = []string{"a11", "b21", "c31", "push31"}
				}
				if !slices.Equal(*got, want) {
					t.Errorf("records %q, want %q", *got, want)
				}
				if len(told) != 4 || errors.Join(told[:3]...) != nil || told[3] == nil {
					t.Errorf("told %v, want three times nil, and what is wrong with the last", told)
				}
			})
		})
	}
}

// A put and its record share a frame.
func TestPostPut_SharesAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, r := met(t)
		q, err := d[1].NewFIFO(2, make([]byte, memfifo.MinFIFO))
		must(t, err)
		settle(eps)
		before := d[0].Counters().Sent
		must(t, d[0].PostPut(new(heard).put(r, 0, []byte{7}, d[0].Remote(q.Key()), "put")))
		if n := d[0].Counters().Sent - before; n != 1 {
			t.Errorf("%d frames, want 1", n)
		}
		for eps[1].Progress() {
		}
		rec := make([]byte, 8)
		if n, ok, err := q.TryPop(rec); !ok || err != nil || string(rec[:n]) != "put" {
			t.Errorf("the record is %q, %v, %v", rec[:n], ok, err)
		}
	})
}

// With its node, its domain or its endpoint, a put is lost, and its record with it. Sent is told why,
// and as soon as a wait of the domain's where the endpoint alone is closed; nothing is posted next.
func TestPostPut_OfWhatIsLost(t *testing.T) {
	for name, lose := range map[string]struct {
		way  func(t *testing.T, c *cluster)
		want error
	}{
		"the node is down":     {func(*testing.T, *cluster) {}, memfifo.ErrPeerDown},
		"the domain is closed": {func(_ *testing.T, c *cluster) { _ = c.domains[0].Close() }, memfifo.ErrPeerDown},
		"the endpoint is closed": {func(t *testing.T, c *cluster) {
			must(t, c.eps[0].Close())
			before := time.Now()
			_ = c.domains[0].Flush(limit(t))
			if took := time.Since(before); took > 0 {
				t.Errorf("after %v", took)
			}
		}, memfifo.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r, to, got := tailed(t)
				c.faults[1].Cut(true)
				var by heard
				for _, rec := range []string{"first", "second"} {
					q := by.put(r, 0, make([]byte, beyond), to, rec)
					note := q.Sent
					q.Sent = func(err error) *memfifo.PostedPut { note(err); return q }
					must(t, c.domains[0].PostPut(q))
				}
				lose.way(t, c)
				_ = c.domains[0].Flush(limit(t))
				if len(by.errs) != 2 || !errors.Is(by.errs[0], lose.want) || !errors.Is(by.errs[1], lose.want) {
					t.Errorf("told %v, want %v, twice", by, lose.want)
				}
				c.faults[1].Cut(false)
				synctest.Wait()
				if len(*got) > 0 {
					t.Errorf("records %q, want none", *got)
				}
			})
		})
	}
}

// To its own node, a put and its record are done at once, unless there is no room for the record.
func TestPostPut_ToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 1, -1, fault.Config{}, 0)
		w, q := c.window(t, 0, 8), c.fifo(t, 0, memfifo.MinFIFO)
		d, rec := c.domains[0], string(make([]byte, 28))
		r, to := d.Remote(w.Key()), d.Remote(q.Key())
		for k := range byte(2) {
			var by heard
			if must(t, d.PostPut(by.put(r, 0, []byte{6 + k}, to, rec))); !by.sent() {
				t.Errorf("told %v", by)
			}
		}
		if q.Len() == 0 || w.Bytes()[0] != 7 {
			t.Errorf("%d bytes in the FIFO, %d in the window", q.Len(), w.Bytes()[0])
		}
		var by heard
		if err := d.PostPut(by.put(r, 0, []byte{8}, to, rec)); !errors.Is(err, memfifo.ErrFull) || len(by.errs) > 0 {
			t.Errorf("to a full FIFO: %v; told %v", err, by)
		}
	})
}

// No more puts are posted to a node than MaxParcels.
func TestPostPut_TooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, to, _ := tailed(t)
		c.faults[1].Cut(true)
		var by heard
		var err error
		put := by.put(r, 0, make([]byte, beyond), to, "")
		n := 0
		for ; err == nil && n <= memfifo.MaxParcels; n++ {
			err = c.domains[0].PostPut(put)
		}
		if n != memfifo.MaxParcels+1 || !errors.Is(err, memfifo.ErrManyParcels) {
			t.Errorf("post %d: %v", n, err)
		}
	})
}

// A window of this node that ends a wait, as it is revoked or bound anew, ends no posted put: neither
// domain nor endpoint is closed.
func TestPostPut_BesideAWindowThatEnds(t *testing.T) {
	for name, end := range map[string]func(w *memfifo.Window){
		"revoked":    func(w *memfifo.Window) { w.Revoke() },
		"bound anew": func(w *memfifo.Window) { _, _ = w.Rebind(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r, to, got := tailed(t)
				own := c.window(t, 0, 64)
				c.faults[1].Cut(true)
				var by heard
				must(t, c.domains[0].PostPut(by.put(r, 0, bytes.Repeat([]byte{'1'}, beyond), to, "rec")))
				waited := make(chan error)
				go func() {
					_, err := own.Wait(limit(t), 0)
					waited <- err
				}()
				synctest.Wait()
				end(own)
				if err := <-waited; !errors.Is(err, memfifo.ErrClosed) {
					t.Errorf("the wait: %v, want ErrClosed", err)
				}
				c.faults[1].Cut(false)
				must(t, c.domains[0].Flush(limit(t)))
				if !by.sent() || len(*got) != 1 {
					t.Errorf("told %v, records %q", by.errs, *got)
				}
			})
		})
	}
}

// The error of a completion is the one that its handler's Await returns, also if it Is mcd.ErrClosed.
func TestAwait_OfACompletionThatSaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, to, got := tailed(t)
		h, err := c.domains[0].Handle(77, memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}})
		must(t, err)
		c.faults[1].Cut(true)
		var by heard
		must(t, c.domains[0].PostPut(by.put(r, 0, bytes.Repeat([]byte{'1'}, beyond), to, "rec")))
		var done mcd.Completion
		mine := fmt.Errorf("a service of the program's: %w", mcd.ErrClosed)
		done.Complete(mine)
		if err := h.Await(limit(t), &done); err != mine { //nolint:errorlint // the very value
			t.Errorf("%v, want %v", err, mine)
		}
		c.faults[1].Cut(false)
		must(t, c.domains[0].Flush(limit(t)))
		if !by.sent() || len(*got) != 1 {
			t.Errorf("told %v, records %q", by.errs, *got)
		}
	})
}

// Posted puts to this node itself, each from within the Sent of the one before, are one call after
// the other, and no deeper stack.
func TestPostPut_ManyToThisNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 1, -1, fault.Config{}, 0)
		w := c.window(t, 0, 8)
		records := 0
		h, err := c.domains[0].Handle(77, memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) { records++ }})
		must(t, err)
		const many = 30
		var depths []int
		q := &memfifo.PostedPut{Window: w.Key(), Data: []byte{1}, Tail: h.Key()}
		q.Sent = func(error) *memfifo.PostedPut {
			depths = append(depths, runtime.Callers(0, make([]uintptr, 100)))
			if len(depths) == many {
				return nil
			}
			return q
		}
		must(t, c.domains[0].PostPut(q))
		if records != many || depths[0] != depths[many-1] {
			t.Errorf("%d records, want %d; stacks %v deep", records, many, depths)
		}
	})
}
