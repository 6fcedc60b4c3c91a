package mcd

import (
	"testing"
	"time"
)

func TestPaceSpinsOnlyWhileWaitsAreShort(t *testing.T) {
	p := pace{max: 100 * time.Microsecond}
	if p.spin() != p.max {
		t.Error("a new endpoint should spin")
	}
	p.note(time.Second)
	if p.spin() == 0 {
		t.Error("one long pause ended the spinning")
	}
	for range 20 {
		p.note(time.Millisecond)
	}
	if p.spin() != 0 {
		t.Error("waits are long, and it still spins")
	}
	for range 20 {
		p.note(10 * time.Microsecond)
	}
	if p.spin() != p.max {
		t.Error("waits are short again, and it does not spin")
	}
}

func TestPaceOff(t *testing.T) {
	p := pace{max: -1}
	for range 20 {
		p.note(time.Microsecond)
	}
	if p.spin() != 0 {
		t.Error("spins though it must not")
	}
}
