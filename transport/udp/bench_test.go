//go:build linux

package udp_test

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// BenchmarkSendAndPoll is frames through the kernel, one at a time or a batch, by one goroutine.
func BenchmarkSendAndPoll(b *testing.B) {
	for _, size := range []int{64, 1400} {
		for _, batch := range []int{1, 44} {
			b.Run(fmt.Sprintf("%dB/batch%d", size, batch), func(b *testing.B) {
				links := pair(b, "127.0.0.1:0", udp.Config{})
				defer links[0].Close()
				defer links[1].Close()
				for _, l := range links {
					l.MaskWakeups(true)
				}
				out, in := make([]transport.Frame, batch), make([]transport.Frame, 64)
				for i := range out {
					memory := make([]byte, 32+size)
					out[i] = transport.Frame{Dst: links[1].MAC(), EtherType: transport.EtherTypeDefault,
						Headroom: memory[:32], Payload: memory[32:]}
				}
				b.SetBytes(int64(size * batch))
				b.ReportAllocs()
				for b.Loop() {
					if n, err := links[0].Send(out); n != batch {
						b.Fatal(n, err)
					}
					for came := 0; came < batch; {
						n, err := links[1].Poll(in)
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
