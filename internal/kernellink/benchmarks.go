package kernellink

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// masker is a link whose receiver is not woken in a benchmark.
type masker interface {
	transport.Link
	transport.WakeupMasker
}

func frameTo(l transport.Link, size int) transport.Frame {
	return transport.Frame{Dst: l.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, size)}
}

// BenchmarkSend is frames sent, one or a batch per call, over a veth pair whose other end keeps
// them.
func BenchmarkSend[L masker](b *testing.B, open func(ifname string) (L, error)) {
	for _, size := range []int{64, 1400} {
		for _, batch := range []int{1, 32} {
			b.Run(fmt.Sprintf("%dB/batch%d", size, batch), func(b *testing.B) {
				from, to := testbed.OpenPair(b, testbed.ForTest(b, testbed.Config{}), open)
				to.MaskWakeups(true)
				frames := make([]transport.Frame, batch)
				for i := range frames {
					frames[i] = frameTo(to, size)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for sent := 0; sent < b.N; sent += batch {
					if _, err := from.Send(frames); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSendAndPoll is a frame through the kernel and out of the ring, by one goroutine.
func BenchmarkSendAndPoll[L masker](b *testing.B, open func(ifname string) (L, error)) {
	for _, size := range []int{64, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			from, to := testbed.OpenPair(b, testbed.ForTest(b, testbed.Config{}), open)
			to.MaskWakeups(true)
			out := []transport.Frame{frameTo(to, size)}
			in := make([]transport.Frame, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := from.Send(out); err != nil {
					b.Fatal(err)
				}
				for n := 0; n == 0; {
					var err error
					if n, err = to.Poll(in); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkEmptyPoll is a look at a ring with nothing in it.
func BenchmarkEmptyPoll[L masker](b *testing.B, open func(ifname string) (L, error)) {
	_, l := testbed.OpenPair(b, testbed.ForTest(b, testbed.Config{}), open)
	in := make([]transport.Frame, 32)
	for b.Loop() {
		if n, err := l.Poll(in); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}
