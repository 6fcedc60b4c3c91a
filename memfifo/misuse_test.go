package memfifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// An argument that no owner would accept is refused at once, in words that name the mistake.
func TestMisuse_IsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		d, ctx := c.domains[0], limit(t)
		here, err := d.Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		there := c.window(t, 1, 64)
		for _, k := range []memfifo.Key{here.Key(), there.Key()} {
			r := d.Remote(k)
			for _, m := range []struct {
				what, want string
				do         func() error
			}{
				{"Put", "offset -1: want 0 or more", func() error { return r.Put(ctx, -1, []byte{1}) }},
				{"PutV", "offset -8: want 0 or more", func() error { return r.PutV(ctx, memfifo.Segment{Off: -8}) }},
				{"PostPut", "offset -1: want 0 or more", func() error { return d.PostPut(new(heard).put(r, -1, nil, r, "")) }},
				{"PostPut without Sent", "posted put without Sent", func() error { return d.PostPut(&memfifo.PostedPut{Window: k, Tail: k}) }},
				{"PostPut to two nodes", "posted put: the nodes of Window and Tail differ", func() error {
					return d.PostPut(new(heard).put(r, 0, nil, d.Remote(memfifo.PublicKey(1-k.Node, 1)), ""))
				}},
				{"PostPut of a long record", "post a push of 9000 bytes: ", func() error {
					return d.PostPut(new(heard).put(r, 0, nil, r, string(make([]byte, 9000))))
				}},
				{"WriteAt", "offset -1: want 0 or more", func() error { _, err := r.WriteAt(nil, -1); return err }},
				{"Get", "offset -1: want 0 or more", func() error { return r.Get(ctx, -1, make([]byte, 1)) }},
				{"FetchAdd", "offset -8: want 0 or more", func() error { _, err := r.FetchAdd(ctx, -8, 1); return err }},
				{"Post", "parcel 0: offset -1: want 0 or more", func() error { return d.Post(&memfifo.Parcel{To: r, Off: -1}) }},
				{"Post of nil", "parcel 0: parcel without a Remote in To", func() error { return d.Post(nil) }},
				{"Post to nowhere", "parcel 0: parcel without a Remote in To", func() error { return d.Post(&memfifo.Parcel{}) }},
				{"Post elsewhere", "parcel 0: parcel's Remote is of another domain", func() error { return c.domains[1].Post(&memfifo.Parcel{To: r}) }},
				{"Wait of what was never posted", "parcel without a Remote in To", func() error { return new(memfifo.Parcel).Wait(context.Background()) }},
				{"NewFIFO", "FIFO 9: 63 bytes of memory are too few (want 64)", func() error { _, err := d.NewFIFO(9, make([]byte, 63)); return err }},
			} {
				if err := m.do(); err == nil || !strings.HasPrefix(err.Error(), m.want) {
					t.Errorf("%s: %v, want %s", m.what, err, m.want)
				}
			}
		}
		must(t, d.Flush(ctx))
	})
}

// An atomic operation that fails has no value: not at once, nor when its owner refuses it or is closed.
func TestMisuse_FailedAtomicsHaveNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, _ := twoNodes(t, fault.Config{}, 0, 64)
		d := c.domains[0]
		must(t, w.Store(0, 5))
		wrong, nobody := w.Key(), w.Key()
		wrong.Secret++
		nobody.Node = 77
		over, cancel := context.WithCancel(ctx)
		cancel()
		for _, x := range []struct {
			what string
			ctx  context.Context
			key  memfifo.Key
			off  int64
		}{{"a wrong key", ctx, wrong, 0}, {"no such node", ctx, nobody, 0}, {"a negative offset", ctx, w.Key(), -8}, {"a context that is over", over, w.Key(), 0}} {
			r := d.Remote(x.key)
			v1, err1 := r.FetchAdd(x.ctx, x.off, 3)
			v2, err2 := r.Swap(x.ctx, x.off, 3)
			v3, err3 := r.CompareSwap(x.ctx, x.off, 5, 3)
			if v1|v2|v3 != 0 || err1 == nil || err2 == nil || err3 == nil {
				t.Errorf("%s: %d %v, %d %v, %d %v", x.what, v1, err1, v2, err2, v3, err3)
			}
		}
		here, err := d.Register(9, make([]byte, 64), memfifo.All)
		must(t, err)
		must(t, d.Close())
		for _, k := range []memfifo.Key{w.Key(), here.Key(), nobody} {
			if v, err := d.Remote(k).FetchAdd(ctx, 0, 1); v != 0 || !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("closed: %d, %v", v, err)
			}
		}
		if v, _ := w.Load(0); v != 5 {
			t.Errorf("the word is %d, want 5", v)
		}
	})
}

// A timeout of less than a machine takes to wake a process is refused, as where its unit is forgotten.
func TestOpen_PeerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mcdtest.Open(t, 1, mcdtest.Config{})[0]
		for _, timeout := range []time.Duration{-1, 5, time.Millisecond - 1} {
			if _, err := memfifo.Open(e, memfifo.Config{PeerTimeout: timeout}); err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("PeerTimeout %v (want 1ms or more", timeout)) {
				t.Errorf("%v: %v", timeout, err)
			}
		}
		d, err := memfifo.Open(e, memfifo.Config{PeerTimeout: time.Millisecond})
		must(t, err)
		must(t, d.Close())
	})
}

// Where messages are too short for the longest operation, a domain says so when it is opened; where
// they are not, all operations work.
func TestOpen_ShortMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		for mtu := fabric.MinMTU; ; mtu++ {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Fabric: fabric.Config{MTU: mtu}, Endpoint: mcd.Config{Spin: -1}})
			a, err := memfifo.Open(eps[0], memfifo.Config{})
			if err != nil {
				if !strings.Contains(err.Error(), fmt.Sprintf("messages of %d bytes are too short", eps[0].MaxPayload())) {
					t.Fatal(err)
				}
				refused++
				continue
			}
			b, err := memfifo.Open(eps[1], memfifo.Config{})
			must(t, err)
			w, err := b.Register(1, make([]byte, 64), memfifo.All)
			must(t, err)
			r, ctx := a.Remote(w.Key()), limit(t)
			must(t, r.Put(ctx, 0, make([]byte, 64)))
			if old, err := r.CompareSwap(ctx, 8, 0, 7); old != 0 || err != nil {
				t.Errorf("CompareSwap: %d, %v", old, err)
			}
			must(t, r.Get(ctx, 0, make([]byte, 64)))
			must(t, a.Close())
			must(t, b.Close())
			break
		}
		if refused == 0 {
			t.Error("the shortest messages are taken: that is no test of what is refused")
		}
	})
}
