package afpacket

import (
	"testing"

	"golang.org/x/net/bpf"

	"github.com/rawlane/rawlane/transport"
)

func TestFilter(t *testing.T) {
	self, other, third := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}, transport.MAC{2, 1, 0, 0, 0, 1}
	group := transport.MAC{3, 0x52, 0, 0, 0, 1}
	const ours, theirs = transport.EtherTypeDefault, transport.EtherType(0x0800)
	for _, c := range []struct {
		name              string
		dst, src          transport.MAC
		etherType         transport.EtherType
		plain, all, promi bool // taken by a link for ours, for any EtherType, for any and promiscuous
	}{
		{"to this station", self, other, ours, true, true, true},
		{"to a group", group, other, ours, true, true, true},
		{"to all", transport.Broadcast, other, ours, true, true, true},
		{"to another station", other, third, ours, false, false, true},
		{"to a station that differs in the first bytes", third, other, ours, false, false, true},
		{"from a station that differs in the first bytes", self, third, ours, true, true, true},
		{"another EtherType", self, other, theirs, false, true, true},
		{"its own, come back", transport.Broadcast, self, ours, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := transport.Frame{Dst: c.dst, Src: c.src, EtherType: c.etherType, Payload: make([]byte, 46)}
			bytes := f.AppendTo(nil)
			for _, l := range []struct {
				link        string
				etherType   transport.EtherType
				promiscuous bool
				want        bool
			}{{"plain", ours, false, c.plain}, {"any", transport.EtherTypeAny, false, c.all}, {"promiscuous", transport.EtherTypeAny, true, c.promi}} {
				raw, err := newFilter(l.etherType, self, l.promiscuous, false)
				if err != nil {
					t.Fatal(err)
				}
				program, decoded := bpf.Disassemble(raw)
				if !decoded {
					t.Fatal("the filter does not disassemble")
				}
				vm, err := bpf.NewVM(program)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := vm.Run(bytes); err != nil || (n > 0) != l.want {
					t.Errorf("%s link: %d, %v; want it taken: %v", l.link, n, err, l.want)
				}
			}
		})
	}
}
