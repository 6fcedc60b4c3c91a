//go:build !linux

package shm

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Link is a link over shared memory: on Linux. Elsewhere there is none.
type Link struct{ transport.Link }

// Open returns transport.ErrNotSupported.
func Open(name string, _ Config) (*Link, error) {
	return nil, fmt.Errorf("shm %s: open: %w (links over shared memory are for Linux; udp links work here)",
		name, transport.ErrNotSupported)
}

// MeetErr returns nil.
func (*Link) MeetErr() error { return nil }

// Folder returns "".
func (*Link) Folder() string { return "" }

// Stations returns nothing.
func (*Link) Stations() []Station { return nil }
