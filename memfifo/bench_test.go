package memfifo_test

import (
	"context"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
)

// wire is a link that costs next to nothing: what it is given lies in the other end's memory, until that polls.
type wire struct {
	mac    transport.MAC
	other  *wire
	frames []transport.Frame // under way to this end
	memory [][]byte
	taken  int // of frames
	closed chan struct{}
}

const wireMTU = 1500

func newWires() (a, b *wire) {
	a = &wire{mac: transport.MAC{2, 0, 0, 0, 0, 1}, closed: make(chan struct{})}
	b = &wire{mac: transport.MAC{2, 0, 0, 0, 0, 2}, closed: make(chan struct{})}
	a.other, b.other = b, a
	return a, b
}

func (w *wire) MAC() transport.MAC { return w.mac }
func (w *wire) MTU() int           { return wireMTU }

func (w *wire) Send(frames []transport.Frame) (int, error) {
	o := w.other
	for i := range frames {
		n := len(o.frames)
		if n == len(o.memory) {
			o.memory = append(o.memory, make([]byte, wireMTU))
		}
		f := frames[i]
		f.Src = w.mac
		f.Payload = o.memory[n][:copy(o.memory[n], f.Payload)]
		o.frames = append(o.frames, f)
	}
	return len(frames), nil
}

func (w *wire) Poll(frames []transport.Frame) (int, error) {
	n := copy(frames, w.frames[w.taken:])
	w.taken += n
	if n == 0 {
		w.frames, w.taken = w.frames[:0], 0
	}
	return n, nil
}

func (w *wire) Wait(ctx context.Context) error {
	select {
	case <-w.closed:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *wire) Counters() transport.Counters { return transport.Counters{} }

func (w *wire) Close() error {
	select {
	case <-w.closed:
	default:
		close(w.closed)
	}
	return nil
}

// BenchmarkPut is what a Put of 64 KiB costs both ends together, in one goroutine, without the kernel: per frame, copies and checksums
// included.
func BenchmarkPut(b *testing.B) {
	const size = 64 << 10
	x, y := newWires()
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{x.mac}}, {ID: 1, MACs: []transport.MAC{y.mac}}}
	var eps []*mcd.Endpoint
	var remotes []*memfifo.Remote
	var keys []memfifo.Key
	var domains []*memfifo.Domain
	for k, l := range []*wire{x, y} {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: -1}, l)
		must(b, err)
		defer e.Close()
		d, err := memfifo.Open(e, memfifo.Config{})
		must(b, err)
		w, err := d.Register(1, make([]byte, size), memfifo.All)
		must(b, err)
		eps, domains, keys = append(eps, e), append(domains, d), append(keys, w.Key())
	}
	for k, d := range domains {
		remotes = append(remotes, d.Remote(keys[1-k]))
	}
	data := make([]byte, size)
	ctx := context.Background()
	settle := func() {
		for eps[0].Progress() || eps[1].Progress() {
		}
	}
	run := func(b *testing.B, duplex bool) {
		before := domains[0].Counters().Sent + domains[1].Counters().Sent
		b.SetBytes(size)
		for b.Loop() {
			must(b, remotes[0].Put(ctx, 0, data))
			if duplex {
				must(b, remotes[1].Put(ctx, 0, data))
			}
			settle()
		}
		frames := domains[0].Counters().Sent + domains[1].Counters().Sent - before
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
	}
	b.Run("one way", func(b *testing.B) { run(b, false) })
	b.Run("both ways", func(b *testing.B) { run(b, true) })
}
