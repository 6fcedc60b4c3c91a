package cenju

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Rate is in MB/s, of 10⁶ bytes.
type Rate float64

// Time returns how long so many bytes take.
func (r Rate) Time(bytes int) time.Duration {
	return time.Duration(math.Round(float64(bytes) / float64(r) * 1e3))
}

// Config is the machine. [Paper] returns that of the paper.
type Config struct {
	Network      Rate          // into the FIFO, packet headers and switches taken off
	Receiver     Rate          // from the FIFO to memory
	Invalidation Rate          // of the receiver's cache, by its processor
	Delay        time.Duration // from the last byte in memory to the begin of the invalidation
	Packet       int           // bytes that share a header
	FIFO         int           // bytes between network and receiver; a packet at least
	Piece        int           // bytes that a RemoteWrite invalidates at a time
}

// Paper returns the parameters of the paper. Its authors measured Network (§6.1, figure 10) and
// Piece is their library's (§6.3). They fitted Receiver, Invalidation and Delay to what they
// measured (§6.3, figures 12 and 13). They do not tell the size of FIFO: it is derived here, from
// the end of the peak at 6 to 8 KB, where Delay and the invalidation take as long as the network
// takes to fill it. That is 1.4 to 1.8 KB, and three packets are 1.5 KB.
func Paper() Config {
	return Config{
		Network: 36, Receiver: 48, Invalidation: 200, Delay: 9 * time.Microsecond,
		Packet: 512, FIFO: 1536, Piece: 8 << 10,
	}
}

// The bounds of a Config: they keep times within a Duration, and a simulation within a second.
const (
	MinRate   Rate = 1
	MaxRate   Rate = 1e5
	MaxDelay       = time.Second
	MinPacket      = 64
	MaxFIFO        = 64 << 10
	MaxSize        = 128 << 10 // of a transfer: the longest parcel (CENJU §3.1)
)

// ErrInvalid: the Config describes no machine.
var ErrInvalid = errors.New("bad machine")

// Validate says which field of c is out of bounds.
func (c Config) Validate() error {
	for _, r := range []struct {
		name string
		rate Rate
	}{{"Network", c.Network}, {"Receiver", c.Receiver}, {"Invalidation", c.Invalidation}} {
		if !(r.rate >= MinRate && r.rate <= MaxRate) {
			return fmt.Errorf("%w: %s of %g MB/s (want %g to %g)", ErrInvalid, r.name, r.rate, MinRate, MaxRate)
		}
	}
	switch {
	case c.Delay < 0 || c.Delay > MaxDelay:
		return fmt.Errorf("%w: Delay of %v (want 0 to %v)", ErrInvalid, c.Delay, MaxDelay)
	case c.Packet < MinPacket || c.Packet > MaxFIFO:
		return fmt.Errorf("%w: Packet of %d bytes (want %d to %d)", ErrInvalid, c.Packet, MinPacket, MaxFIFO)
	case c.FIFO < c.Packet || c.FIFO > MaxFIFO:
		return fmt.Errorf("%w: FIFO of %d bytes (want %d, a packet, to %d)", ErrInvalid, c.FIFO, c.Packet, MaxFIFO)
	case c.Piece < MinPacket || c.Piece > MaxSize:
		return fmt.Errorf("%w: Piece of %d bytes (want %d to %d)", ErrInvalid, c.Piece, MinPacket, MaxSize)
	}
	return nil
}

// Mode says what the receiver's processor does for a transfer, and what waits for it.
type Mode int

// The modes.
const (
	// NotPipelined invalidates behind each transfer; the receiver stands still meanwhile. It is the
	// experiment that finds the bottleneck (CENJU §6.3, figure 11).
	NotPipelined Mode = iota
	// Pipelined invalidates behind each transfer, while the receiver takes the next one in (CENJU
	// §6.2, figure 11).
	Pipelined
	// RemoteWrite is the system call CJrmwrite: it invalidates before each piece, for which the
	// receiver stands still, and once more behind it, while the next piece comes in (CENJU §4.1,
	// §6.2, figure 9).
	RemoteWrite
	// RemoteWriteUncut is RemoteWrite whose only piece is the transfer (CENJU §6.3, figure 14).
	RemoteWriteUncut
)

// Modes are all modes.
var Modes = []Mode{NotPipelined, Pipelined, RemoteWrite, RemoteWriteUncut}

// String names m.
func (m Mode) String() string {
	return [...]string{"not-pipelined", "pipelined", "remote-write", "remote-write-uncut"}[m]
}

// invalidation returns how long the receiver stands still for a piece of so many bytes, and for how
// long the processor works beside its reception.
func (c Config) invalidation(m Mode, size int) (still, beside time.Duration) {
	once := c.Delay + c.Invalidation.Time(size)
	switch m {
	case Pipelined:
		return 0, once
	case RemoteWrite, RemoteWriteUncut:
		return once, once
	}
	return once, 0
}

// pieces calls f with the pieces of a transfer.
func (c Config) pieces(m Mode, size int, f func(bytes int)) {
	piece := size
	if m == RemoteWrite {
		piece = c.Piece
	}
	for ; size > 0; size -= piece {
		f(min(piece, size))
	}
}
