package afpacket

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Granted is a pair of sockets that another process has opened for this one, bound and filtered,
// with what that process knows of the interface. A nil *Granted is none.
type Granted struct {
	Interface *Interface // in the sockets' network namespace, which need not be this process's
	EtherType transport.EtherType
	Layout    RingLayout // of the ring that the receiving socket has; zero without one
	// XDP is for a link over AF_XDP: the receiving socket only tells of the interface, and further
	// descriptors come with it. Nil: it is for another link.
	XDP *GrantedXDP
	// LockPort locks a port against other processes.
	LockPort func(cluster uint32, port uint8) (io.Closer, error)

	mu            sync.Mutex // guards what follows
	claimed       bool       // by a link, or given back
	receive, send int        // descriptors; -1 once they are taken
	more          []int      // likewise; nil
	release       func() error
}

// GrantedXDP is what sockets of AF_XDP are like.
type GrantedXDP struct {
	Mode     string // as package xsk names it
	Fallback string // why not a better one
	Chunk    int    // bytes of a frame's memory
	Slots    int    // frames that a socket can receive into
}

// NewGranted makes the descriptors g's, and release the function that Close calls. send is -1 if
// there is none.
func NewGranted(g *Granted, receive, send int, more []int, release func() error) *Granted {
	g.receive, g.send, g.more, g.release = receive, send, more, release
	return g
}

var (
	errGrantedTwice = errors.New("the grant was used or closed before (a grant is for one link: ask for another)")

	errGrantedPromiscuous = fmt.Errorf("Config.Promiscuous: a granted socket receives frames for this "+
		"station alone: %w", transport.ErrNotSupported)
)

// claim makes the grant a link's, which closes it. A second link must not: it would close the first
// one's connection to the service, and with it its locks.
func (g *Granted) claim() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claimed {
		return errGrantedTwice
	}
	g.claimed = true
	return nil
}

// GiveBack is Close of a grant that no link has claimed; else it does nothing.
func (g *Granted) GiveBack() error {
	if g.claim() != nil {
		return nil
	}
	return g.Close()
}

// TakeReceive returns the receiving socket, which is the caller's from now on.
func (g *Granted) TakeReceive() (int, error) { return g.take(&g.receive) }

// TakeSend returns the sending socket, which is the caller's from now on.
func (g *Granted) TakeSend() (int, error) { return g.take(&g.send) }

// TakeMore returns the further descriptors, which are the caller's from now on.
func (g *Granted) TakeMore() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	more := g.more
	g.more = nil
	return more
}

func (g *Granted) take(which *int) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fd := *which
	*which = -1
	if fd < 0 {
		return -1, errGrantedTwice
	}
	return fd, nil
}

// Close closes the sockets that nobody has taken, and gives the grant back. Further calls do
// nothing.
func (g *Granted) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	for _, fd := range []*int{&g.receive, &g.send} {
		if *fd >= 0 {
			err = errors.Join(err, unix.Close(*fd))
			*fd = -1
		}
	}
	for _, fd := range g.more {
		err = errors.Join(err, unix.Close(fd))
	}
	g.more = nil
	if g.release != nil {
		err = errors.Join(err, g.release())
		g.release = nil
	}
	return err
}
