package l2switch

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Each bit of VID and address is a bit of the key, and no two are the same: no address of a VID
// shares its entry with another one, of that VID or of another.
func TestKey_HasEachBit(t *testing.T) {
	seen := uint64(0)
	add := func(what string, k uint64) {
		if bits.OnesCount64(k) != 1 || k&seen != 0 {
			t.Errorf("%s is %#x in the key; others are %#x", what, k, seen)
		}
		seen |= k
	}
	for bit := range 12 {
		add(fmt.Sprintf("bit %d of the VID", bit), key(1<<bit, transport.MAC{}))
	}
	for bit := range 48 {
		var m transport.MAC
		m[bit/8] = 1 << (bit % 8)
		add(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), key(0, m))
	}
}

// A table is at most half full, and a search looks at one or two slots, whatever the addresses have
// in common.
func TestTable_SearchesAreShort(t *testing.T) {
	address := func(n uint64) (m transport.MAC) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], n)
		copy(m[:], b[2:])
		return m
	}
	for name, k := range map[string]func(n int) uint64{
		"addresses in a row":          func(n int) uint64 { return key(1, address(2<<40+uint64(n))) },
		"addresses 256 apart":         func(n int) uint64 { return key(1, address(2<<40+uint64(n)<<8)) },
		"vendors in a row":            func(n int) uint64 { return key(1, address(2<<40+uint64(n)<<24)) },
		"one address in each VID":     func(n int) uint64 { return key(transport.VID(n%4094+1), address(2<<40+uint64(n/4094))) },
		"16 addresses in each VID":    func(n int) uint64 { return key(transport.VID(n/16+1), address(2<<40+uint64(n%16))) },
		"a VID in each of 8 networks": func(n int) uint64 { return key(transport.VID(n%8*100+1), address(2<<40+uint64(n/8))) },
	} {
		tab := newTable(DefaultAddresses)
		for n := range DefaultAddresses {
			if !tab.insert(k(n), n%7, monotime.At(0), NeverAge) {
				t.Fatalf("%s: no room for address %d", name, n)
			}
			if 2*tab.used > len(tab.slots) {
				t.Fatalf("%s: %d addresses in %d slots", name, tab.used, len(tab.slots))
			}
		}
		if len(tab.slots) != 2*DefaultAddresses {
			t.Errorf("%s: %d slots for %d addresses, want two for each", name, len(tab.slots), DefaultAddresses)
		}
		steps, mask := 0, len(tab.slots)-1
		for n := range DefaultAddresses {
			i := tab.find(k(n))
			if tab.slots[i].key != k(n) || tab.slots[i].port != int32(n%7) {
				t.Fatalf("%s: address %d is not found", name, n)
			}
			steps += (i - tab.home(k(n))) & mask
		}
		if steps > 2*DefaultAddresses {
			t.Errorf("%s: a search goes %d steps beyond its first slot, want 2 at most",
				name, steps/DefaultAddresses)
		}
	}
}
