package mcd_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/shm"
)

// Where one node's link alters what it receives, and is around memory, which does not, the others
// cover their payloads: nothing that was altered is delivered.
func TestChecksum_FaultsOfOneNodeInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcd-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var links [2]*shm.Link
	var nodes []mcd.Node
	for k := range links {
		if links[k], err = shm.OpenNode("test", uint32(cluster), k, shm.Config{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{links[k].MAC()}})
	}
	faulty, err := fault.New(links[1], rand.New(rand.NewPCG(1, 0)), fault.Config{Corrupt: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ports [2]*mcd.Port
	for k, l := range []transport.Link{links[0], faulty} {
		e, err := mcd.Open(mcd.Config{Cluster: cluster, Node: mcd.NodeID(k), Nodes: nodes}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		ports[k] = port(t, e, 9)
	}
	const many = 20
	ctx, payload := limit(t), bytes.Repeat([]byte("payload "), 100)
	for range many {
		send(t, ports[0], mcd.Addr{Node: 1, Port: 9}, payload)
	}
	for faulty.Counts().Delivered < many {
		if ctx.Err() != nil {
			t.Fatalf("%+v, want %d delivered", faulty.Counts(), many)
		}
		runtime.Gosched()
	}
	if err := faulty.SetConfig(fault.Config{}); err != nil {
		t.Fatal(err)
	}
	send(t, ports[0], mcd.Addr{Node: 1, Port: 9}, []byte("the first that is well"))
	expect(t, ports[1], mcd.Addr{Node: 0, Port: 9}, "the first that is well")
}
