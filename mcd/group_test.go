package mcd_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

func TestMCD_2_2_MulticastReachesMembersOnly(t *testing.T) {
	es := open(t, 4, 1)
	var ps []*mcd.Port
	for _, e := range es {
		ps = append(ps, port(t, e, 1))
	}
	for _, k := range []int{1, 2} {
		if err := es[k].Join(5); err != nil {
			t.Fatal(err)
		}
	}
	multicast := func(text string) {
		t.Helper()
		if err := ps[0].Multicast(limit(t), 5, 1, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	from := ps[0].Addr()
	multicast("first")
	expect(t, ps[1], from, "first")
	expect(t, ps[2], from, "first")

	if err := es[2].Leave(5); err != nil {
		t.Fatal(err)
	}
	multicast("second")
	expect(t, ps[1], from, "second")
	if err := ps[0].Broadcast(limit(t), 1, []byte("all")); err != nil {
		t.Fatal(err)
	}
	// What node 2 and 3 get next is the broadcast: messages of one sender to one port arrive in
	// order.
	for _, k := range []int{1, 2, 3} {
		expect(t, ps[k], from, "all")
	}
	if err := es[2].Leave(5); !errors.Is(err, mcd.ErrNotMember) {
		t.Errorf("left a group twice: %v, want ErrNotMember", err)
	}
}

func TestJoinsAreCounted(t *testing.T) {
	es := open(t, 2, 1)
	p0, p1 := port(t, es[0], 1), port(t, es[1], 1)
	for range 2 {
		if err := es[1].Join(8); err != nil {
			t.Fatal(err)
		}
	}
	if err := es[1].Leave(8); err != nil {
		t.Fatal(err)
	}
	if err := p0.Multicast(limit(t), 8, 1, []byte("still a member")); err != nil {
		t.Fatal(err)
	}
	expect(t, p1, p0.Addr(), "still a member")
}

// stubborn is a link that refuses to leave groups.
type stubborn struct{ transport.Link }

func (stubborn) Join(transport.MAC) error  { return nil }
func (stubborn) Leave(transport.MAC) error { return errStubborn }

var errStubborn = errors.New("stubborn")

// A link that fails does not keep the others from leaving a group.
func TestLeave_EveryLinkLeaves(t *testing.T) {
	other := &joined{}
	es := mcdtest.Open(t, 1, mcdtest.Config{NICs: 2, Wrap: func(_ mcd.NodeID, nic int, l transport.Link) transport.Link {
		if nic == 0 {
			return stubborn{l}
		}
		other.Link = l
		return other
	}})
	if err := es[0].Join(7); err != nil || other.groups != 1 {
		t.Fatalf("joined: %d groups, %v", other.groups, err)
	}
	if err := es[0].Leave(7); !errors.Is(err, errStubborn) || other.groups != 0 {
		t.Errorf("left: %d groups, %v; want none, and the other link's error", other.groups, err)
	}
}

// Where one of two links is gone the other one is used on: to join and leave groups, and in drains.
// Where both are, errors say so.
func TestGoneLink_IsLeftOut(t *testing.T) {
	for gone := range 2 {
		synctest.Test(t, func(t *testing.T) {
			var links [2]transport.Link
			es := mcdtest.Open(t, 2, mcdtest.Config{
				NICs: 2, Endpoint: mcd.Config{Spin: -1},
				Wrap: func(n mcd.NodeID, nic int, l transport.Link) transport.Link {
					if n == 0 {
						links[nic] = l
					}
					return l
				},
			})
			e, left := es[0], 1-gone
			lose := func(nic int) {
				if err := links[nic].Close(); err != nil { // as where its interface is removed
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second) // virtual
				if e.LinkErr(nic) == nil {
					t.Fatalf("link %d is well", nic)
				}
			}
			in, out := port(t, e, 1), port(t, es[1], 1)
			if err := e.Join(4); err != nil {
				t.Fatal(err)
			}
			lose(gone)
			if err := e.Join(5); err != nil {
				t.Errorf("without link %d: Join: %v", gone, err)
			}
			if err := out.SendVia(limit(t), left, mcd.ToGroup(5, 1), []byte("all")); err != nil {
				t.Fatal(err)
			}
			expect(t, in, out.Addr(), "all")
			if err := errors.Join(e.Leave(4), e.Leave(5)); err != nil {
				t.Errorf("without link %d: Leave: %v", gone, err)
			}
			ran := false
			if err := e.Drain(limit(t), func() error { ran = true; return nil }, 1); err != nil || !ran {
				t.Errorf("without link %d: Drain: %v; its change was run: %v", gone, err, ran)
			}
			lose(left)
			for what, err := range map[string]error{"Join": e.Join(5), "Drain": e.Drain(limit(t), func() error { return nil }, 1)} {
				if err == nil {
					t.Errorf("%s without links did not fail", what)
				}
			}
		})
	}
}

// joined is a link that counts the groups that it is in.
type joined struct {
	transport.Link
	groups int
}

func (j *joined) Join(transport.MAC) error  { j.groups++; return nil }
func (j *joined) Leave(transport.MAC) error { j.groups--; return nil }

// Counters never run backwards, also while a port is closed.
func TestCounters_WhileAPortCloses(t *testing.T) {
	es := open(t, 2, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5000 {
			p, err := es[0].OpenPort(mcd.Ports-1, mcd.PortOptions{}) // the last one that is counted
			if err != nil {
				t.Error(err)
				return
			}
			_ = p.TrySend(0, mcd.ToAll(1), nil)
			_ = p.Close()
		}
	}()
	for last := uint64(0); ; {
		n := es[0].Counters().TxMessages
		if n < last {
			t.Fatalf("%d messages sent, and then %d", last, n)
		}
		last = n
		select {
		case <-done:
			return
		default:
		}
	}
}

// A group's address is 03:52, the cluster's id folded to 16 bits, and the group, as
// docs/wire-format.md has it.
func TestGroupMAC_Golden(t *testing.T) {
	for _, c := range []struct {
		cluster mcd.ClusterID
		group   mcd.GroupID
		want    transport.MAC
	}{
		{0, 0, transport.MAC{3, 'R'}},
		{0x1234, 0x5678, transport.MAC{3, 'R', 0x12, 0x34, 0x56, 0x78}},
		{0x12340000, 0xffff, transport.MAC{3, 'R', 0x12, 0x34, 0xff, 0xff}},
		{0xff00aa0f, 1, transport.MAC{3, 'R', 0x55, 0x0f, 0, 1}},
	} {
		if got := mcd.GroupMAC(c.cluster, c.group); got != c.want {
			t.Errorf("cluster %#x, group %#x: %v, want %v", c.cluster, c.group, got, c.want)
		}
	}
}
