package xdp

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Once a link is closed its descriptor is not used any more: the number may be another file's.
func TestControl_OfAClosedLink(t *testing.T) {
	_, a, _ := ends(t)
	used := 0
	use := func(int) error { used++; return nil }
	if err := a.door.Control(use); err != nil || used != 1 {
		t.Errorf("open: %v, used %d times", err, used)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.door.Control(use); !errors.Is(err, transport.ErrClosed) || used != 1 {
		t.Errorf("closed: %v, used %d times; want ErrClosed, and not used", err, used)
	}
}

// A grant whose memory cannot be mapped leaves none of its sockets open: neither the one that fails nor
// those behind it.
func TestAdopt_LeavesNoSocket(t *testing.T) {
	var more, readers []int
	for range 7 { // a program's, and three sockets with their memory: a pipe can be neither
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		more, readers = append(more, pipe[1]), append(readers, pipe[0])
	}
	receive, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{granted: afpacket.NewGranted(&afpacket.Granted{
		XDP: &afpacket.GrantedXDP{Mode: Generic.String(), Chunk: 2048, Slots: 64},
	}, receive, -1, more, nil)}
	if err := d.adopt(); err == nil || len(d.queues) != 0 {
		t.Errorf("%v, %d queues; want an error", err, len(d.queues))
	}
	if err := errors.Join(unix.Close(d.fd), unix.Close(d.program)); err != nil {
		t.Error(err)
	}
	for k, reader := range readers {
		if n, err := unix.Read(reader, make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("descriptor %d is open: %v", k, err)
		}
		_ = unix.Close(reader)
	}
}
