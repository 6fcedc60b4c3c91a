// Package rules is the file that says which users may have sockets: on which interfaces, for which
// clusters and ports. A line is a rule; what no line allows is refused.
//
//	allow user alice    interface eth0       cluster 7      ports 0-99,246-255
//	allow group hpc     interface eth0,eth1  cluster 1-100  ports any
//	allow user bob      interface any        cluster any    ports any           ethertype 0x88b6
//	allow user carol    interface eth2       cluster any    ports any           xdp yes
//	limit group hpc     links 8              memory 64M
//	limit any           links 4              memory 16M
//	limit total         links 500            memory 512M
package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// Range is the numbers from First to Last.
type Range[T uint8 | uint32] struct{ First, Last T }

// Has reports whether n is in the range.
func (r Range[T]) Has(n T) bool { return r.First <= n && n <= r.Last }

func (r Range[T]) String() string {
	var zero T
	switch {
	case r.First == 0 && r.Last == zero-1:
		return "any"
	case r.First == r.Last:
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Scope is messages of some clusters to some ports.
type Scope struct {
	Cluster Range[uint32]
	Ports   []Range[uint8]
}

// Has reports whether a port of a cluster is in the scope.
func (s Scope) Has(cluster uint32, port uint8) bool {
	return s.Cluster.Has(cluster) && slices.ContainsFunc(s.Ports, func(r Range[uint8]) bool { return r.Has(port) })
}

func (s Scope) String() string {
	var ports []string
	for _, r := range s.Ports {
		ports = append(ports, r.String())
	}
	return fmt.Sprintf("%v:%s", s.Cluster, strings.Join(ports, ","))
}

// Peer is the credentials of the program that asks (SO_PEERCRED, SO_PEERGROUPS).
type Peer struct {
	UID    uint32
	Groups []uint32 // with the primary one
}

// who is the subject of a line.
type who struct {
	kind string // user, group, any or, of a limit, total
	name string // as in the file
	id   uint32
}

func (w who) covers(p Peer) bool {
	switch w.kind {
	case kindUser:
		return w.id == p.UID
	case kindGroup:
		return slices.Contains(p.Groups, w.id)
	}
	return w.kind == kindAny
}

// allowance is an allow line.
type allowance struct {
	who
	interfaces []string // nil: any
	etherType  transport.EtherType
	scopes     []Scope
	xdp        bool // by link xdp, too
}

// Limit is how much a user may have at one time.
type Limit struct {
	Links  int
	Memory int64 // of rings, in bytes
}

// restriction is a limit line.
type restriction struct {
	who
	Limit
}

// Rules are a parsed file.
type Rules struct {
	Name   string // of the file
	allows []allowance
	limits []restriction
}

// Scopes returns what a program may receive on an interface by an EtherType; none if it may not.
func (r *Rules) Scopes(p Peer, ifname string, etherType transport.EtherType) []Scope {
	return r.scopes(p, ifname, etherType, false)
}

// XDPScopes returns what of Scopes it may receive by link xdp.
func (r *Rules) XDPScopes(p Peer, ifname string, etherType transport.EtherType) []Scope {
	return r.scopes(p, ifname, etherType, true)
}

func (r *Rules) scopes(p Peer, ifname string, etherType transport.EtherType, xdp bool) (scopes []Scope) {
	for i := range r.allows {
		a := &r.allows[i]
		if a.etherType == etherType && a.covers(p) && a.on(ifname) && (a.xdp || !xdp) {
			scopes = append(scopes, a.scopes...)
		}
	}
	return scopes
}

// Names reports whether a line allows a program anything.
func (r *Rules) Names(p Peer) bool {
	return slices.ContainsFunc(r.allows, func(a allowance) bool { return a.covers(p) })
}

func (a *allowance) on(ifname string) bool {
	return a.interfaces == nil || slices.Contains(a.interfaces, ifname)
}

// Narrow leaves of scopes what is of one cluster.
func Narrow(scopes []Scope, cluster uint32) (narrow []Scope) {
	for _, s := range scopes {
		if s.Cluster.Has(cluster) {
			narrow = append(narrow, Scope{Range[uint32]{cluster, cluster}, s.Ports})
		}
	}
	return narrow
}

// Limit returns what a user may have: by the line for the user, or else the largest of its groups',
// or else that for any, or else the default.
func (r *Rules) Limit(p Peer) Limit {
	var found Limit
	rank := 0
	for _, l := range r.limits {
		if !l.covers(p) || ranks[l.kind] < rank {
			continue
		}
		if ranks[l.kind] > rank {
			rank, found = ranks[l.kind], Limit{}
		}
		found.Links, found.Memory = max(found.Links, l.Links), max(found.Memory, l.Memory)
	}
	if rank == 0 {
		return DefaultLimit
	}
	return found
}

// UserName returns what the file calls a user, its limit before other lines: its number, if no line
// is for this user alone.
func (r *Rules) UserName(uid uint32) string {
	of := func(w *who) bool { return w.kind == kindUser && w.id == uid }
	for i := range r.limits {
		if w := &r.limits[i].who; of(w) {
			return w.name
		}
	}
	for i := range r.allows {
		if w := &r.allows[i].who; of(w) {
			return w.name
		}
	}
	return strconv.FormatUint(uint64(uid), 10)
}

// Total returns what all users together may have.
func (r *Rules) Total() Limit {
	for _, l := range r.limits {
		if l.kind == kindTotal {
			return l.Limit
		}
	}
	return DefaultTotal
}

var ranks = map[string]int{kindAny: 1, kindGroup: 2, kindUser: 3}

// GroupsOn returns the groups whose members may use an interface; with xdp, by link xdp.
func (r *Rules) GroupsOn(ifname string, etherType transport.EtherType, xdp bool) (names []string) {
	for i := range r.allows {
		if a := &r.allows[i]; a.kind == kindGroup && a.etherType == etherType && a.on(ifname) && (a.xdp || !xdp) {
			names = append(names, a.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String is the rules as a file with one spelling.
func (r *Rules) String() string {
	var b strings.Builder
	for _, a := range r.allows {
		names := cmp.Or(strings.Join(a.interfaces, ","), kindAny)
		for _, s := range a.scopes {
			cluster, ports, _ := strings.Cut(s.String(), ":")
			fmt.Fprintf(&b, "allow %v interface %s cluster %s ports %s ethertype %v",
				a.who, names, cluster, ports, a.etherType)
			if a.xdp {
				b.WriteString(" xdp yes")
			}
			b.WriteByte('\n')
		}
	}
	for _, l := range r.limits {
		fmt.Fprintf(&b, "limit %v links %d memory %d\n", l.who, l.Links, l.Memory)
	}
	return b.String()
}

func (w who) same(o who) bool { return w.kind == o.kind && w.id == o.id }

func (w who) String() string {
	if w.kind == kindAny || w.kind == kindTotal {
		return w.kind
	}
	return w.kind + " " + w.name
}
