package gonet

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// sinkBuffer is what the receiver of a stream reads at once.
const sinkBuffer = 64 << 10

// warmShare and warmWrites are what warms a stream up, before what counts: a tenth, and at least so
// many messages.
const (
	warmShare  = 10
	warmWrites = 10
)

// Sink takes one stream over TCP, which says first how many bytes warm up. It says when it has
// these, and at the end that it has all, and returns how many bytes came that count.
func Sink(l net.Listener) (came int64, err error) {
	c, err := l.Accept()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	in, b := struct{ io.Reader }{c}, make([]byte, sinkBuffer) // without splice(2)
	var warm [8]byte
	if _, err := io.ReadFull(in, warm[:]); err != nil {
		return 0, err
	}
	out := struct{ io.Writer }{io.Discard}
	all := int64(binary.BigEndian.Uint64(warm[:])) //nolint:gosec // a length
	if n, err := io.CopyBuffer(out, io.LimitReader(in, all), b); err != nil || n != all {
		return 0, fmt.Errorf("%d bytes came to warm up, want %d: %w", n, all, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	if _, err := c.Write([]byte{0}); err != nil {
		return 0, err
	}
	came, err = io.CopyBuffer(out, in, b)
	if err != nil {
		return came, err
	}
	_, err = c.Write([]byte{0})
	return came, err
}

// Stream sends so many messages of a size over TCP, one Write each, and returns how long it takes
// until the sink has all. A tenth more warms up.
func Stream(ctx context.Context, to string, size, count int) (took time.Duration, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // ends a call in progress
	b := make([]byte, size)
	send := func(count int) error {
		for range count {
			if _, err := c.Write(b); err != nil {
				return err
			}
		}
		return nil
	}
	sinkHasAll := func() error {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return fmt.Errorf("the sink does not say that it has all: %w", err)
		}
		return nil
	}
	warm := max(count/warmShare, warmWrites)
	if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(warm*size))); err != nil {
		return 0, err
	}
	if err := send(warm); err != nil {
		return 0, err
	}
	if err := sinkHasAll(); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := send(count); err != nil {
		return 0, err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, err
	}
	if err := sinkHasAll(); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}
