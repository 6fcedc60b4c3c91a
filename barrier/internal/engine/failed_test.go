package engine

import (
	"errors"
	"testing"
)

// A barrier that is entered without hope tells nothing, although the one before had told everything.
func TestHopelessArrive_TellsNobody(t *testing.T) {
	a := newAlone(t, "concurrent", 0, 3)
	a.arrives(0)
	a.tells(1, 1, 0)
	a.want(a.tells(2, 1, 0), "all tell 1 gen=1")
	a.is(Idle, 1)
	a.hears(1, a.failed(1, 2, Silent, 2))
	if out, err := a.Arrive(a.now, 0, nil); !errors.Is(err, ErrFailed) || len(out) > 0 {
		t.Fatalf("Arrive: %v, sends %q", err, sends(out))
	}
	a.want(a.hears(1, a.from(1, Ask, 2, 1)), "1 failed (silent: [2]) gen=2")
}
