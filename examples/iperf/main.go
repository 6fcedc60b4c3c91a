// Command iperf measures how many bytes a second a connection carries, each way and both at once,
// as the tool of that name does.
//
//	go run ./examples/iperf                                   both nodes in this process
//	go build ./examples/iperf && rawlane run -n 2 ./iperf     a process for each, on kernel links
//
// Package bothways starts both ends and compares them: begin a program of your own with
// examples/web.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rawlane/rawlane/examples/bothways"
)

func main() { bothways.Main(time.Minute, serve, ask(256<<20)) }

// What a client asks for, in the first byte; how many bytes, in the next eight.
const (
	upload byte = iota
	download
	both
)

// chunk is how many bytes a Write has.
const chunk = 128 << 10

func serve(listen bothways.Listen) (stop func(), err error) {
	l, err := listen("iperf")
	if err != nil {
		return nil, err
	}
	bothways.Serving("iperf", func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go answer(c) // until its bytes have passed
		}
	})
	return func() { _ = l.Close() }, nil
}

// answer does the server's part of a test. The client notices where it fails.
func answer(c net.Conn) {
	defer func() { _ = c.Close() }()
	var request [9]byte
	if _, err := io.ReadFull(c, request[:]); err != nil {
		return
	}
	n := int64(binary.BigEndian.Uint64(request[1:]))
	switch request[0] {
	case upload:
		if swallow(c, n) == nil {
			_, _ = c.Write([]byte{1}) // all came
		}
	case download:
		_ = pour(c, n)
		_, _ = io.Copy(io.Discard, c) // until the client has all
	case both:
		done := make(chan error, 1)
		go func() { done <- pour(c, n) }()
		if errors.Join(swallow(c, n), <-done) == nil {
			_, _ = c.Write([]byte{1})
		}
	}
}

// pour writes n bytes.
func pour(w io.Writer, n int64) error {
	b := make([]byte, chunk)
	for ; n > 0; n -= int64(len(b)) {
		b = b[:min(n, int64(len(b)))]
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// swallow reads n bytes.
func swallow(r io.Reader, n int64) error {
	b := make([]byte, chunk)
	for n > 0 {
		got, err := r.Read(b[:min(n, int64(len(b)))])
		if n -= int64(got); err != nil && n > 0 {
			return err
		}
	}
	return nil
}

func ask(bytes int64) func(context.Context, bothways.Way) error {
	return func(ctx context.Context, w bothways.Way) error {
		for _, t := range []struct {
			name string
			kind byte
			ways int64
		}{{"to the server", upload, 1}, {"from the server", download, 1}, {"both at once", both, 2}} {
			start := time.Now()
			if err := test(ctx, w, t.kind, bytes); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			fmt.Printf("%-24s %-8s %8.0f MB/s\n", t.name, w.Name, float64(bytes*t.ways)/time.Since(start).Seconds()/1e6)
		}
		return nil
	}
}

// test passes n bytes, and returns when they have arrived.
func test(ctx context.Context, w bothways.Way, kind byte, n int64) error {
	c, err := w.Dial(ctx, "tcp", w.Addr("iperf"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(n))); err != nil {
		return err
	}
	switch kind {
	case download:
		return swallow(c, n)
	case upload:
		err = pour(c, n)
	case both:
		done := make(chan error, 1)
		go func() { done <- pour(c, n) }()
		err = errors.Join(swallow(c, n), <-done)
	}
	if err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}
