package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// exchangers opens one for each of n nodes, on links with these faults.
func exchangers(t *testing.T, n int, faults fault.Config, cfg cluster.ExchangerConfig) []*cluster.Exchanger {
	t.Helper()
	return exchangersOn(t, n, cfg, func(node mcd.NodeID, l transport.Link) transport.Link {
		f, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(node))), faults)
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}

// exchangersOn opens one for each of n nodes, on links that wrap returns.
func exchangersOn(
	t *testing.T, n int, cfg cluster.ExchangerConfig, wrap func(mcd.NodeID, transport.Link) transport.Link,
) []*cluster.Exchanger {
	t.Helper()
	eps := mcdtest.Open(t, n, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap:     func(node mcd.NodeID, _ int, l transport.Link) transport.Link { return wrap(node, l) },
	})
	var all []*cluster.Exchanger
	for _, e := range eps {
		x, err := cluster.OpenExchanger(e, cfg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// each runs f for all at once.
func each(t *testing.T, all []*cluster.Exchanger, f func(i int, x *cluster.Exchanger) error) {
	t.Helper()
	var wait sync.WaitGroup
	errs := make([]error, len(all))
	for i, x := range all {
		wait.Go(func() { errs[i] = f(i, x) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
}

// blob is what a node contributes to a round: of any length, some longer than many messages.
func blob(round, node int) []byte {
	rng := rand.New(rand.NewPCG(uint64(round), uint64(node)))
	return bytes.Repeat([]byte{byte(round), byte(node), byte(rng.IntN(256))}, []int{0, 1, 30, 3000}[rng.IntN(4)])
}

// All nodes get all blobs, and the root those of a gather, round after round, at different times,
// on links that lose a fifth of all messages.
func TestExchanger_Rounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 20
		all := exchangers(t, 5, fault.Config{Loss: .2, Duplicate: .1, Reorder: .1}, cluster.ExchangerConfig{})
		each(t, all, func(i int, x *cluster.Exchanger) error {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for round := range rounds {
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // in virtual time: nodes are not in step
				var got [][]byte
				var err error
				root := round % len(all)
				if gather := round%2 == 1; gather {
					got, err = x.Gather(t.Context(), mcd.NodeID(root), blob(round, i))
					if i != root && got != nil {
						return fmt.Errorf("round %d: %d blobs, and it is not the root", round, len(got))
					}
					if i != root {
						got = nil
					}
				} else {
					got, err = x.Exchange(t.Context(), blob(round, i))
				}
				if err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
				for k, b := range got {
					if !bytes.Equal(b, blob(round, k)) {
						return fmt.Errorf("round %d: %d bytes of node %d, want %d", round, len(b), k, len(blob(round, k)))
					}
				}
				if want := len(all); (round%2 == 0 || i == root) && len(got) != want {
					return fmt.Errorf("round %d: %d blobs, want %d", round, len(got), want)
				}
			}
			return x.Close()
		})
	})
}

// Without loss an exchange takes no interval: a node that waits is sent the blob as soon as it is
// posted.
func TestExchanger_NoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := exchangers(t, 3, fault.Config{}, cluster.ExchangerConfig{})
		start := time.Now()
		each(t, all, func(i int, x *cluster.Exchanger) error {
			time.Sleep(time.Duration(i) * time.Millisecond) // virtual
			_, err := x.Exchange(t.Context(), []byte{1})
			return errors.Join(err, x.Close())
		})
		if took := time.Since(start); took > 3*time.Millisecond {
			t.Errorf("%v behind the last node's call", took-2*time.Millisecond)
		}
	})
}

// A node that waits long asks seldom: the one that it waits for is busy, maybe with a measurement.
// The blob that has been waited for is here at once.
func TestExchanger_Patience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, busy = 4, 30 * time.Second
		var sent atomic.Int64
		all := exchangersOn(t, nodes, cluster.ExchangerConfig{PeerTimeout: 10 * time.Second},
			func(_ mcd.NodeID, l transport.Link) transport.Link {
				return &watchedLink{l, func() bool { sent.Add(1); return true }}
			})
		each(t, all, func(i int, x *cluster.Exchanger) error {
			if i == 0 {
				time.Sleep(busy) // virtual
			}
			start := time.Now()
			_, err := x.Gather(t.Context(), 0, nil)
			if took := time.Since(start); i == 0 && took > time.Millisecond {
				t.Errorf("%v behind the last node's call", took)
			}
			return errors.Join(err, x.Close())
		})
		// Two messages a second of each waiting node and to it, and some at the begin and the end.
		if most := int64(nodes-1) * (2*int64(busy/time.Second) + 30); sent.Load() > most {
			t.Errorf("%d messages, want at most %d", sent.Load(), most)
		}
	})
}

// A node that asks seldom is served though the root's last messages are lost and the root closes.
func TestExchanger_CloseRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pass atomic.Int64 // so many frames of the root; others are lost
		pass.Store(math.MaxInt64)
		all := exchangersOn(t, 2, cluster.ExchangerConfig{}, func(node mcd.NodeID, l transport.Link) transport.Link {
			return &watchedLink{l, func() bool { return node != 0 || pass.Add(-1) >= 0 }}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		each(t, all, func(i int, x *cluster.Exchanger) error {
			if i == 0 {
				time.Sleep(10500 * time.Millisecond) // virtual
				pass.Store(1)                        // it asks for the blob
			}
			_, err := x.Gather(ctx, 0, nil)
			if i == 0 {
				pass.Store(math.MaxInt64)
			}
			return errors.Join(err, x.Close())
		})
	})
}

// watchedLink is a link that loses the frames for which pass is false.
type watchedLink struct {
	transport.Link
	pass func() bool
}

func (l *watchedLink) Send(batch []transport.Frame) (int, error) {
	for i := range batch {
		if l.pass() {
			if n, err := l.Link.Send(batch[i : i+1]); n == 0 {
				return i, err
			}
		}
	}
	return len(batch), nil
}

// A node that does not call is named, when the context ends or when it is silent.
func TestExchanger_NamesWhoIsMissing(t *testing.T) {
	for _, silent := range []time.Duration{0, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			all := exchangers(t, 4, fault.Config{}, cluster.ExchangerConfig{PeerTimeout: silent})
			if silent > 0 {
				if err := all[3].Close(); err != nil { // nobody answers
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			each(t, all[:2], func(i int, x *cluster.Exchanger) error {
				_, err := x.Exchange(ctx, nil)
				var missing *cluster.MissingError
				if !errors.As(err, &missing) || !errors.Is(err, cluster.ErrIncomplete) {
					return fmt.Errorf("%w, want a MissingError", err)
				}
				want := []mcd.NodeID{2, 3}
				if silent > 0 {
					want = []mcd.NodeID{3} // node 2 has not called, and answers that it has not
				} else if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("%w is not the context's error", err)
				}
				if !slices.Equal(missing.Nodes, want) || missing.Silent != silent {
					return fmt.Errorf("%w, want nodes %v", missing, want)
				}
				if _, err := x.Exchange(t.Context(), nil); err == nil {
					return errors.New("a round follows a failed one")
				}
				return x.Close()
			})
		})
	}
}

// A request is answered though messages are lost, as soon as the answer is ready.
func TestExchanger_Ask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		all := exchangers(t, 2, fault.Config{Loss: .3}, cluster.ExchangerConfig{
			PeerTimeout: time.Second,
			Answer: func(from mcd.NodeID, request []byte) ([]byte, bool) {
				answer := strings.Repeat(fmt.Sprintf("%d asks %s, ", from, request), 300) // some are longer than a message
				return []byte(answer), time.Since(start) > 3*time.Second
			},
		})
		for i := range 30 {
			b, err := all[0].Ask(t.Context(), 1, fmt.Append(nil, i))
			if want := strings.Repeat(fmt.Sprintf("0 asks %d, ", i), 300); err != nil || string(b) != want {
				t.Fatalf("%q, %v, want %q", b, err, want)
			}
		}
		if _, err := all[0].Ask(t.Context(), 0, nil); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("asks itself: %v", err)
		}
		if _, err := all[0].Ask(t.Context(), 1, make([]byte, 10_000)); err == nil || !strings.Contains(err.Error(), "10000 bytes") {
			t.Errorf("a long request: %v", err)
		}
		if err := errors.Join(all[0].Close(), all[0].Close()); err != nil {
			t.Error(err)
		}
		if _, err := all[0].Ask(t.Context(), 1, nil); !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// An answer that has another length when its next part is asked for is fetched from its begin on.
func TestExchanger_AnswerChanges(t *testing.T) {
	for _, answers := range [][]string{
		{strings.Repeat("long", 1000), "short"},
		{strings.Repeat("short", 1000), strings.Repeat("longer", 1000)},
		{strings.Repeat("longer", 1000), strings.Repeat("short", 1000)},
		{strings.Repeat("long", 1000), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			all := exchangers(t, 2, fault.Config{}, cluster.ExchangerConfig{
				Answer: func(mcd.NodeID, []byte) ([]byte, bool) {
					calls++
					return []byte(answers[min(calls, len(answers))-1]), true
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			want := answers[len(answers)-1]
			if b, err := all[0].Ask(ctx, 1, nil); err != nil || string(b) != want {
				t.Errorf("%d bytes %.20q, %v, want %d %.20q", len(b), b, err, len(want), want)
			}
			if err := errors.Join(all[0].Close(), all[1].Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An answer that is longer than one may be ends the wait for it, with an error that says so; the next
// request is answered.
func TestExchanger_AnswerTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var long atomic.Bool
		long.Store(true)
		answers := map[bool][]byte{true: make([]byte, cluster.MaxBlob+1), false: []byte("short")}
		all := exchangers(t, 2, fault.Config{}, cluster.ExchangerConfig{
			Answer: func(mcd.NodeID, []byte) ([]byte, bool) { return answers[long.Load()], true },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if b, err := all[0].Ask(ctx, 1, nil); !errors.Is(err, mcd.ErrTooLarge) || len(b) > 0 {
			t.Errorf("%d bytes, %v, want ErrTooLarge", len(b), err)
		}
		long.Store(false)
		if b, err := all[0].Ask(ctx, 1, nil); err != nil || string(b) != "short" {
			t.Errorf("the next request: %q, %v", b, err)
		}
		if err := errors.Join(all[0].Close(), all[1].Close()); err != nil {
			t.Error(err)
		}
	})
}

// Close ends the call that is under way, whatever its context says.
func TestExchanger_CloseEndsCalls(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func(x *cluster.Exchanger) error{
		"exchange": func(x *cluster.Exchanger) error { _, err := x.Exchange(ctx, nil); return err },
		"gather":   func(x *cluster.Exchanger) error { _, err := x.Gather(ctx, 1, nil); return err },
		"ask":      func(x *cluster.Exchanger) error { _, err := x.Ask(ctx, 1, nil); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			x := exchangers(t, 2, fault.Config{}, cluster.ExchangerConfig{})[0]
			errs := make(chan error, 1)
			go func() { errs <- call(x) }()
			time.Sleep(time.Second) // virtual: it waits for the other node
			if err := x.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
			if err := <-errs; !errors.Is(err, mcd.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
			if err := call(x); !errors.Is(err, mcd.ErrClosed) {
				t.Errorf("%s after Close: %v", name, err)
			}
		})
	}
}

func ExampleExchanger_Exchange() {
	eps, closeAll, err := mcdtest.Start(3, mcdtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for _, e := range eps {
		wait.Go(func() { // each node
			x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{})
			if err != nil {
				fmt.Println(err)
				return
			}
			keys, err := x.Exchange(ctx, fmt.Appendf(nil, "key of %d", e.Node()))
			if e.Node() == 2 {
				fmt.Printf("%q %v\n", keys, err)
			}
			_ = x.Close()
		})
	}
	wait.Wait()
	_ = closeAll()
	// Output: ["key of 0" "key of 1" "key of 2"] <nil>
}

func ExampleExchanger_Gather() {
	eps, closeAll, err := mcdtest.Start(3, mcdtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for _, e := range eps {
		wait.Go(func() { // each node
			x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{})
			if err != nil {
				fmt.Println(err)
				return
			}
			results, err := x.Gather(ctx, 0, fmt.Appendf(nil, "%d squared is %d", e.Node(), e.Node()*e.Node()))
			if e.Node() == 0 {
				fmt.Printf("%q %v\n", results, err)
			}
			_ = x.Close()
		})
	}
	wait.Wait()
	_ = closeAll()
	// Output: ["0 squared is 0" "1 squared is 1" "2 squared is 4"] <nil>
}

// A call that waits for the end of another one waits no longer than its context says, and has done
// nothing: the same call is made later.
func TestExchanger_TurnOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := exchangers(t, 2, fault.Config{}, cluster.ExchangerConfig{})
		var first sync.WaitGroup
		first.Go(func() {
			if got, err := all[0].Exchange(t.Context(), []byte{1}); err != nil || !bytes.Equal(got[1], []byte{2}) {
				t.Errorf("the first exchange: %v, %v", got, err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, asked := all[0].Ask(ctx, 1, nil)
		_, exchanged := all[0].Exchange(ctx, nil)
		_, gathered := all[0].Gather(ctx, 1, nil)
		for call, err := range map[string]error{"ask": asked, "exchange": exchanged, "gather": gathered} {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another call is under way") {
				t.Errorf("%s beside the first exchange: %v", call, err)
			}
		}
		if got, err := all[1].Exchange(t.Context(), []byte{2}); err != nil || !bytes.Equal(got[0], []byte{1}) {
			t.Errorf("node 1: %v, %v", got, err)
		}
		first.Wait()
		each(t, all, func(i int, x *cluster.Exchanger) error {
			got, err := x.Exchange(t.Context(), []byte{byte(i)})
			if err == nil && !bytes.Equal(got[1-i], []byte{byte(1 - i)}) {
				err = fmt.Errorf("exchanged %v", got)
			}
			return errors.Join(err, x.Close())
		})
	})
}
