package manager_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// The table is the plan's at first, the program's after SetRoute, and the plan's again after Close.
func TestVFREC_4_2_SessionChangesAndRestores(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	r := s.Table()
	if v := vid(r, 2); v != 1 {
		t.Fatalf("VID to node 2 is %d at first, want the plan's: 1", v)
	}
	ctx := t.Context()
	if err := s.SetRoute(ctx, mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRoute(ctx, mac(1), mac(0), 2); err != nil { // in the other order
		t.Fatal(err)
	}
	if vid(r, 2) != 3 || vid(r, 1) != 2 || vid(r, 3) != 1 {
		t.Errorf("VIDs %d, %d, %d, want 3, 2, 1", vid(r, 2), vid(r, 1), vid(r, 3))
	}
	if err := s.SetRoute(ctx, mac(1), mac(3), 3); err != nil || vid(r, 1) != 2 || vid(r, 3) != 1 {
		t.Errorf("a change of others' pair: %v, VIDs %d, %d, want none and no effect", err, vid(r, 1), vid(r, 3))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if vid(r, 2) != 1 || vid(r, 1) != 1 {
		t.Errorf("VIDs %d, %d after Close, want the plan's", vid(r, 2), vid(r, 1))
	}
	if err := s.SetRoute(ctx, mac(0), mac(1), 2); !errors.Is(err, manager.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// What one program changes the others on the node send by at once.
func TestSessionsAreToldOfOthersChanges(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	a, b := n.dial(t, manager.Dialer{}), n.dial(t, manager.Dialer{})
	if err := a.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is told", func() bool { return vid(b.Table(), 2) == 3 })
	if err := b.SetRoute(t.Context(), mac(0), mac(2), 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is told", func() bool { return vid(a.Table(), 2) == 2 })
	// The latest counts until its program ends; then the one below it does.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a's own again", func() bool { return vid(a.Table(), 2) == 3 })
}

func TestSessionIsToldWhatIsWrong(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s := n.dial(t, manager.Dialer{})
	for _, c := range []struct {
		name string
		a, b transport.MAC
		vid  transport.VID
		want error
	}{
		{"VID 0", mac(0), mac(1), 0, manager.ErrBadVID},
		{"VID 4095", mac(0), mac(1), 4095, manager.ErrBadVID},
		{"VID not in the plan", mac(0), mac(1), 4, manager.ErrBadVID},
		{"unknown node", mac(0), mac(9), 2, vlan.ErrUnknownNode},
		{"unknown node in others' pair", mac(1), mac(9), 2, vlan.ErrUnknownNode},
		{"a pair of one node", mac(0), mac(0), 2, vlan.ErrUnknownNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Stats().Version
			err := s.SetRoute(t.Context(), c.a, c.b, c.vid)
			if !errors.Is(err, c.want) || !errors.Is(err, manager.ErrRefused) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if vid(s.Table(), 1) != 1 || s.Stats().Version != before {
				t.Errorf("the table has changed")
			}
		})
	}
	err := s.SetRoutes(t.Context(), manager.Change{A: mac(0), B: mac(1), VID: 2}, manager.Change{A: mac(1), B: mac(0), VID: 3})
	if !errors.Is(err, manager.ErrOneSided) || vid(s.Table(), 1) != 1 {
		t.Errorf("one-sided: %v, VID %d", err, vid(s.Table(), 1))
	}
}
