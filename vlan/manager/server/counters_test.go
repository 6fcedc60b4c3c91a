package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// GET counters asks the programs first, and sums up those that have ended.
func TestVFREC_4_1_CountersOfAllPrograms(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	a, b := n.Dial(t, manager.Dialer{}), n.Dial(t, manager.Dialer{})
	count := func(want string) {
		t.Helper()
		c, err := n.Client.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range c.Nodes {
			if s.Frames > 0 {
				got = append(got, fmt.Sprintf("%v by %d: %d, %d", s.Dst, s.VID, s.Frames, s.Bytes))
			}
		}
		for _, s := range c.VIDs {
			if s.Frames > 0 {
				got = append(got, fmt.Sprintf("VID %d: %d, %d", s.VID, s.Frames, s.Bytes))
			}
		}
		if text := strings.Join(got, "; "); text != want || c.Silent != 0 {
			t.Errorf("%s, %d silent\nwant %s", text, c.Silent, want)
		}
	}
	a.Table().Counter(managertest.MAC(1)).Add(2, 200)
	b.Table().Counter(managertest.MAC(1)).Add(1, 50)
	count("02:00:00:00:00:02 by 1: 3, 250; VID 1: 3, 250")
	if err := a.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 2); err != nil {
		t.Fatal(err)
	}
	a.Table().Counter(managertest.MAC(1)).Add(5, 500)
	count("02:00:00:00:00:02 by 1: 3, 250; 02:00:00:00:00:02 by 2: 5, 500; VID 1: 3, 250; VID 2: 5, 500")
	a.Table().Counter(managertest.MAC(3)).Add(1, 9)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "a is gone", func() bool { h, err := n.Client.Health(t.Context()); return err == nil && h.Sessions == 1 })
	count("02:00:00:00:00:02 by 1: 3, 250; 02:00:00:00:00:02 by 2: 5, 500; 02:00:00:00:00:04 by 1: 1, 9; VID 1: 4, 259; VID 2: 5, 500")
}
