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
	dirty   map[transport.MAC]bool       // destinations whose route, or its absence, is not in the table yet
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
			f.dirty[dst] = true
		}
	}
}

// isClean reports whether the table has the manager's routes.
func (f *fib) isClean() bool { return len(f.dirty) == 0 }

// waits reports whether a destination is not to be installed before the default route is. It has no
// route of its own any more, and would go by the old default, undrained, when that changes.
func (f *fib) waits(dst transport.MAC) bool {
	_, still := f.routes[dst]
	return f.dirty[dst] && !still && dst != transport.Broadcast && f.dirty[transport.Broadcast]
}

// install puts the dirty routes among those to some destinations, each given once, into the table,
// and removes those that are gone. What waits for the default route stays dirty.
func (f *fib) install(dsts []transport.MAC) (err error) {
	withDefault := slices.Contains(dsts, transport.Broadcast)
	dsts = slices.DeleteFunc(slices.Clone(dsts), func(dst transport.MAC) bool {
		return !f.dirty[dst] || !withDefault && f.waits(dst)
	})
	var set []vlan.Route
	for _, dst := range dsts {
		if r, ok := f.routes[dst]; ok {
			set = append(set, r)
		}
	}
	if len(set) == len(dsts) {
		err = f.table.Set(set...)
	} else { // some are gone
		covered := make(map[transport.MAC]bool, len(dsts))
		for _, dst := range dsts {
			covered[dst] = true
		}
		others := slices.DeleteFunc(f.table.Routes(), func(r vlan.Route) bool { return covered[r.Dst] })
		err = f.table.Replace(append(others, set...))
	}
	if err != nil {
		return err
	}
	for _, dst := range dsts {
		delete(f.dirty, dst)
	}
	return nil
}

// installAll is install for all destinations.
func (f *fib) installAll() error { return f.install(slices.Collect(maps.Keys(f.dirty))) }
