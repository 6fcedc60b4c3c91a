package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds of what waits for the writer.
const (
	// writeTimeout is how long a reader may take for what one system call writes. Traffic stands
	// still meanwhile, and other nodes take this one for dead after a while (2 s).
	writeTimeout = 5 * time.Second
	// closeTimeout is how long Close waits for a writer that has no such bound.
	closeTimeout = 2 * writeTimeout
	closePause   = 10 * time.Millisecond // between looks whether a link has left the writer
)

// errNotWritten is what Close returns when it gives up.
var errNotWritten = fmt.Errorf("it has not returned for %v, and Close gives up: %w",
	closeTimeout, os.ErrDeadlineExceeded)

// deadliner is a writer that can be told until when, as pipes and connections can.
type deadliner interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
}

// boundedWriter is one that does not wait for a reader for long.
type boundedWriter struct{ deadliner }

// bounded returns w, with a bound for each write if it can have one: a file on a disk cannot.
func bounded(w io.Writer) io.Writer {
	if d, ok := w.(deadliner); ok && d.SetWriteDeadline(time.Time{}) == nil {
		return boundedWriter{d}
	}
	return w
}

func (w boundedWriter) Write(b []byte) (int, error) {
	_ = w.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails if it is closed, as what follows does
	n, err := w.deadliner.Write(b)
	_ = w.SetWriteDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the reader has not taken %d bytes in %v: %w", len(b), writeTimeout, err)
	}
	return n, err
}
