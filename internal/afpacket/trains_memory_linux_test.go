package afpacket_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"

	"github.com/rawlane/rawlane/internal/testbed"
)

// oneTag is a router that gives each frame the same tag.
type oneTag struct{ transport.OptionalTag }

func (o oneTag) Route(transport.MAC) transport.OptionalTag { return o.OptionalTag }

// Long writes and records arrive whole and in order over links with trains: with a tag, with keys,
// with loss, and to a node whose link has none.
func TestTrains_UnderRemoteMemory(t *testing.T) {
	for _, c := range []struct {
		name     string
		loss     float64
		keys     *keyring.Ring
		tag      transport.OptionalTag
		oneIsOld bool
	}{
		{name: "plain"},
		{name: "tagged", tag: transport.Tagged(transport.Tag{VID: 9, PCP: 3})},
		{name: "keys", keys: &keyring.Ring{Keys: []keyring.Key{{1, 2}}}},
		{name: "encrypted", keys: &keyring.Ring{Keys: []keyring.Key{{1, 2}}, Encrypt: true}},
		{name: "loss", loss: 0.02},
		{name: "one old", oneIsOld: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
				a, b := open(0, settings{trains: true}), open(1, settings{trains: !c.oneIsOld})
				seed := rand.Uint64()
				cfg := mcdtest.Config{Endpoint: mcd.Config{Keys: c.keys, Router: oneTag{c.tag}}}
				cfg.Wrap = func(_ mcd.NodeID, _ int, l transport.Link) transport.Link {
					f, err := fault.New(l, rand.New(rand.NewPCG(seed, 0)), fault.Config{Loss: c.loss})
					if err != nil {
						t.Fatal(err)
					}
					return f
				}
				eps := mcdtest.OpenLinks(t, cfg, []transport.Link{a}, []transport.Link{b})
				var domains [2]*memfifo.Domain
				for k, e := range eps {
					d, err := memfifo.Open(e, memfifo.Config{})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = d.Close() })
					domains[k] = d
				}
				for from := range domains {
					writeAndPush(t, domains[from], domains[1-from], seed)
				}
				sent, _ := trainsOf(a)
				if c.oneIsOld != (sent == 0) {
					t.Errorf("seed %d: %d trains sent", seed, sent)
				}
			})
		})
	}
}

// writeAndPush checks long writes and records from one node to another.
func writeAndPush(t *testing.T, from, to *memfifo.Domain, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	mem := make([]byte, 1<<20)
	w, err := to.Register(1, mem, memfifo.All)
	fail(err)
	f, err := to.NewFIFO(2, make([]byte, 1<<18))
	fail(err)
	data := make([]byte, len(mem))
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(data)
	remote, queue := from.Remote(w.Key()), from.Remote(f.Key())
	own, err := from.Register(3, make([]byte, 8), memfifo.All)
	fail(err)
	told := to.Remote(own.Key())
	for range 2 { // trains are agreed upon during the first
		fail(remote.Put(ctx, 0, data))
		fail(queue.Push(ctx, []byte("it is there")))
		_, err := f.Pop(ctx, make([]byte, 16))
		fail(err)
		if got := w.Bytes(); !bytes.Equal(got, data) {
			t.Fatalf("seed %d: what was written is not there", seed)
		}
		clear(w.Bytes())
		fail(told.Put(ctx, 0, make([]byte, 8))) // that it may write again
	}
	back := make([]byte, 300_000)
	fail(remote.Put(ctx, 0, data))
	fail(remote.Get(ctx, 77, back))
	if !bytes.Equal(back, data[77:][:len(back)]) {
		t.Fatalf("seed %d: what was read is not what was written", seed)
	}
	go func() {
		for i := range 5000 {
			if queue.Push(ctx, data[i:][:8+i%3]) != nil {
				return // Pop tells
			}
		}
	}()
	rec := make([]byte, 16)
	for i := range 5000 {
		n, err := f.Pop(ctx, rec)
		fail(err)
		if !bytes.Equal(rec[:n], data[i:][:8+i%3]) {
			t.Fatalf("seed %d: record %d is another", seed, i)
		}
	}
}
