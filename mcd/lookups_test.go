package mcd

import (
	"testing"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// attached is where a node is in a network, as one of two node tables has it.
type attached struct {
	table, node, nic byte
}

func (a attached) mac() transport.MAC { return transport.MAC{2, 7, a.table, a.node, a.nic} }

// everywhere lists where nodes 1 and 2 are in two networks by both tables, with each next to each,
// and the first one is the last one, too.
func everywhere() (all []attached) {
	var one []attached
	for table := range byte(2) {
		for node := range byte(2) {
			for nic := range byte(2) {
				one = append(one, attached{table, node + 1, nic})
			}
		}
	}
	all = append(all, one[len(one)-1])
	for _, a := range one {
		for _, b := range one {
			all = append(all, a, b, b)
		}
	}
	return all
}

// inTables opens an endpoint of two links and calls f by one node table, the other, and the first
// one again.
func inTables(t *testing.T, f func(e *Endpoint, p *Port, table byte)) {
	t.Helper()
	e, p, _, _ := openScripts(t, 2)
	for _, table := range []byte{0, 1, 0} {
		var nodes []Node
		for node := byte(1); node <= 2; node++ {
			nodes = append(nodes, Node{ID: NodeID(node),
				MACs: []transport.MAC{attached{table, node, 0}.mac(), attached{table, node, 1}.mac()}})
		}
		if err := e.SetNodes(nodes); err != nil {
			t.Fatal(err)
		}
		f(e, p, table)
	}
}

// Each message goes to where the node table has its destination at that moment, on its network.
func TestTrySend_ByTheTableOfTheMoment(t *testing.T) {
	inTables(t, func(e *Endpoint, p *Port, table byte) {
		var got transport.MAC
		for i := range e.nics {
			e.nics[i].link.(*script).send = func(frames []transport.Frame) (int, error) {
				got = frames[0].Dst
				return len(frames), nil
			}
		}
		for _, a := range everywhere() {
			a.table = table
			to := To(Addr{Node: NodeID(a.node), Port: 1})
			if err := p.TrySend(int(a.nic), to, nil); err != nil || got != a.mac() {
				t.Fatalf("to node %d by NIC %d: went to %v, want %v: %v", a.node, a.nic, got, a.mac(), err)
			}
		}
	})
}

// A message is believed if it comes from where the node table has its sender at that moment, on
// that network, and no other is.
func TestReceive_BelievesTheTableOfTheMoment(t *testing.T) {
	inTables(t, func(e *Endpoint, p *Port, table byte) {
		for _, a := range everywhere() {
			for claimed := range byte(3) {
				for nic := range byte(2) {
					b := make([]byte, HeaderLen)
					wire.Seal(b, &wire.Header{Kind: wire.Unicast, From: uint16(claimed), DstPort: 1})
					if !e.lockPoll() {
						t.Fatal("no poll lock")
					}
					e.receive(int(nic), []transport.Frame{{Src: a.mac(), EtherType: transport.EtherTypeDefault, Payload: b}}, false)
					e.unlockPoll()
					_, from, came, err := p.TryRecv(nil)
					if want := a == (attached{table, claimed, nic}); err != nil || came != want || came && from.Node != NodeID(claimed) {
						t.Fatalf("from %v, which says it is node %d, by NIC %d: received %v, want %v: %v",
							a.mac(), claimed, nic, came, want, err)
					}
				}
			}
		}
	})
}
