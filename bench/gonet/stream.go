package gonet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// sinkBuffer is what the receiver of a stream reads at once.
const sinkBuffer = 64 << 10

// Sink takes one stream over TCP, says at its end that it has all, and returns how many bytes came.
func Sink(l net.Listener) (came int64, err error) {
	c, err := l.Accept()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	came, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, sinkBuffer))
	if err != nil {
		return came, err
	}
	_, err = c.Write([]byte{0})
	return came, err
}

// Stream sends so many messages of a size over TCP, one Write each, and returns how long it takes
// until the sink has all.
func Stream(ctx context.Context, to string, size, count int) (took time.Duration, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // ends a call in progress
	b := make([]byte, size)
	start := time.Now()
	for range count {
		if _, err := c.Write(b); err != nil {
			return 0, err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return 0, fmt.Errorf("the sink does not say that it has all: %w", err)
	}
	return time.Since(start), nil
}
