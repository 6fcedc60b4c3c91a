package vlan_test

import (
	"bytes"
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

// The template's bytes, which mdlayher/ethernet made, and transport's own encoder agree.
func TestTemplateAgreesWithPutHeader(t *testing.T) {
	priority, _ := vlan.Fixed(transport.Tag{PCP: 5})
	tagged, _ := vlan.Fixed(transport.Tag{VID: 101, PCP: 1, DEI: true})
	for name, r := range map[string]vlan.Router{
		"untagged": vlan.Untagged, "VID 101 PCP 1 DEI": tagged, "priority only, VID 0 is not untagged": priority,
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := vlan.NewTemplate(r, a, b, transport.EtherTypeDefault)
			if err != nil {
				t.Fatal(err)
			}
			f := tpl.Frame([]byte("x"))
			if want := f.AppendTo(nil); !bytes.Equal(append(bytes.Clone(tpl.Header()), 'x'), want) {
				t.Errorf("template %x, PutHeader %x", tpl.Header(), want)
			}
		})
	}
}

type badRouter struct{ vlan.Router }

func (badRouter) Route(transport.MAC) transport.OptionalTag {
	return transport.Tagged(transport.Tag{VID: 4095})
}

func TestTemplateNamesTheBadRoute(t *testing.T) {
	_, err := vlan.NewTemplate(badRouter{}, a, b, transport.EtherTypeDefault)
	if !errors.Is(err, transport.ErrBadTag) {
		t.Errorf("%v, want ErrBadTag", err)
	}
}

func TestTemplateFrameAllocatesNothing(t *testing.T) {
	tpl, _ := vlan.NewTemplate(vlan.Untagged, a, b, transport.EtherTypeDefault)
	p := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { _ = tpl.Frame(p) }); n != 0 {
		t.Errorf("%v allocs, want 0", n)
	}
}

func ExampleFixed() {
	r, err := vlan.Fixed(transport.Tag{VID: 5, PCP: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	got := r.Route(transport.Broadcast)
	tag, tagged := got.Tag, got.Tagged
	fmt.Println(tag, tagged)
	_, err = vlan.Fixed(transport.Tag{VID: 5000})
	fmt.Println(err)
	// Output:
	// VID 5 PCP 3 true
	// bad VLAN tag: VID 5000 (want 1 to 4094, or 0 for priority only)
}
