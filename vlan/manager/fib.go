package manager

import (
	"maps"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// fib is the forwarding information base of a session: the manager's routes, and which of them are
// not in the program's table yet. The manager's stream is the only source of its routes.
type fib struct {
	table   *vlan.Table
	version api.Version                  // of routes
	routes  map[transport.MAC]vlan.Route // the manager's
	dirty   map[transport.MAC]bool       // destinations whose route is not in the table yet
	gone    bool                         // some of them have none any more: only installAll removes those
}

func newFIB() *fib {
	table, _ := vlan.NewTable(nil) // a table without routes is always valid
	return &fib{table: table, routes: make(map[transport.MAC]vlan.Route), dirty: make(map[transport.MAC]bool)}
}

// take takes in an event's routes, and notes which of them the table lacks.
func (f *fib) take(e *api.SessionEvent) {
	f.version = e.Version
	before := f.routes
	if e.Full {
		f.routes = make(map[transport.MAC]vlan.Route, len(e.Routes))
	}
	for _, doc := range e.Routes {
		r := doc.Route()
		if before[r.Dst] != r {
			f.dirty[r.Dst] = true
		}
		f.routes[r.Dst] = r
	}
	for dst := range before {
		if _, still := f.routes[dst]; !still {
			f.dirty[dst], f.gone = true, true
		}
	}
}

// isClean reports whether the table has the manager's routes.
func (f *fib) isClean() bool { return len(f.dirty) == 0 }

// install puts the dirty routes among those to some destinations into the table.
func (f *fib) install(dsts []transport.MAC) error {
	var routes []vlan.Route
	for _, dst := range dsts {
		if r, ok := f.routes[dst]; ok && f.dirty[dst] {
			routes = append(routes, r)
		}
	}
	if len(routes) == 0 {
		return nil
	}
	if err := f.table.Set(routes...); err != nil {
		return err
	}
	for _, r := range routes {
		delete(f.dirty, r.Dst)
	}
	return nil
}

// installAll puts all dirty routes into the table, and removes those that are gone.
func (f *fib) installAll() error {
	if !f.gone {
		return f.install(slices.Collect(maps.Keys(f.dirty)))
	}
	if err := f.table.Replace(slices.Collect(maps.Values(f.routes))); err != nil {
		return err
	}
	clear(f.dirty)
	f.gone = false
	return nil
}
