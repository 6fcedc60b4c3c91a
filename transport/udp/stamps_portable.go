//go:build !linux || rawlane_portable

package udp

// stampLog is nothing: the system stamps no frames.
type stampLog struct{}

func (stampLog) reset() {}

func (stampLog) add(*socket) {}
