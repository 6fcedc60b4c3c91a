package offload

import (
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/testbed"
)

// A NIC may start anew when it gets the program, and when that is taken off: who opens and closes a
// unit has the carrier back behind it, unless there was none before.
func TestUnit_AwaitsTheCarrier(t *testing.T) {
	testbed.NeedXDP(t, func(ifname string) error {
		u, err := Open(ifname)
		if err == nil {
			err = u.Close()
		}
		return err
	})
	bed := testbed.ForTest(t, testbed.Config{})
	for _, c := range []struct {
		name          string
		has           []bool // what the NIC says when it is asked
		opened, ended []bool // by question: whether the program was there
	}{
		{"it comes back", []bool{true, false, false, true}, []bool{false, true, true, true}, []bool{true, false, false, false}},
		{"it stays", []bool{true, true}, []bool{false, true}, []bool{true, false}},
		{"there was none", []bool{false}, []bool{false}, []bool{true}},
	} {
		err := bed.Node(0).Do(func() error {
			ifi, err := net.InterfaceByName(testbed.Interface(0))
			if err != nil {
				return err
			}
			carrier, err := afxdp.OpenCarrier(ifi)
			if err != nil {
				return err
			}
			var asked []bool
			carrier.Has = func() bool {
				asked = append(asked, afxdp.AttachedProgram(ifi.Index) != 0)
				return len(asked) > len(c.has) || c.has[len(asked)-1]
			}
			u, err := openOn(ifi, carrier)
			if err != nil {
				return errors.Join(err, carrier.Close())
			}
			if !slices.Equal(asked, c.opened) {
				t.Errorf("%s: while it was opened it was asked for the carrier with the program there: %v, want %v",
					c.name, asked, c.opened)
			}
			asked = nil
			if err := u.Close(); !slices.Equal(asked, c.ended) {
				t.Errorf("%s: while it was closed it was asked for the carrier with the program there: %v, %v, want %v",
					c.name, asked, err, c.ended)
			}
			return u.Close()
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
