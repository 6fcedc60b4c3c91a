package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// lives is nodes that begin anew at their addresses.
type lives struct {
	t     *testing.T
	f     *fabric.Fabric
	sw    *fabric.Switch
	table []mcd.Node
}

func newLives(t *testing.T, nodes int) *lives {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lives{t: t, f: f, sw: f.AddSwitch("s")}
	for id := range nodes {
		l.table = append(l.table, mcd.Node{ID: mcd.NodeID(id), MACs: []transport.MAC{{2, 0, 0, 0, 0, byte(1 + id)}}})
	}
	return l
}

// begin begins a life of a node, on a link that wrap returns, if there is one.
func (l *lives) begin(
	id mcd.NodeID, cfg cluster.ExchangerConfig, wrap func(transport.Link) transport.Link,
) (*mcd.Endpoint, *cluster.Exchanger) {
	l.t.Helper()
	attached, err := l.f.Attach(l.sw, fabric.Station{MAC: l.table[id].MACs[0]})
	if err != nil {
		l.t.Fatal(err)
	}
	link := transport.Link(attached)
	if wrap != nil {
		link = wrap(link)
	}
	e, err := mcd.Open(mcd.Config{Node: id, Nodes: l.table, Spin: -1}, link)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = e.Close() })
	x, err := cluster.OpenExchanger(e, cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return e, x
}

// stopped is a link of a node that is stopped, as by SIGSTOP: what comes waits in it.
type stopped struct {
	transport.Link
	is atomic.Bool
}

func (l *stopped) Poll(frames []transport.Frame) (int, error) {
	if l.is.Load() {
		time.Sleep(time.Millisecond) // virtual
		return 0, nil
	}
	return l.Link.Poll(frames)
}

// mortal is a link of a node that dies once it has sent some frames.
type mortal struct {
	transport.Link
	left atomic.Int64
	dead chan struct{}
}

func (l *mortal) Send(frames []transport.Frame) (int, error) {
	for i := range frames {
		switch left := l.left.Add(-1); {
		case left == -1:
			close(l.dead)
			fallthrough
		case left < 0:
			return len(frames), nil
		}
		if n, err := l.Link.Send(frames[i : i+1]); n == 0 {
			return i, err
		}
	}
	return len(frames), nil
}

// The blob of a node that dies as it sends it, and begins anew, is that of its next life, whole.
func TestExchanger_BlobOfOneLife(t *testing.T) {
	for frames := range int64(16) {
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, 2)
			_, a := l.begin(0, cluster.ExchangerConfig{}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := make(chan []byte, 1)
			go func() {
				all, err := a.Exchange(ctx, []byte("a"))
				if err != nil {
					t.Error(err)
					all = make([][]byte, 2)
				}
				got <- all[1]
			}()
			m := &mortal{dead: make(chan struct{})}
			m.left.Store(frames)
			e, dies := l.begin(1, cluster.ExchangerConfig{}, func(link transport.Link) transport.Link { m.Link = link; return m })
			go func() { _, _ = dies.Exchange(ctx, bytes.Repeat([]byte("1"), 20_000)) }()
			<-m.dead
			_ = e.Close()
			_, b := l.begin(1, cluster.ExchangerConfig{}, nil)
			all, err := b.Exchange(ctx, bytes.Repeat([]byte("2"), 20_000))
			if err != nil || string(all[0]) != "a" {
				t.Errorf("dead after %d frames: the next life: %q, %v", frames, all, err)
			}
			if blob := <-got; !bytes.Equal(blob, bytes.Repeat([]byte("2"), 20_000)) {
				t.Errorf("dead after %d frames: %d bytes of the next life, of %d", frames, bytes.Count(blob, []byte("2")), len(blob))
			}
		})
	}
}

// The answer to a question of a node's former life is none to its next one's.
func TestExchanger_AskOfAFormerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, 2)
		var still stopped
		l.begin(0, cluster.ExchangerConfig{Answer: func(_ mcd.NodeID, request []byte) ([]byte, bool) {
			return append([]byte("answer to "), request...), true
		}}, func(link transport.Link) transport.Link { still.Link = link; return &still })
		still.is.Store(true)
		e, b := l.begin(1, cluster.ExchangerConfig{}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := b.Ask(ctx, 0, []byte("life 1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		_ = e.Close()
		_, b = l.begin(1, cluster.ExchangerConfig{}, nil)
		time.AfterFunc(50*time.Millisecond, func() { still.is.Store(false) })
		if got, err := b.Ask(t.Context(), 0, []byte("life 2")); err != nil || string(got) != "answer to life 2" {
			t.Errorf("life 2 hears %q, %v", got, err)
		}
	})
}

// An Ask goes on with the next life of the node that is asked, of whose answer it has a part.
func TestExchanger_AskOfANodeThatBeginsAnew(t *testing.T) {
	for frames := range int64(8) {
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, 2)
			_, a := l.begin(0, cluster.ExchangerConfig{}, nil)
			answers := func(c string) cluster.ExchangerConfig {
				return cluster.ExchangerConfig{Answer: func(mcd.NodeID, []byte) ([]byte, bool) {
					return bytes.Repeat([]byte(c), 9000), true
				}}
			}
			m := &mortal{dead: make(chan struct{})}
			m.left.Store(frames)
			e, _ := l.begin(1, answers("1"), func(link transport.Link) transport.Link { m.Link = link; return m })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := make(chan string, 1)
			go func() {
				b, err := a.Ask(ctx, 1, nil)
				if err != nil {
					t.Error(err)
				}
				got <- string(bytes.TrimLeft(b, string(b[:min(len(b), 1)])))
			}()
			select {
			case <-m.dead:
			case rest := <-got:
				got <- rest
			}
			_ = e.Close()
			l.begin(1, answers("2"), nil)
			if rest := <-got; rest != "" {
				t.Errorf("dead after %d frames: the answer ends with %d bytes of another", frames, len(rest))
			}
		})
	}
}

// A node that begins anew behind a round has none in common with the others: both ends say so.
func TestExchanger_RoundsOfAFormerLife(t *testing.T) {
	for rounds := 1; rounds <= 4; rounds++ {
		for _, ahead := range []bool{false, true} { // node 0 waits for the next round as node 1 dies
			t.Run(fmt.Sprint(rounds, ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLives(t, 2)
					cfg := cluster.ExchangerConfig{PeerTimeout: 500 * time.Millisecond}
					_, a := l.begin(0, cfg, nil)
					e, b := l.begin(1, cfg, nil)
					for range rounds {
						each(t, []*cluster.Exchanger{a, b}, func(_ int, x *cluster.Exchanger) error {
							_, err := x.Exchange(t.Context(), nil)
							return err
						})
					}
					first := make(chan error, 1)
					next := func() { _, err := a.Exchange(t.Context(), nil); first <- err }
					if ahead {
						go next()
					}
					time.Sleep(50 * time.Millisecond) // virtual
					_ = e.Close()
					_, b = l.begin(1, cfg, nil)
					start := time.Now()
					all, err := b.Exchange(t.Context(), nil)
					var apart *cluster.RestartError
					if !errors.As(err, &apart) || len(apart.Former) != 1 || apart.Former[0] != 0 {
						t.Errorf("the next life: %q, %v", all, err)
					}
					if !ahead {
						go next()
					}
					if err = <-first; !errors.As(err, &apart) || len(apart.Anew) != 1 || apart.Anew[0] != 1 {
						t.Errorf("node 0: %v", err)
					}
					if took := time.Since(start); took > time.Second {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}
