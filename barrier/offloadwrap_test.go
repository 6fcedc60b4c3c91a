package barrier_test

import (
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/transport/fault"
)

// setGeneration has all members of a group have completed so many barriers of number 0: as many take
// hours.
func setGeneration(all []*barrier.Group, generation uint32) {
	for _, g := range all {
		engine := reflect.ValueOf(g).Elem().FieldByName("all").Elem().FieldByName("engine").Elem()
		at := engine.FieldByName("machines").Index(0).Elem().FieldByName("generation")
		*(*uint32)(at.Addr().UnsafePointer()) = generation
	}
}

// Generations begin anew after 2^32. A slot has none with the number 0: the Center's process counts
// about that one, and the unit goes on after it. Nobody waits longer for it, or asks.
func TestOffload_GenerationsBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := openOffload(t, 3, fault.Config{}, 0, nil)
		all := c.groups(t, offloadConfig(t))
		rounds(t, all, 1, barrier.Options{}, time.Millisecond)
		setGeneration(all, math.MaxUint32-5)
		u.seen(slot.Transmit)
		var sent []int // by barrier
		for range 12 {
			rounds(t, all, 1, barrier.Options{}, time.Millisecond)
			sent = append(sent, u.seen(slot.Transmit))
		}
		if want := []int{0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1}; !reflect.DeepEqual(sent, want) {
			t.Errorf("the unit sent %d releases, want %d", sent, want)
		}
		for k, g := range all {
			if s := g.Stats(); s.Barriers != 13 || s.Nacks != 0 {
				t.Errorf("node %d: %+v, want 13 barriers, and nothing asked for", k, s)
			}
		}
		if n := slots(u); n != 1 {
			t.Errorf("%d slots are taken, want 1", n)
		}
	})
}
