package plan_test

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// station is the address of node i-1.
func station(i int) transport.MAC { return transport.MAC{0x02, 0, 0, 0, byte(i >> 8), byte(i)} }

func newTable(t testing.TB, routes ...vlan.Route) *vlan.Table {
	t.Helper()
	table, err := vlan.NewTable(routes)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
