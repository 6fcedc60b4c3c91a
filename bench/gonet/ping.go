package gonet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// Load says what Ping sends.
type Load struct {
	Size  int                             // in bytes; over TCP 1 at least: a stream has no empty messages
	Warm  int                             // round trips before those that count
	Iters int                             // round trips that count
	Often func(ctx context.Context) error // called before every 1000th round trip; may be nil
	Begin func()                          // called before the first that counts; may be nil
}

const (
	// tcpTimeout bounds a round trip over TCP, which loses nothing.
	tcpTimeout = 10 * time.Second
	// udpTimeout is how long an echo over UDP is waited for: then the message counts as lost.
	udpTimeout = time.Second
	// renewal is how often deadlines are set anew, and by how much a time-out may be too short: to
	// set one takes a part of a round trip's time.
	renewal = 100 * time.Millisecond
	// maxLosses in a row are an error.
	maxLosses = 10
)

// pinger exchanges messages with a server.
type pinger struct {
	dial    func(context.Context) (net.Conn, error)
	timeout time.Duration
	whole   bool // a message is a datagram, which may be lost

	c       net.Conn
	unwatch func() bool
	renewed time.Time // when the deadline was set
	out, in []byte
}

// Ping exchanges messages with a server over "udp" or "tcp", and records half of each round trip.
// It returns how many of those that count were lost, none of which is recorded.
func Ping(
	ctx context.Context, network string, to netip.AddrPort, load Load, record func(half time.Duration) error,
) (lost int, err error) {
	var d net.Dialer
	dial := func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, network, to.String()) }
	p := &pinger{dial: dial, timeout: tcpTimeout}
	if network == "udp" {
		p.timeout, p.whole = udpTimeout, true
	} else {
		load.Size = max(load.Size, 1)
	}
	return p.ping(ctx, load, record)
}

func (p *pinger) ping(ctx context.Context, load Load, record func(half time.Duration) error) (lost int, err error) {
	p.out, p.in = make([]byte, load.Size), make([]byte, load.Size+1) // of package net, nothing is read into no room
	if err := p.connect(ctx); err != nil {
		return 0, err
	}
	defer func() { p.close() }()
	inARow := 0
	for i := range load.Warm + load.Iters {
		if i%1000 == 0 && load.Often != nil {
			if err := load.Often(ctx); err != nil {
				return lost, err
			}
		}
		if i == load.Warm && load.Begin != nil {
			load.Begin()
		}
		half, err := p.round()
		switch {
		case err == nil:
			inARow = 0
			if i >= load.Warm {
				err = record(half)
			}
		case p.whole && errors.Is(err, os.ErrDeadlineExceeded):
			if i >= load.Warm {
				lost++
			}
			if inARow++; inARow == maxLosses {
				return lost, fmt.Errorf("no echo of %d messages in a row: %w", inARow, err)
			}
			p.close() // a late echo is for nobody then
			err = p.connect(ctx)
		}
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// connect dials. An end of the context ends a read in progress.
func (p *pinger) connect(ctx context.Context) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	p.c, p.renewed = c, time.Time{}
	p.unwatch = context.AfterFunc(ctx, func() { _ = c.Close() })
	return nil
}

func (p *pinger) close() {
	p.unwatch()
	_ = p.c.Close()
}

// round sends a message and awaits its echo.
func (p *pinger) round() (half time.Duration, err error) {
	start := time.Now()
	if start.Sub(p.renewed) >= renewal {
		if err := p.c.SetDeadline(start.Add(p.timeout)); err != nil {
			return 0, err
		}
		p.renewed, start = start, time.Now()
	}
	if _, err := p.c.Write(p.out); err != nil {
		return 0, err
	}
	if p.whole {
		_, err = p.c.Read(p.in)
	} else {
		_, err = io.ReadFull(p.c, p.in[:len(p.out)])
	}
	return time.Since(start) / 2, err
}
