package manager

import (
	"slices"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// A destination that is gone leaves the table in its own drain; the routes that other drains cover
// stay as they are.
func TestFIBRemovesWhatIsGoneAlone(t *testing.T) {
	mac := func(k byte) transport.MAC { return transport.MAC{2, 0, 0, 0, 0, k} }
	route := func(k byte, vid transport.VID) vlan.Route {
		return vlan.Route{Dst: mac(k), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
	}
	f := newFIB()
	tell := func(routes ...vlan.Route) { f.take(&api.SessionEvent{Full: true, Routes: api.RoutesOf(routes)}) }
	tell(route(1, 1), route(2, 1), route(3, 1))
	if err := f.installAll(); err != nil {
		t.Fatal(err)
	}
	tell(route(1, 2), route(2, 2)) // 3 is gone
	for _, c := range []struct {
		drained []transport.MAC
		want    []vlan.Route
	}{
		{[]transport.MAC{mac(3), mac(2)}, []vlan.Route{route(1, 1), route(2, 2)}},
		{[]transport.MAC{mac(1)}, []vlan.Route{route(1, 2), route(2, 2)}},
	} {
		if err := f.install(c.drained); err != nil {
			t.Fatal(err)
		}
		if got := f.table.Routes(); !slices.Equal(got, c.want) {
			t.Errorf("drained %v: %v, want %v", c.drained, got, c.want)
		}
	}
	if !f.isClean() {
		t.Error("it is not clean")
	}
}
