//go:build linux

package ring_test

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

func BenchmarkSend(b *testing.B) { kernellink.BenchmarkSend(b, open) }

// BenchmarkTrains is a window of frames as trains through the kernel and out of the ring, by one
// goroutine.
func BenchmarkTrains(b *testing.B) {
	for _, size := range []int{64, 1472} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			from, to := testbed.OpenPair(b, testbed.ForTest(b, testbed.Config{}), open)
			to.MaskWakeups(true)
			testbed.MeetTrains(b, from, to)
			testbed.MeetTrains(b, to, from)
			out := make([]transport.Frame, 64)
			for i := range out {
				out[i] = transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, size)}
			}
			in := make([]transport.Frame, 64)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; sent += len(out) {
				if _, err := from.Send(out); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < len(out); {
					n, err := to.Poll(in)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
		})
	}
}

func BenchmarkSendAndPoll(b *testing.B) { kernellink.BenchmarkSendAndPoll(b, open) }

func BenchmarkEmptyPoll(b *testing.B) { kernellink.BenchmarkEmptyPoll(b, open) }
