package offload_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// openUnit opens a unit on an interface of its own.
func openUnit(t *testing.T) *offload.Unit {
	t.Helper()
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	u, err := testbed.In(bed.Node(0), func() (*offload.Unit, error) { return offload.Open(testbed.Interface(0)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// numbered is a slot's configuration, with members 1 to n.
func numbered(number uint8, members int) *slot.Config {
	c := &slot.Config{Number: number, Generation: 2, Ranks: 2}
	for k := range members {
		c.Members = append(c.Members, slot.MemberInfo{Node: uint16(k + 1), Rank: 1, Incarnation: 7})
	}
	return c
}

func add(t *testing.T, u *offload.Unit, c *slot.Config) *slot.Slot {
	t.Helper()
	s, err := u.Add(c)
	if err != nil {
		t.Fatalf("number %d: %v", c.Number, err)
	}
	if g, p := s.State(); g != c.Generation || p != slot.Filling {
		t.Errorf("number %d: generation %d, phase %d", c.Number, g, p)
	}
	return s
}

// A unit has 64 slots. One that is given back is used again after 100 ms: the program may be in the
// middle of a frame of its.
func TestUnit_Slots(t *testing.T) {
	u := openUnit(t)
	var all []*slot.Slot
	for k := range 64 {
		all = append(all, add(t, u, numbered(uint8(k), 1)))
	}
	if _, err := u.Add(numbered(64, 1)); !errors.Is(err, offload.ErrFull) {
		t.Errorf("a 65th slot: %v, want ErrFull", err)
	}
	begun := time.Now()
	all[40].Close(2)
	u.Remove(all[40])
	u.Remove(all[40]) // nothing is there any more
	u.Remove(new(slot.Slot))
	s, err := u.Add(numbered(64, 1))
	for errors.Is(err, offload.ErrFull) {
		s, err = u.Add(numbered(64, 1))
	}
	if err != nil || s != all[40] || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("after %v: %v; want the slot that was given back, after 100 ms", time.Since(begun), err)
	}
	if _, err := u.Add(numbered(65, 1)); !errors.Is(err, offload.ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all { // what is in use stays in memory
		if g, _ := s.State(); g != 2 {
			t.Errorf("generation %d", g)
		}
	}
	u.Remove(all[3])
	if _, err := u.Add(numbered(66, 1)); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// A group whose members another group of the unit has, as that of another cluster, is refused, and
// changes nothing for the other one.
func TestUnit_TwoOfOneName(t *testing.T) {
	u := openUnit(t)
	one := add(t, u, numbered(1, 3))
	if _, err := u.Add(numbered(1, 4)); !errors.Is(err, offload.ErrTaken) {
		t.Fatalf("%v, want ErrTaken", err)
	}
	if _, err := u.Add(numbered(1, 3)); !errors.Is(err, offload.ErrTaken) {
		t.Errorf("the first's members are gone: %v", err)
	}
	one.Close(2)
	u.Remove(one)
	add(t, u, numbered(1, 4))
}

// Members for which there is no room leave nothing behind, and neither do those of a slot that is
// given back.
func TestUnit_Members(t *testing.T) {
	u := openUnit(t)
	const room = 64 * slot.MaxRanks
	first := add(t, u, numbered(0, 1))
	if _, err := u.Add(numbered(1, room)); err == nil || !strings.HasPrefix(err.Error(), "offload: add member ") {
		t.Errorf("%d members more than there is room for: %v", 1, err)
	}
	rest := add(t, u, numbered(3, room-1))
	if _, err := u.Add(numbered(2, 1)); err == nil {
		t.Error("one member more than there is room for was added")
	}
	rest.Close(2)
	u.Remove(rest)
	add(t, u, numbered(2, room-1))
	if g, p := first.State(); g != 2 || p != slot.Filling {
		t.Errorf("generation %d, phase %d", g, p)
	}
}

// A unit that is closed, and one that was not opened, leave neither descriptors nor memory: that of
// slots that are in use goes with the last of them.
func TestUnit_LeavesNothing(t *testing.T) {
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	open := func() (*offload.Unit, error) { return offload.Open(testbed.Interface(0)) }
	count := func() (descriptors, mapped int) {
		fds, err := os.ReadDir("/proc/self/fd")
		maps, err2 := os.ReadFile("/proc/self/maps")
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			var from, to uint64
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			if err == nil && strings.Contains(line, "bpf-map") && to-from >= 64*uint64(unsafe.Sizeof(slot.Slot{})) {
				mapped++ // the slots, and not what is unmapped with the garbage
			}
		}
		return len(fds), mapped
	}
	_, mapped := count()
	descriptors := 0
	for round := range 4 {
		u, err := testbed.In(bed.Node(0), open)
		if err != nil {
			t.Fatal(err)
		}
		s := add(t, u, numbered(0, 1))
		if _, err := testbed.In(bed.Node(0), open); !errors.Is(err, offload.ErrOccupied) {
			t.Errorf("%v, want ErrOccupied", err)
		}
		_, err = testbed.In(bed.Node(0), func() (*offload.Unit, error) { return offload.Open("lo") })
		if want := `offload lo: not an Ethernet interface (its address is "")`; fmt.Sprint(err) != want {
			t.Errorf("a unit on an interface without an address: %v, want %s", err, want)
		}
		if _, with := count(); with != mapped+1 {
			t.Errorf("%d mappings of slots, want %d", with, mapped+1)
		}
		last := add(t, u, numbered(1, 1))
		for k, used := range []*slot.Slot{s, last, nil} {
			if k == round%3 {
				if err := u.Close(); err != nil {
					t.Error(err)
				}
				if _, with := count(); used != nil && with != mapped+1 {
					t.Errorf("slots are in use: %d mappings of slots, want %d", with, mapped+1)
				}
			}
			if used != nil {
				used.Close(2)
				u.Remove(used)
			}
		}
		fds, maps := count()
		if round == 0 {
			descriptors = fds // with what stays open for good
		}
		if fds != descriptors || maps != mapped {
			t.Errorf("%d descriptors and %d mappings, and before they were %d and %d", fds, maps, descriptors, mapped)
		}
	}
}
