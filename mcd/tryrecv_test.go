package mcd_test

import (
	"testing"
	"testing/synctest"
)

// TryRecv polls, once: it finds a message of which nobody has told, and none where none came. One
// that is there already needs no poll.
func TestTryRecv_PollsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piped(t)
		from, p := port(t, a, 1), port(t, b, 1)
		buf := make([]byte, 10)
		try := func(want string) {
			t.Helper()
			n, sender, ok, err := p.TryRecv(buf)
			if string(buf[:n]) != want || ok != (want != "") || ok && sender != from.Addr() || err != nil {
				t.Errorf("%q from %v, %t, %v; want %q", buf[:n], sender, ok, err, want)
			}
		}
		try("")
		send(t, from, p.Addr(), []byte("one"))
		send(t, from, p.Addr(), []byte("two"))
		try("one") // and two is in the backlog
		send(t, from, p.Addr(), []byte("three"))
		try("two")
		if n := p.Counters().RxMessages; n != 2 {
			t.Errorf("%d messages were taken from the link, want 2", n)
		}
		try("three")
		try("")
	})
}
