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
	before := e.Nodes()
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
