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

// renaming is a system with interface 7, which gets its next name between two questions, and another
// one with the name that it had.
type renaming struct {
	names []string // of interface 7, the present one first
	taken bool     // another interface has its former name, and is up
	gone  bool     // it is removed, in place of a further name
}

// ask answers, and renames the interface behind each question for its name.
func (r *renaming) ask(what uint, in unix.Ifreq) (unix.Ifreq, error) {
	switch {
	case what == unix.SIOCGIFNAME && len(r.names) == 0:
		return in, unix.ENODEV
	case what == unix.SIOCGIFNAME:
		out, _ := unix.NewIfreq(r.names[0])
		if len(r.names) > 1 || r.gone {
			r.names = r.names[1:]
		}
		return *out, nil
	case len(r.names) > 0 && in.Name() == r.names[0]:
		in.SetUint16(unix.IFF_BROADCAST)
		return in, nil
	case r.taken:
		in.SetUint16(unix.IFF_UP)
		return in, nil
	}
	return in, unix.ENODEV
}

// An interface that is renamed while it is asked, as udev does while it is down, is neither gone nor
// the one that has its name then.
func TestAskByName_RenamedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name string
		r    renaming
		want uint16
		err  error
	}{
		{"keeps its name", renaming{names: []string{"eth0"}}, unix.IFF_BROADCAST, nil},
		{"renamed once", renaming{names: []string{"eth0", "enp1s0"}}, unix.IFF_BROADCAST, nil},
		{"twice", renaming{names: []string{"eth0", "x", "enp1s0"}}, unix.IFF_BROADCAST, nil},
		{"another has its name", renaming{names: []string{"eth0", "eth1"}, taken: true}, unix.IFF_BROADCAST, nil},
		{"removed", renaming{names: []string{"eth0"}, gone: true}, 0, unix.ENODEV},
		{"was removed before", renaming{}, 0, unix.ENODEV},
	} {
		answer, err := askByName(7, unix.SIOCGIFFLAGS, c.r.ask)
		if err != c.err || err == nil && answer.Uint16() != c.want { //nolint:errorlint // the very value
			t.Errorf("%s: flags %#x, %v; want %#x, %v", c.name, answer.Uint16(), err, c.want, c.err)
		}
	}
}
