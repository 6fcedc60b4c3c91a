package mbcf

import (
	"time"

	"github.com/rawlane/rawlane/sim/internal/csmacd"
)

// streamFrames is the least number of frames that a stream is measured over. Half duplex differs by
// a percent from seed to seed even so.
const streamFrames = 20_000

// stream is a sender's part of a stream of messages of one size.
type stream struct {
	layer  *Layer
	bytes  int // of a message
	frames int // of a message
	sent   int // frames
	ready  time.Duration
}

func newStream(l *Layer, bytes int) *stream {
	return &stream{layer: l, bytes: bytes, frames: frames(bytes)}
}

// send takes the next frame, which the wire has from start on, and returns when its last bit is
// sent.
func (s *stream) send(start time.Duration) (end time.Duration) {
	i := s.sent % s.frames
	s.sent++
	end = start + s.layer.wire(dataOf(s.bytes, i))
	s.ready = end
	if i == s.frames-1 {
		s.ready += s.layer.gap(s.bytes)
	}
	return end
}

// done tells whether enough has been sent: whole messages.
func (s *stream) done() bool { return s.sent >= streamFrames && s.sent%s.frames == 0 }

// rate returns megabytes a second.
func (s *stream) rate(took time.Duration) float64 {
	return float64(s.sent/s.frames*s.bytes) / 1e6 / took.Seconds()
}

// FullDuplex returns the bandwidth of a stream one way through a switch, in MB/s: acknowledgements
// have the other way to themselves.
func (m *Model) FullDuplex(l *Layer, bytes int) float64 {
	s := newStream(l, bytes)
	acked := make([]time.Duration, m.Window) // when the last frames' acknowledgements are there
	var forwarded, back time.Duration        // when the switch, and the way back, fall idle
	for !s.done() {
		slot := s.sent % m.Window
		start := max(s.ready, acked[slot])
		end := s.send(start)
		forwarded = max(end, forwarded) + end - start
		back = max(forwarded+m.AckDelay, back) + ack
		acked[slot] = back + ack // two cables
	}
	return s.rate(s.ready)
}

// HalfDuplex returns the bandwidth of a stream one way through a hub, in MB/s. The seed is of
// backoffs.
func (m *Model) HalfDuplex(l *Layer, bytes int, seed uint64) float64 {
	const sender, receiver = 0, 1
	s := newStream(l, bytes)
	hub := csmacd.New(2, m.Distance, seed)
	acked, pending := 0, csmacd.Never
	for !s.done() {
		ready := [2]time.Duration{receiver: pending, sender: csmacd.Never}
		if s.sent-acked < m.Window {
			ready[sender] = s.ready
		}
		station, start, ok := hub.Contend(ready[:])
		if !ok {
			continue
		}
		if station == receiver {
			end := start + ack
			hub.Carry(end)
			acked, pending = s.sent, csmacd.Never
			s.ready = max(s.ready, end)
			continue
		}
		end := s.send(start)
		hub.Carry(end)
		if pending == csmacd.Never {
			pending = end + m.AckDelay
		}
	}
	return s.rate(s.ready)
}
