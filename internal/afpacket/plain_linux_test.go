package afpacket

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/testbed"
)

// descriptor is a socket of which nothing but that is known.
type descriptor int

func (d descriptor) Open(*Interface) (*netpoll.Poller, error) { panic("it is open") }
func (d descriptor) Control(f func(fd int) error) error       { return f(int(d)) }
func (d descriptor) Close() error                             { return unix.Close(int(d)) }

// A socket that takes no trains is found by its interface and EtherType, as long as it is open, and the
// look allocates nothing, as the goroutine that receives does it.
func TestPlainSockets(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	err := bed.Node(0).Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		ours, other, elsewhere := newPlainSockets(ifi.Index, ours), newPlainSockets(ifi.Index, ours+1), newPlainSockets(ifi.Index+1, ours)
		looks := func() [3]bool { return [3]bool{ours.look(), other.look(), elsewhere.look()} }
		defer func() {
			for _, p := range []*plainSockets{&ours, &other, &elsewhere} {
				_ = p.close()
				if !p.look() { // the file is closed
					t.Error("closed, it is sure that there are none")
				}
			}
		}()
		if got := looks(); got != [3]bool{} {
			t.Errorf("with no socket: %v", got)
		}
		fd, err := OpenSocket()
		if err != nil {
			return err
		}
		if err := newGroups(ifi.Index, descriptor(fd)).tell(plainMark(0x88b5), true); err != nil {
			return err
		}
		if got := looks(); got != [3]bool{true} {
			t.Errorf("with a socket: %v", got)
		}
		if n := testing.AllocsPerRun(100, func() { ours.look() }); n != 0 {
			t.Errorf("a look allocates %v times", n)
		}
		now := clock.Now()
		if !ours.any(now) {
			t.Error("none is known")
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
		if !ours.any(now) || ours.any(now.Add(1000*lookEvery)) {
			t.Error("it does not look again after a while, or does so at once")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
