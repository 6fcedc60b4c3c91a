package mcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

func mac(last byte) transport.MAC { return transport.MAC{2, 0, 0, 9, 9, last} }

func TestNodeTableRefusesConflicts(t *testing.T) {
	e := open(t, 2, 1)[0]
	before, own := e.Nodes(), e.MAC(0)
	for _, c := range []struct {
		name  string
		nodes []mcd.Node
		want  error
		text  []string
	}{
		{"two of one number", []mcd.Node{{ID: 3, MACs: []transport.MAC{mac(1)}}, {ID: 3, MACs: []transport.MAC{mac(2)}}},
			mcd.ErrConflict, []string{"node 3", mac(1).String(), mac(2).String()}},
		{"one address for two", []mcd.Node{{ID: 3, MACs: []transport.MAC{mac(1)}}, {ID: 4, MACs: []transport.MAC{mac(1)}}},
			mcd.ErrConflict, []string{"nodes 3 and 4", mac(1).String()}},
		{"no address", []mcd.Node{{ID: 3}}, nil, []string{"node 3", "0 addresses for 1 links"}},
		{"a group's address", []mcd.Node{{ID: 3, MACs: []transport.MAC{transport.Broadcast}}}, nil, []string{"ff:ff:ff:ff:ff:ff"}},
		{"another address for this node", []mcd.Node{{ID: 0, MACs: []transport.MAC{mac(1)}}}, nil,
			[]string{"node 0", "link 0", mac(1).String(), own.String(), "Config.Node"}},
		{"this node's address for another", []mcd.Node{{ID: 3, MACs: []transport.MAC{own}}}, nil,
			[]string{"node 3", own.String(), "should it be 3?"}},
		{"number out of range", []mcd.Node{{ID: 0xffff, MACs: []transport.MAC{mac(1)}}}, nil, []string{"65535", "0 to 65534"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := e.SetNodes(c.nodes)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			for _, s := range c.text {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
	if after := e.Nodes(); len(after) != len(before) {
		t.Errorf("a refused table changed the nodes from %v to %v", before, after)
	}
}

// The table belongs to the endpoint: what a program does with the slices that it has given, or got,
// changes no address.
func TestNodeTable_SharesNoMemory(t *testing.T) {
	links := switched(t, 2)
	given := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	e, err := mcd.Open(mcd.Config{Nodes: given}, links[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want := links[1].MAC()
	check := func(what string) {
		t.Helper()
		if got := e.Nodes()[1].MACs[0]; got != want {
			t.Errorf("%s: node 1 is %v, want %v", what, got, want)
		}
	}
	given[1].MACs[0] = mac(1)
	check("Config.Nodes was changed after Open")
	given[1].MACs[0] = want
	if err := e.SetNodes(given); err != nil {
		t.Fatal(err)
	}
	given[1].MACs[0] = mac(1)
	check("a slice was changed after SetNodes")
	e.Nodes()[1].MACs[0] = mac(1)
	check("what Nodes returned was changed")
}

// A node whose number was forgotten is node 0, and its table says otherwise.
func TestOpen_ForgottenNumber(t *testing.T) {
	links := switched(t, 2)
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	_, err := mcd.Open(mcd.Config{Nodes: table}, links[1])
	if err == nil || !strings.Contains(err.Error(), "Config.Node") {
		t.Errorf("node 1 opened as node 0: %v, want an error that names Config.Node", err)
	}
}

func TestOpenChecksItsArguments(t *testing.T) {
	if _, err := mcd.Open(mcd.Config{}); err == nil {
		t.Error("opened an endpoint without links")
	}
	l := switched(t, 1)[0]
	if _, err := mcd.Open(mcd.Config{Node: 0xffff}, l); err == nil {
		t.Error("opened an endpoint for the number that means all nodes")
	}
	if err := l.Close(); err != nil { // a failed Open leaves the link to its owner
		t.Error(err)
	}
}
