package afpacket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// seenUp is a socket of an interface that is seen up, and goes down right after that.
type seenUp struct {
	Socket
	a     *Attachment
	looks int
}

func (s *seenUp) Control(func(int) error) error {
	if s.looks++; s.looks == 1 {
		_ = LinkError(s.a, "poll", unix.ENETDOWN) // the socket says it once
	}
	return nil
}

// An interface that goes down just when a Wait has seen it up is looked at again.
func TestLinkState_GoesDownAfterTheLook(t *testing.T) {
	a := &Attachment{ifi: &Interface{Name: "eth0"}}
	s := &seenUp{a: a}
	_ = LinkError(a, "poll", unix.ENETDOWN)
	for looks := range 3 {
		if err := a.state.check(s); err != nil {
			t.Fatal(err)
		}
		if want := min(looks+1, 2); s.looks != want {
			t.Errorf("after %d checks: %d looks, want %d", looks+1, s.looks, want)
		}
	}
}
