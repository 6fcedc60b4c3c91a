package linktest

import (
	"context"
	"sync"

	"github.com/rawlane/rawlane/transport"
)

// PipeMTU is the MTU of a Pipe.
const PipeMTU = 1500

// End is one end of a Pipe: a transport.Link that costs next to nothing. Frames lie in the other
// end's memory until it polls, and wake nobody. So a test decides which frames come together, and a
// benchmark measures the layers above the link.
type End struct {
	mac   transport.MAC
	other *End
	open  context.Context // until Close
	close context.CancelFunc

	mu     sync.Mutex
	frames []transport.Frame // for this end: those of the last Polls, then those still to poll
	memory [][]byte          // of frames
	taken  int               // how many of frames were polled
}

// Pipe returns two links that reach each other.
func Pipe() (a, b *End) {
	a, b = &End{mac: transport.MAC{2, 0, 0, 0, 0, 1}}, &End{mac: transport.MAC{2, 0, 0, 0, 0, 2}}
	a.open, a.close = context.WithCancel(context.Background())
	b.open, b.close = context.WithCancel(context.Background())
	a.other, b.other = b, a
	return a, b
}

// MAC implements transport.Link.
func (e *End) MAC() transport.MAC { return e.mac }

// MTU implements transport.Link.
func (e *End) MTU() int { return PipeMTU }

// Send implements transport.Link. There is always room.
func (e *End) Send(frames []transport.Frame) (int, error) {
	if e.open.Err() != nil {
		return 0, transport.ErrClosed
	}
	o := e.other
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, f := range frames {
		if err := transport.CheckFrame(&f, PipeMTU); err != nil {
			return i, err
		}
		n := len(o.frames)
		if n == len(o.memory) {
			o.memory = append(o.memory, make([]byte, PipeMTU))
		}
		f.Src, f.Headroom, f.Answers, f.Origin = e.mac, nil, nil, 0
		f.Payload = o.memory[n][:copy(o.memory[n], f.Payload)]
		o.frames = append(o.frames, f)
	}
	return len(frames), nil
}

// Poll implements transport.Link.
func (e *End) Poll(frames []transport.Frame) (int, error) {
	if e.open.Err() != nil {
		return 0, transport.ErrClosed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := copy(frames, e.frames[e.taken:])
	e.taken += n
	if n == 0 {
		e.frames, e.taken = e.frames[:0], 0
	}
	return n, nil
}

// Wait returns when the link is closed or ctx ends; unlike other links', not when frames arrive.
func (e *End) Wait(ctx context.Context) error {
	select {
	case <-e.open.Done():
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Counters returns zeros.
func (e *End) Counters() transport.Counters { return transport.Counters{} }

// Close implements transport.Link.
func (e *End) Close() error {
	e.close()
	return nil
}
