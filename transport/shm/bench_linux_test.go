package shm_test

import (
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
)

// Poll that finds nothing: the same with two stations as with sixty-four.
func BenchmarkPoll_Empty(b *testing.B) {
	for _, stations := range []int{2, 32, 64} {
		b.Run(fmt.Sprint(stations), func(b *testing.B) {
			dir := shm.Folder(b)
			l := open(b, shm.Config{Dir: dir})
			for range stations - 1 {
				open(b, shm.Config{Dir: dir, MTU: 64})
			}
			frames := make([]transport.Frame, 32)
			for b.Loop() {
				if n, err := l.Poll(frames); n != 0 || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// Send and Poll, on one core.
func BenchmarkSendPoll(b *testing.B) {
	for _, size := range []int{64, 1400, 7000} {
		for _, batch := range []int{1, 8} {
			b.Run(fmt.Sprintf("%d bytes, %d a call", size, batch), func(b *testing.B) {
				dir := shm.Folder(b)
				from, to := open(b, shm.Config{Dir: dir}), open(b, shm.Config{Dir: dir})
				out, in := make([]transport.Frame, batch), make([]transport.Frame, batch)
				for i := range out {
					out[i] = transport.Frame{Dst: to.MAC(), Payload: make([]byte, size)}
				}
				b.SetBytes(int64(size * batch))
				for b.Loop() {
					if n, err := from.Send(out); n != batch || err != nil {
						b.Fatal(n, err)
					}
					for n := 0; n < batch; {
						got, err := to.Poll(in)
						if err != nil {
							b.Fatal(err)
						}
						n += got
					}
				}
			})
		}
	}
}
