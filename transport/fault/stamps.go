package fault

import "github.com/rawlane/rawlane/transport"

// stampedLink is an inner link that says when frames pass its driver: of those that Poll has handed
// out. A frame that has waited in the delay queue has no stamp.
type stampedLink struct {
	transport.Link
	transport.Stamper
	frames []int // the number of each in the inner link's last Poll, or noNumber
}

const noNumber = -1

// newStampedLink returns nil for a link that has no stamps.
func newStampedLink(inner transport.Link) *stampedLink {
	stamper, ok := transport.As[transport.Stamper](inner)
	if !ok {
		return nil
	}
	return &stampedLink{Link: inner, Stamper: stamper}
}

// Unwrap implements transport.Wrapper.
func (s *stampedLink) Unwrap() transport.Link { return s.Link }

// ReceivedStamp implements transport.Stamper.
func (s *stampedLink) ReceivedStamp(i int) transport.Stamp {
	if i >= len(s.frames) || s.frames[i] == noNumber {
		return transport.Stamp{}
	}
	return s.Stamper.ReceivedStamp(s.frames[i])
}

// reset says that a Poll has no frames yet.
func (s *stampedLink) reset() {
	if s != nil {
		s.frames = s.frames[:0]
	}
}

// add says which one of the inner link's Poll the next frame is.
func (s *stampedLink) add(number int) {
	if s != nil {
		s.frames = append(s.frames, number)
	}
}

// addDelayed says that the next n frames have waited in the delay queue.
func (s *stampedLink) addDelayed(n int) {
	for range n {
		s.add(noNumber)
	}
}
