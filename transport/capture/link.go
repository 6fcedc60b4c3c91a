package capture

import (
	"errors"
	"io"

	"github.com/rawlane/rawlane/transport"
)

// Link is a link whose frames are recorded. What it does not do itself (Wait, Counters and so on)
// the inner link does. While frames are written, Send and Poll wait for each other and the writer.
type Link struct {
	transport.Link
	file *File
	id   int  // of the interface in the file
	snap int  // bytes recorded of each frame; 0 is all
	own  bool // the file is closed with the link
}

var (
	_ transport.Link    = (*Link)(nil)
	_ transport.Wrapper = (*Link)(nil)
)

// New returns a link around inner, recorded in a File of its own that is closed with it: Close
// returns the error if writing failed.
func New(inner transport.Link, w io.Writer) (*Link, error) {
	l, err := NewFile(w).Wrap(inner)
	if err == nil {
		l.own = true
	}
	return l, err
}

// Unwrap implements transport.Wrapper.
func (l *Link) Unwrap() transport.Link { return l.Link }

// File returns the capture that the frames go to.
func (l *Link) File() *File { return l.file }

// Send sends frames by the inner link and records those that it took.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	if n > 0 {
		l.file.record(l, frames[:n])
	}
	return n, err
}

// Poll polls the inner link and records the frames that it returned.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	if n > 0 {
		l.file.record(l, frames[:n])
	}
	return n, err
}

// Close closes the inner link, and the File if New made it.
func (l *Link) Close() error {
	err := l.Link.Close()
	if l.own {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
