package xsk_test

import (
	"testing"

	"github.com/rawlane/rawlane/internal/xsk"
)

// What to do about the program depends on what is known of it: one of which nothing is known may be a
// link's.
func TestOccupiedError_SaysTheCure(t *testing.T) {
	for _, c := range []struct {
		err  xsk.OccupiedError
		want string
	}{
		{
			xsk.OccupiedError{Program: xsk.ProgramName, PID: 12, Interface: "eth7"},
			", rawlane_link, of process 12 (end that one; programs that share an interface all use link ring, which receives nothing beside link xdp)",
		},
		{xsk.OccupiedError{Program: "filter", PID: 12}, ", filter, of process 12 (end that one, or use link ring)"},
		{xsk.OccupiedError{PID: 12}, ", of process 12 (end that one)"},
		{
			xsk.OccupiedError{Program: "filter", Interface: "eth7", Attached: "xdpgeneric"},
			", filter (take it off: ip link set eth7 xdpgeneric off; or use link ring)",
		},
		{
			xsk.OccupiedError{Program: "filter"},
			", filter (take it off: ip link set NAME xdpgeneric off, or xdpdrv off; or use link ring)",
		},
		{
			xsk.OccupiedError{Interface: "eth7", Attached: "xdpdrv"},
			" (root sees which one, by ip link show eth7: end the process that has it, perhaps by a link xdp, beside which link ring receives nothing; " +
				"where no process has it: ip link set eth7 xdpdrv off)",
		},
	} {
		if got, want := c.err.Error(), "the interface runs an XDP program already"+c.want; got != want {
			t.Errorf("%+v:\n%s, want\n%s", c.err, got, want)
		}
	}
}
