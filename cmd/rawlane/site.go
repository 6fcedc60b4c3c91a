package main

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// site is a place where a cluster can run in this process: a link per node, and the switches between them.
type site struct {
	name  string
	links []transport.Link
	tops  []top
	close func()
}

// top is one of several paths, with what has passed it.
type top struct {
	name   string
	frames func() uint64
}

var sites = map[string]func(nodes int) (*site, error){"fabric": fabricSite}

// openSite makes a site of links of the given kind.
func openSite(kind string, nodes int) (*site, error) {
	open, ok := sites[kind]
	if !ok {
		return nil, misuse("--link %q: no such kind (want one of %s)", kind, linkKinds())
	}
	return open(nodes)
}

// fabricSite is a fat tree in memory: two leaves with half the nodes each, and two tops, one per VID.
//
//	top 1 (VID 1)   top 2 (VID 2)
//	      |  \      /  |
//	      |   \    /   |
//	     leaf 0    leaf 1
func fabricSite(nodes int) (*site, error) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		return nil, err
	}
	leaves := []*fabric.Switch{f.AddSwitch("leaf 0"), f.AddSwitch("leaf 1")}
	s := &site{name: "an in-memory fabric: two leaf switches, two paths between them", close: func() {}}
	for vid := transport.VID(1); vid <= 2; vid++ {
		sw := f.AddSwitch(fmt.Sprintf("top %d", vid))
		for _, leaf := range leaves {
			if _, err := f.Connect(leaf, sw, fabric.Trunk(vid)); err != nil {
				return nil, err
			}
		}
		s.tops = append(s.tops, top{sw.String(), func() uint64 {
			c := sw.Counters()
			return c.Forwarded + c.Flooded + c.Multicast
		}})
	}
	for k := range nodes {
		l, err := f.Attach(leaves[2*k/nodes], fabric.Station{})
		if err != nil {
			return nil, err
		}
		s.links = append(s.links, l)
	}
	return s, nil
}

// passed returns how many frames each top has carried.
func (s *site) passed() []uint64 {
	var n []uint64
	for _, t := range s.tops {
		n = append(n, t.frames())
	}
	return n
}

// way says which tops carried frames since passed.
func (s *site) way(before []uint64) string {
	text := ""
	for i, t := range s.tops {
		if t.frames() > before[i] {
			text += ", by way of " + t.name
		}
	}
	return text
}
