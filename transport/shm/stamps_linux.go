package shm

import "github.com/rawlane/rawlane/transport"

// stampedWire is a wire that says when frames pass its driver: of those that Poll has handed out,
// which are not the wire's alone. Frames that come through memory have no stamp.
type stampedWire struct {
	transport.Link
	transport.Stamper
	at     int   // where the wire's frames are among those of the last Poll
	frames []int // the number of each in the wire's Poll
}

// newStampedWire returns nil for a wire that has no stamps.
func newStampedWire(wire transport.Link) *stampedWire {
	stamper, ok := transport.As[transport.Stamper](wire)
	if !ok {
		return nil
	}
	return &stampedWire{Link: wire, Stamper: stamper}
}

// Unwrap implements transport.Wrapper.
func (s *stampedWire) Unwrap() transport.Link { return s.Link }

// ReceivedStamp implements transport.Stamper.
func (s *stampedWire) ReceivedStamp(i int) transport.Stamp {
	if i < s.at || i-s.at >= len(s.frames) {
		return transport.Stamp{}
	}
	return s.Stamper.ReceivedStamp(s.frames[i-s.at])
}

// reset says that a Poll has none of the wire's frames yet.
func (s *stampedWire) reset() {
	if s != nil {
		s.frames = s.frames[:0]
	}
}

// starts says where the wire's frames will be.
func (s *stampedWire) starts(at int) {
	if s != nil {
		s.at = at
	}
}

// add says that the next one has been the i-th of the wire.
func (s *stampedWire) add(i int) {
	if s != nil {
		s.frames = append(s.frames, i)
	}
}
