package mcd

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
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

// A message to a group, or to all, goes there, behind one to the node of that number, too; and each
// message is measured, however many went to its destination before.
func TestTrySend_BehindOneToANode(t *testing.T) {
	e, p, links, _ := openScripts(t, 1)
	var got transport.MAC
	links[0].send = func(frames []transport.Frame) (int, error) {
		got = frames[0].Dst
		return len(frames), nil
	}
	to := To(Addr{Node: 1, Port: 1})
	for _, c := range []struct {
		to   Dest
		size int
		want transport.MAC
		err  error
	}{
		{to, 1, e.Nodes()[0].MACs[0], nil},
		{ToGroup(1, 1), 1, GroupMAC(e.cfg.Cluster, 1), nil},
		{to, e.MaxPayload(), e.Nodes()[0].MACs[0], nil},
		{to, e.MaxPayload() + 1, transport.MAC{}, ErrTooLarge},
		{ToAll(1), 1, transport.Broadcast, nil},
		{to, e.MaxPayload() + 1, transport.MAC{}, ErrTooLarge},
	} {
		got = transport.MAC{}
		if err := p.TrySend(0, c.to, make([]byte, c.size)); !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%d bytes to %v: %v, to %v; want %v, to %v", c.size, c.to, err, got, c.err, c.want)
		}
	}
}

// Counters may be read where the endpoint calls a program's code: its Router, and its links.
func TestCounters_InsideASend(t *testing.T) {
	var e *Endpoint
	var p *Port
	looks := 0
	look := func() {
		if p != nil {
			looks++
			_, _ = e.Counters(), p.Counters()
		}
	}
	e, p, links, _ := openScripts(t, 1, func(c *Config) { c.Router = lookingRouter{c.Router, look} })
	links[0].send = func(frames []transport.Frame) (int, error) { look(); return len(frames), nil }
	if err := p.TrySend(0, To(Addr{Node: 1, Port: 1}), nil); err != nil || looks != 2 {
		t.Errorf("%d looks, want 2: %v", looks, err)
	}
	if c := e.Counters(); c.TxMessages != 1 {
		t.Errorf("%d messages sent", c.TxMessages)
	}
}

// lookingRouter sends all untagged, and calls look.
type lookingRouter struct {
	vlan.Router
	look func()
}

func (r lookingRouter) Route(transport.MAC) transport.OptionalTag {
	r.look()
	return transport.OptionalTag{}
}

// Two goroutines may be in Recv of one port: each gets a message.
func TestRecv_TwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p, _, others := openScripts(t, 1)
		defer e.Close()
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() { _, _, err := p.Recv(t.Context(), make([]byte, 1)); errs <- err }()
		}
		synctest.Wait()
		for range cap(errs) {
			arrive(t, e, others[0], 1)
		}
		e.Progress()
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A buffer is the caller's again also where another port's Receive function panics in the wait.
func TestTryRecv_KeepsNothingOfAPanic(t *testing.T) {
	e, p, _, others := openScripts(t, 1)
	if _, err := e.OpenPort(2, PortOptions{Receive: func([]Message, bool) { panic("Receive") }}); err != nil {
		t.Fatal(err)
	}
	arrive(t, e, others[0], 2)
	func() {
		defer func() {
			if r := recover(); r != "Receive" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _, _, _ = p.TryRecv(make([]byte, 8))
	}()
	if d := p.spare.Load(); d != nil && d.Buf != nil {
		t.Errorf("a buffer of %d bytes is kept", len(d.Buf))
	}
}
