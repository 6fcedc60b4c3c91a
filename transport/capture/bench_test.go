package capture_test

import (
	"io"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
)

// sink is a link that takes everything.
type sink struct{ transport.Link }

func (sink) MAC() transport.MAC                         { return transport.MAC{2} }
func (sink) Send(frames []transport.Frame) (int, error) { return len(frames), nil }

// BenchmarkRecord measures what recording adds to a frame, without the disk.
func BenchmarkRecord(b *testing.B) {
	l, err := capture.New(sink{}, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	frame := []transport.Frame{{EtherType: transport.EtherTypeDefault, Payload: make([]byte, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Send(frame); err != nil {
			b.Fatal(err)
		}
	}
}
