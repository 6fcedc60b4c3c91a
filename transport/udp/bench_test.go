//go:build linux

package udp_test

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// BenchmarkSendAndPoll is frames through the kernel, one at a time or a batch, by one goroutine.
func BenchmarkSendAndPoll(b *testing.B) {
	for _, size := range []int{64, 1400} {
		for _, batch := range []int{1, 44} {
			b.Run(fmt.Sprintf("%dB/batch%d", size, batch), func(b *testing.B) {
				from, to := pair(b, "127.0.0.1:0")
				to.MaskWakeups(true)
				out, in := make([]transport.Frame, batch), make([]transport.Frame, 64)
				for i := range out {
					memory := make([]byte, 32+size)
					out[i] = transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault,
						Headroom: memory[:32], Payload: memory[32:]}
				}
				b.SetBytes(int64(size * batch))
				b.ReportAllocs()
				for b.Loop() {
					if n, err := from.Send(out); n != batch {
						b.Fatal(n, err)
					}
					for came := 0; came < batch; {
						n, err := to.Poll(in)
						if err != nil {
							b.Fatal(err)
						}
						came += n
					}
				}
			})
		}
	}
}
