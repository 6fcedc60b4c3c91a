package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

const (
	// pingTimeout is the least time after which a ping without an echo counts as lost.
	pingTimeout = 100 * time.Millisecond
	// pingLosses in a row end the benchmark: the other node is down.
	pingLosses = 50
	// settle is the least time of a warm-up: before, the system may run two spinning threads on one
	// core. Of 24 short measurements 14 found them there after 20 ms, and none after 100.
	settle = 100 * time.Millisecond
)

// errLost means that a ping or its echo did not arrive.
var errLost = errors.New("lost")

// pinger exchanges one message after the other with one node.
type pinger struct {
	port   *mcd.Port
	to     mcd.Addr
	b      []byte
	seq    uint32
	lost   uint64
	inARow int

	ctx    context.Context // renewed now and then: to make one takes longer than a round
	cancel context.CancelFunc
	made   time.Time
}

func (c *client) pinger(peer mcd.NodeID, size int) *pinger {
	return &pinger{port: c.ping, to: mcd.Addr{Node: peer, Port: benchPing}, b: make([]byte, size)}
}

// warmUp makes n rounds at least, none of which counts.
func (c *client) warmUp(ctx context.Context, p *pinger, n int) error {
	round := func(ctx context.Context) error { _, err := p.round(ctx); return err }
	begun := time.Now()
	err := c.repeat(ctx, n, round)
	for err == nil && time.Since(begun) < settle {
		err = c.repeat(ctx, 1, round)
	}
	p.lost = 0
	return err
}

// round returns half of the time that a message takes there and back.
func (p *pinger) round(ctx context.Context) (half time.Duration, err error) {
	start := time.Now()
	p.begin(ctx, start)
	if err := p.port.Send(p.ctx, p.to, p.b); err != nil {
		return 0, p.fault(ctx, err)
	}
	if err := p.await(ctx); err != nil {
		return 0, err
	}
	return time.Since(start) / 2, nil
}

// begin makes the next message, at the time now.
func (p *pinger) begin(ctx context.Context, now time.Time) {
	if p.cancel == nil || now.Sub(p.made) > pingTimeout {
		p.forget()
		p.ctx, p.cancel = context.WithTimeout(ctx, 2*pingTimeout)
		p.made = now
	}
	p.seq++
	p.stamp()
}

// await waits for the message's echo.
func (p *pinger) await(ctx context.Context) error {
	for {
		n, from, err := p.port.Recv(p.ctx, p.b)
		if err != nil && !isLonger(err) {
			return p.fault(ctx, err)
		}
		if err == nil && p.echoes(p.b[:n], from) {
			p.inARow = 0
			return nil
		}
		p.stamp() // a late echo of an earlier ping has overwritten it
	}
}

// isLonger reports whether a message had no room: it is a late echo of a longer size.
func isLonger(err error) bool { return errors.Is(err, io.ErrShortBuffer) }

// stamp numbers the message, as far as it has room, so that a late echo is not taken for another.
func (p *pinger) stamp() {
	number, room := p.number()
	copy(p.b, number[len(number)-room:])
}

// number is that of the message, and how many of its bytes, the last ones, have room.
func (p *pinger) number() (number [4]byte, room int) {
	binary.BigEndian.PutUint32(number[:], p.seq)
	return number, min(len(p.b), len(number))
}

// echoes reports whether b, from an address, is the echo of the last message.
func (p *pinger) echoes(b []byte, from mcd.Addr) bool {
	number, room := p.number()
	return from == p.to && len(b) == len(p.b) && bytes.Equal(b[:room], number[len(number)-room:])
}

func (p *pinger) forget() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

// fault counts a loss; too many of them are an error that names the node.
func (p *pinger) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p.forget()
	p.lost++
	if p.inARow++; p.inARow == pingLosses {
		return fmt.Errorf("node %d has not answered %d messages of %d bytes in a row "+
			"(has it ended, is its cable out, or an MTU on the way smaller?)", p.to.Node, pingLosses, len(p.b))
	}
	if err := p.drain(ctx); err != nil {
		return err
	}
	return errLost
}

// drain takes late echoes of messages that have no room for a number, until none has come for as
// long as an echo is waited for: any would be taken for the next message's, and that one's then for
// the one after it.
func (p *pinger) drain(ctx context.Context) error {
	for len(p.b) == 0 {
		quiet, cancel := context.WithTimeout(ctx, 2*pingTimeout)
		_, _, err := p.port.Recv(quiet, p.b)
		cancel()
		switch {
		case err == nil || isLonger(err):
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return nil
		default:
			return err
		}
	}
	return nil
}
