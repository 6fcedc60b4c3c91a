package shm

import "github.com/rawlane/rawlane/transport"

// Authenticates implements transport.Roamer, for a wire that is one. Stations that are reached
// through memory do not move.
func (l *Link) Authenticates() {
	if r, ok := l.roamer(); ok {
		r.Authenticates()
	}
}

// Authentic implements transport.Roamer.
func (l *Link) Authentic(f *transport.Frame) {
	if r, ok := l.roamer(); ok {
		r.Authentic(f)
	}
}

// Answer implements transport.Roamer: the answer goes the way that the frame has come.
func (l *Link) Answer(received *transport.Frame, frames []transport.Frame) (int, error) {
	if r, ok := l.roamer(); ok && l.stations.Load().byMAC[received.Src] == nil {
		return r.Answer(received, frames)
	}
	return l.Send(frames)
}

// roamer returns the wire, if its stations may move.
func (l *Link) roamer() (transport.Roamer, bool) { return transport.As[transport.Roamer](l.Unwrap()) }
