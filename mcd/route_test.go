package mcd_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mdlayher/ethernet"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/vlan"
)

// witness is a link that keeps the last frame, and sends nothing.
type witness struct {
	transport.Link
	last transport.Frame
}

func (w *witness) Send(frames []transport.Frame) (int, error) {
	w.last = frames[len(frames)-1]
	return len(frames), nil
}

// station returns the address of a node of witnessed.
func station(k int) transport.MAC { return transport.MAC{2, 1, 0, 0, byte(k >> 8), byte(k)} }

// witnessed opens node 0 of n, which sends to a witness.
func witnessed(t testing.TB, n int, r vlan.Router) (*witness, *mcd.Port) {
	t.Helper()
	end, _ := linktest.Pipe()
	w := &witness{Link: end}
	nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{end.MAC()}}}
	for k := 1; k < n; k++ {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{station(k)}})
	}
	e, err := mcd.Open(mcd.Config{Nodes: nodes, Router: r, Spin: -1}, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return w, port(t, e, 1)
}

func table(t testing.TB, routes ...vlan.Route) *vlan.Table {
	t.Helper()
	r, err := vlan.NewTable(routes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func routeTo(dst transport.MAC, vid transport.VID) vlan.Route {
	return vlan.Route{Dst: dst, OptionalTag: by(vid)}
}

// changer changes the route to one of n nodes, and sends it a frame.
func changer(t testing.TB, n int) (w *witness, change func(transport.VID)) {
	r := table(t, routeTo(transport.Broadcast, 9))
	w, p := witnessed(t, n, r)
	dst, payload := mcd.To(mcd.Addr{Node: mcd.NodeID(n - 1), Port: 1}), make([]byte, 64)
	return w, func(vid transport.VID) {
		if err := r.Set(routeTo(station(n-1), vid)); err != nil {
			t.Fatal(err)
		}
		if err := p.TrySend(0, dst, payload); err != nil {
			t.Fatal(err)
		}
		if w.last.OptionalTag != by(vid) || w.last.Dst != station(n-1) {
			t.Fatalf("after VID %d: %v to %v", vid, w.last.OptionalTag, w.last.Dst)
		}
	}
}

// A changed route costs the next frame to its destination, and allocates nothing, however many
// nodes there are.
func TestVFREC_4_1_RouteChangeIsInTheNextFrame(t *testing.T) {
	_, change := changer(t, 4096)
	vid := transport.VID(0)
	next := func() {
		vid = 1 + vid%4
		change(vid)
	}
	for range 4 { // each VID once, as each has a count
		next()
	}
	if n := testing.AllocsPerRun(1000, next); n != 0 {
		t.Errorf("%v allocs from the change to the frame, want 0", n)
	}
}

// BenchmarkRouteChange is a change of one route, and the next frame by it.
func BenchmarkRouteChange(b *testing.B) {
	_, change := changer(b, 4096)
	vid := transport.VID(0)
	b.ReportAllocs()
	for b.Loop() {
		vid = 1 + vid%4
		change(vid)
	}
}

// badFor is a router whose tags no frame can carry, for one destination.
type badFor struct {
	dst  transport.MAC
	bad  bool
	good transport.OptionalTag
}

func (r *badFor) Route(dst transport.MAC) transport.OptionalTag {
	if r.bad && dst == r.dst {
		return by(4095)
	}
	return r.good
}

// A program's own router that gives a bad tag for one node does not disturb sends to the others,
// and that node's frames keep the tag before it. A table of nodes is refused from the first.
func TestBadTagOfARouterConcernsItsDestinationAlone(t *testing.T) {
	r := &badFor{dst: station(1)}
	for _, r.good = range []transport.OptionalTag{by(7), transport.Untagged} {
		r.bad = false
		w, p := witnessed(t, 500, r)
		r.bad = true
		for _, k := range []mcd.NodeID{1, 2, 499} {
			if err := p.TrySend(0, mcd.To(mcd.Addr{Node: k, Port: 1}), nil); err != nil || w.last.OptionalTag != r.good {
				t.Errorf("to node %d: %v, %v; want %v", k, w.last.OptionalTag, err, r.good)
			}
		}
	}
	end, _ := linktest.Pipe()
	_, err := mcd.Open(mcd.Config{Router: r, Nodes: []mcd.Node{{ID: 1, MACs: []transport.MAC{station(1)}}}}, end)
	if !errors.Is(err, transport.ErrBadTag) {
		t.Errorf("Open with a bad route: %v, want ErrBadTag", err)
	}
}

// The header of a frame is what mdlayher/ethernet makes of the route.
func TestFrameHeaderAgreesWithAnIndependentEncoder(t *testing.T) {
	for _, tag := range []transport.OptionalTag{
		transport.Untagged, by(101), transport.Tagged(transport.Tag{VID: 5, PCP: 3, DEI: true}),
	} {
		w, p := witnessed(t, 2, table(t, vlan.Route{Dst: station(1), OptionalTag: tag}))
		if err := p.TrySend(0, mcd.To(mcd.Addr{Node: 1, Port: 9}), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		f := ethernet.Frame{
			Destination: station(1).HardwareAddr(),
			Source:      p.Endpoint().MAC(0).HardwareAddr(),
			EtherType:   ethernet.EtherType(transport.EtherTypeDefault),
			Payload:     w.last.Payload,
		}
		if tag.Tagged {
			f.VLAN = &ethernet.VLAN{
				Priority: ethernet.Priority(tag.Tag.PCP), DropEligible: tag.Tag.DEI, ID: uint16(tag.Tag.VID),
			}
		}
		want, err := f.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if got := w.last.AppendTo(nil); !bytes.Equal(got, want) {
			t.Errorf("%v:\n got %x\nwant %x", tag, got, want)
		}
	}
}
