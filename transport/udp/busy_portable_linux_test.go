//go:build rawlane_portable

package udp

import (
	"errors"
	"net"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// What waits for stations that are not there fills the system's room: sends say so, and do not wait
// until it gives them up, as all other sends and Close would then.
func TestSend_DoesNotWaitForRoom(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	l := onAll(t, bed.Node(0), net.JoinHostPort(testbed.IP(1, 0).String(), "7401"))
	dead := []transport.MAC{numbered(7), numbered(8), numbered(9)}
	for k, mac := range dead {
		if err := l.AddStation(Station{Addr: net.JoinHostPort(testbed.IP(100+k, 0).String(), "7401"), MAC: mac}); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		for _, mac := range dead {
			_, err := l.Send([]transport.Frame{{Dst: mac, EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1400)}})
			if errors.Is(err, transport.ErrBusy) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Error("3,000 frames for nobody were taken")
}
