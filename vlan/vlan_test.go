package vlan_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

var (
	a = transport.MAC{0x02, 0, 0, 0, 0, 1}
	b = transport.MAC{0x02, 0, 0, 0, 0, 2}
)

func TestFixedRefusesWhatATagCannotCarry(t *testing.T) {
	for _, tag := range []transport.Tag{{VID: 4095}, {VID: 1, PCP: 8}} {
		if _, err := vlan.Fixed(tag); !errors.Is(err, transport.ErrBadTag) {
			t.Errorf("%v: %v, want ErrBadTag", tag, err)
		}
	}
}

func ExampleFixed() {
	r, err := vlan.Fixed(transport.Tag{VID: 5, PCP: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Route(transport.Broadcast))
	_, err = vlan.Fixed(transport.Tag{VID: 5000})
	fmt.Println(err)
	// Output:
	// VID 5 PCP 3
	// bad VLAN tag: VID 5000 (want 1 to 4094, or 0 for priority only)
}
