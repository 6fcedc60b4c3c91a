package monotime

import (
	"math"
	"testing"
	"time"
)

func TestTime_Arithmetic(t *testing.T) {
	origin := Time{}
	early, late := origin.Add(time.Millisecond), origin.Add(time.Second)
	if late.Sub(early) != 999*time.Millisecond || early.Sub(late) != -999*time.Millisecond {
		t.Errorf("Sub: %v and %v", late.Sub(early), early.Sub(late))
	}
	if early.Add(999*time.Millisecond) != late {
		t.Error("Add does not undo Sub")
	}
	if !origin.IsZero() || early.IsZero() {
		t.Error("IsZero: want the origin alone")
	}
	if early != At(time.Millisecond) || early.Since() != time.Millisecond {
		t.Errorf("At and Since: %v", early)
	}
	if s := early.String(); s != "1ms" {
		t.Errorf("String: %q", s)
	}
}

func TestTime_Order(t *testing.T) {
	instants := []Time{{math.MinInt64}, {-1}, {}, {1}, {math.MaxInt64}}
	for i, a := range instants {
		for j, b := range instants {
			if a.Before(b) != (i < j) || a.After(b) != (i > j) || (a == b) != (i == j) {
				t.Errorf("order of %v and %v", a, b)
			}
			if c := a.Compare(b); (c < 0) != (i < j) || (c > 0) != (i > j) {
				t.Errorf("Compare(%v, %v) = %d", a, b, c)
			}
			if d := a.Sub(b); (d < 0) != (i < j) || (d > 0) != (i > j) {
				t.Errorf("Sub of %v and %v = %v: the sign is wrong", a, b, d)
			}
		}
	}
}

// A timeout of "for ever" must not wrap round into the past.
func TestTime_StopsAtItsEnds(t *testing.T) {
	now := Time{}.Add(time.Hour)
	if at := now.Add(math.MaxInt64); at.Before(now) {
		t.Errorf("an hour and the longest duration: %v", at)
	}
	past := Time{}.Add(-time.Hour)
	if at := past.Add(math.MinInt64); at.After(past) {
		t.Errorf("minus an hour and the longest duration back: %v", at)
	}
	if d := (Time{math.MaxInt64}).Sub(Time{math.MinInt64}); d != math.MaxInt64 {
		t.Errorf("longest difference: %v", d)
	}
}
