package capture

import (
	"errors"
	"io"

	"github.com/rawlane/rawlane/transport"
)

// Link is a link whose frames are recorded. What it does not do itself (Wait, Counters and so on) the link inside
// does. Sending and polling wait for each other, and for the writer, while frames are taken down.
type Link struct {
	transport.Link
	file *File
	id   int  // of the interface in the file
	snap int  // bytes recorded of each frame; 0 is all
	own  bool // the file is this link's alone, and closed with it
}

var (
	_ transport.Link    = (*Link)(nil)
	_ transport.Wrapper = (*Link)(nil)
)

// New records a link in a File of its own, which is closed with the link: its Close tells if writing failed.
func New(inner transport.Link, w io.Writer) (*Link, error) {
	l, err := NewFile(w).Wrap(inner)
	if err == nil {
		l.own = true
	}
	return l, err
}

// Unwrap returns the link inside: it makes Link a transport.Wrapper.
func (l *Link) Unwrap() transport.Link { return l.Link }

// File returns where the frames go.
func (l *Link) File() *File { return l.file }

// Send sends frames by the link inside and records those that it took.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	if n > 0 {
		l.file.record(l, frames[:n])
	}
	return n, err
}

// Poll polls the link inside and records what it returned.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	if n > 0 {
		l.file.record(l, frames[:n])
	}
	return n, err
}

// Close closes the link inside, and its File if that is its own.
func (l *Link) Close() error {
	err := l.Link.Close()
	if l.own {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
