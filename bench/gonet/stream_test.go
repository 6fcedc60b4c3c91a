package gonet

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// A stream ends when all has come, and an end of the context ends it.
func TestStream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	came := make(chan int64, 1)
	go func() { // until the stream's end
		n, err := Sink(l)
		if err != nil {
			t.Error(err)
		}
		came <- n
	}()
	took, err := Stream(t.Context(), l.Addr().String(), 1000, 300)
	if err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if n := <-came; n != 300_000 {
		t.Errorf("%d bytes came", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Stream(ctx, l.Addr().String(), 1<<20, 1<<20); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("nobody reads, and %v", err)
	}
}
