package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A timeout of less than a machine takes to wake a process is refused, as where its unit is forgotten.
func TestOpenExchanger_PeerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mcdtest.Open(t, 1, mcdtest.Config{})[0]
		for _, timeout := range []time.Duration{-1, 5, time.Millisecond - 1} {
			if _, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{PeerTimeout: timeout}); err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("PeerTimeout %v (want 0, or 1ms or more", timeout)) {
				t.Errorf("%v: %v", timeout, err)
			}
		}
		x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{PeerTimeout: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// long is a blob that takes three seconds by the links of slowly.
var long = bytes.Repeat([]byte("long"), 105<<10)

// slowly opens nodes by whose links a message takes 5 ms, and one of a hundred is lost.
func slowly(t *testing.T, n int) []*mcd.Endpoint {
	t.Helper()
	return mcdtest.Open(t, n, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			f, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(node))), fault.Config{
				Delay: 1, DelayMin: 5 * time.Millisecond, DelayMax: 5 * time.Millisecond, Loss: .01,
			})
			if err != nil {
				t.Fatal(err)
			}
			return f
		},
	})
}

// forger is a node that gives an empty blob to all that ask, and else does nothing by itself.
func forger(t *testing.T, e *mcd.Endpoint) (p *mcd.Port) {
	t.Helper()
	p, err := e.OpenPort(cluster.ExchangePort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		for i := range batch {
			if m := wire.Parse(batch[i].Payload); m.Kind == wire.Fetch {
				_ = p.TrySend(0, mcd.To(batch[i].From), wire.Message{Kind: wire.Part, From: 1, To: m.From, Number: m.Number}.Bytes())
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A node that has all closes its Exchanger once another one has the whole of its blob, however long
// that is; also where yet another one is gone by then.
func TestExchanger_CloseBehindALongBlob(t *testing.T) {
	for _, silent := range []time.Duration{0, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			es := slowly(t, 3)
			var all []*cluster.Exchanger
			for _, e := range es[:2] {
				x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{PeerTimeout: silent})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, x)
			}
			forger(t, es[2])
			var over [2]time.Duration
			start := time.Now()
			each(t, all, func(i int, x *cluster.Exchanger) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var own []byte
				if i == 0 {
					own = long
					time.Sleep(100 * time.Millisecond) // virtual: the other one waits for it
				}
				got, err := x.Exchange(ctx, own)
				if err == nil && !bytes.Equal(got[0], long) {
					err = fmt.Errorf("%d bytes of node 0, want %d", len(got[0]), len(long))
				}
				if over[i] = time.Since(start); i == 0 {
					err = errors.Join(err, x.Close())
					over[i] = time.Since(start)
				}
				return err
			})
			if over[1] < 3*time.Second || over[0] > over[1]+4*time.Second {
				t.Errorf("served behind %v, closed behind %v", over[1], over[0])
			}
			if err := all[1].Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A node that asks for the same again, for hardly more, or to and fro holds nobody up.
func TestExchanger_CloseDespiteForgery(t *testing.T) {
	for name, offset := range map[string]func(k uint32) uint32{
		"the same again": func(uint32) uint32 { return 3000 },
		"hardly more":    func(k uint32) uint32 { return k },
		"to and fro":     func(k uint32) uint32 { return 40_000 * (k % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				es := slowly(t, 2)
				x, err := cluster.OpenExchanger(es[0], cluster.ExchangerConfig{})
				if err != nil {
					t.Fatal(err)
				}
				p := forger(t, es[1])
				if _, err := x.Exchange(t.Context(), long); err != nil {
					t.Fatal(err)
				}
				start, closed := time.Now(), make(chan error, 1)
				go func() { closed <- x.Close() }()
				for k := uint32(0); len(closed) == 0 && time.Since(start) < time.Minute; k++ {
					m := wire.Message{Kind: wire.Fetch, From: 1, Number: 1, Offset: offset(k)}
					_ = p.TrySend(0, mcd.To(mcd.Addr{Node: 0, Port: cluster.ExchangePort}), m.Bytes())
					time.Sleep(20 * time.Millisecond) // virtual
				}
				if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
					t.Errorf("closed after %v, want 2 s", took)
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A gather whose root closes before it has all blobs fails on the others, too: none is told that the
// root has all.
func TestExchanger_RootClosesInAGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const root, gathers = 0, 1 // and node 2 does not
		all := exchangers(t, 3, fault.Config{}, cluster.ExchangerConfig{PeerTimeout: time.Second})
		each(t, all, func(_ int, x *cluster.Exchanger) error {
			_, err := x.Exchange(t.Context(), nil)
			return err
		})
		atRoot, elsewhere := make(chan error), make(chan error)
		go func() { _, err := all[root].Gather(t.Context(), root, nil); atRoot <- err }()
		go func() { _, err := all[gathers].Gather(t.Context(), root, nil); elsewhere <- err }()
		time.Sleep(100 * time.Millisecond)
		if err := all[root].Close(); err != nil {
			t.Error(err)
		}
		if err := <-atRoot; !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("the root: %v", err)
		}
		missing, ok := errors.AsType[*cluster.MissingError](<-elsewhere)
		if !ok || !slices.Equal(missing.Nodes, []mcd.NodeID{root}) {
			t.Errorf("elsewhere: %v, want that node %d is missing", missing, root)
		}
		for _, x := range all[1:] {
			_ = x.Close()
		}
	})
}
