package launch

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Where an endpoint cannot be opened, the links that have none yet are closed as well.
func TestOpen_FailsAndClosesAll(t *testing.T) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sw, netClosed := f.AddSwitch(""), false
	links := make([][]transport.Link, 2)
	for k := range links {
		l, err := f.Attach(sw, fabric.Station{})
		if err != nil {
			t.Fatal(err)
		}
		links[k] = append(links[k], l)
	}
	c := &ClusterFlags{Nodes: 2, NICs: 1, VID: NoVID, KeyFile: filepath.Join(t.TempDir(), "none")}
	_, _, err = c.Open(links, func() error { netClosed = true; return nil })
	if err == nil || !netClosed {
		t.Fatalf("%v, the network is closed: %t", err, netClosed)
	}
	for k := range links {
		if _, err := links[k][0].Poll(make([]transport.Frame, 1)); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the link of node %d: %v", k, err)
		}
	}
}
