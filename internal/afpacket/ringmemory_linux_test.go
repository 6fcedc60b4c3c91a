package afpacket

import (
	"math"
	"strings"
	"testing"
)

// A ring that a program cannot address, as one of 65,536 slots for an MTU of 65,535 where an int has
// 32 bits, is refused before its length is computed.
func TestRingLayout_BeyondAllAddresses(t *testing.T) {
	const half = math.MaxInt/2 + 1
	for _, r := range []RingLayout{{half / 2, 4}, {half, 2}, {half, half}} {
		if err := r.SetUp(-1); err == nil || !strings.Contains(err.Error(), "ask for fewer") {
			t.Errorf("%d slots of %d bytes: %v", r.Slots, r.SlotSize, err)
		}
	}
	if err := (RingLayout{half, 1}).SetUp(-1); err == nil || strings.Contains(err.Error(), "ask for fewer") {
		t.Errorf("one slot of %d bytes: %v", half, err)
	}
}
