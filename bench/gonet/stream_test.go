package gonet

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// sink takes a stream until its end, and tells how much of it counts.
func sink(t *testing.T, l net.Listener) <-chan int64 {
	came := make(chan int64, 1)
	go func() {
		n, err := Sink(l)
		if err != nil {
			t.Error(err)
		}
		came <- n
	}()
	return came
}

// A stream ends when all has come, and an end of the context ends it.
func TestStream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	came := sink(t, l)
	took, err := Stream(t.Context(), l.Addr().String(), 1000, 300)
	if err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if n := <-came; n != 300_000 {
		t.Errorf("%d bytes came that count", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Stream(ctx, l.Addr().String(), 1<<20, 1<<20); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("nobody reads, and %v", err)
	}
}

// counting is a listener that counts what its connections read.
type counting struct {
	net.Listener
	read atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countingConn{c, &l.read}, err
}

type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// A tenth more than what counts warms up, and ten messages at least.
func TestStream_WarmsUp(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	for count, warm := range map[int]int64{300: 30, 1: 10} {
		l := &counting{Listener: inner}
		came := sink(t, l)
		if _, err := Stream(t.Context(), l.Addr().String(), 1000, count); err != nil {
			t.Error(err)
		}
		counts := <-came
		if counts != int64(count)*1000 || l.read.Load() < counts+warm*1000 {
			t.Errorf("%d messages of 1000 bytes: %d bytes count of %d, want %d more", count, counts, l.read.Load(), warm*1000)
		}
	}
}
