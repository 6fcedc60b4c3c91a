package mcd_test

import (
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// rawSetup is an endpoint (node 1) beside a bare link that belongs to node 0 of its table, and a
// way to inject frame payloads and learn which counter each raised.
type rawSetup struct {
	e      *mcd.Endpoint
	marker *mcd.Port
	link   transport.Link
	dst    transport.MAC
}

func newRawSetup(t testing.TB) *rawSetup {
	links := switched(t, 2)
	e, err := mcd.Open(mcd.Config{Cluster: cluster, Node: 1, Backlog: 1, Nodes: []mcd.Node{
		{ID: 0, MACs: []transport.MAC{links[0].MAC()}},
		{ID: 1, MACs: []transport.MAC{links[1].MAC()}},
		{ID: 7, MACs: []transport.MAC{mac(7)}},
	}}, links[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(); _ = links[0].Close() })
	return &rawSetup{e: e, link: links[0], dst: links[1].MAC(), marker: port(t, e, 200)}
}

// inject sends the payload as one frame and returns when the endpoint has dealt with it.
func (s *rawSetup) inject(t testing.TB, etherType transport.EtherType, payload []byte) {
	t.Helper()
	marker := make([]byte, wire.HeaderLen)
	wire.Put(marker, &wire.Header{Kind: wire.Unicast, From: 0, To: 1, DstPort: 200, Cluster: uint32(cluster)}, nil)
	d := &mcd.RecvDesc{}
	if err := s.marker.PostRecv(d); err != nil {
		t.Fatal(err)
	}
	frames := []transport.Frame{
		{Dst: s.dst, EtherType: etherType, Payload: payload},
		{Dst: s.dst, EtherType: transport.EtherTypeDefault, Payload: marker},
	}
	if n, err := s.link.Send(frames); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if err := d.Wait(limit(t)); err != nil {
		t.Fatal(err)
	}
}

func message(change func(*wire.Header), payload string) []byte {
	h := wire.Header{Kind: wire.Unicast, From: 0, To: 1, DstPort: 9, Cluster: uint32(cluster)}
	if change != nil {
		change(&h)
	}
	b := make([]byte, wire.HeaderLen+len(payload))
	wire.Put(b, &h, []byte(payload))
	return b
}

// Each malformed or misdirected frame is counted under its cause, and under no other. This is the
// table of docs/wire-format.md.
func TestDropsAreCountedByCause(t *testing.T) {
	s := newRawSetup(t)
	port(t, s.e, 9)
	changed := func(at int, to byte) []byte {
		b := message(nil, "payload")
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name      string
		etherType transport.EtherType
		payload   []byte
		counter   func(*mcd.Counters) *uint64
	}{
		{"version", 0, changed(0, 0x21), func(c *mcd.Counters) *uint64 { return &c.DropVersion }},
		{"zeros", 0, make([]byte, 46), func(c *mcd.Counters) *uint64 { return &c.DropVersion }},
		{"length", 0, changed(12, 0xff), func(c *mcd.Counters) *uint64 { return &c.DropLength }},
		{"checksum", 0, changed(wire.HeaderLen, 'P'), func(c *mcd.Counters) *uint64 { return &c.DropChecksum }},
		{"kind", 0, message(func(h *wire.Header) { h.Kind = 9 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropKind }},
		{"cluster", 0, message(func(h *wire.Header) { h.Cluster++ }, ""), func(c *mcd.Counters) *uint64 { return &c.DropCluster }},
		{"cluster: before the checksum is looked at", 0, changed(8, 9), func(c *mcd.Counters) *uint64 { return &c.DropCluster }},
		{"node", 0, message(func(h *wire.Header) { h.To = 2 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropNode }},
		{"group", 0, message(func(h *wire.Header) { h.Kind, h.To = wire.Multicast, 1 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropGroup }},
		{"source: node 7 from another's address", 0, message(func(h *wire.Header) { h.From = 7 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropSource }},
		{"source: ourselves from another's address", 0, message(func(h *wire.Header) { h.From = 1 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropSource }},
		{"port", 0, message(func(h *wire.Header) { h.DstPort = 10 }, ""), func(c *mcd.Counters) *uint64 { return &c.DropNoPort }},
		{"a stranger's number is believed", 0, message(func(h *wire.Header) { h.From = 99 }, ""), func(c *mcd.Counters) *uint64 { return &c.RxMessages }},
		{"the backlog of one is full", 0, message(nil, ""), func(c *mcd.Counters) *uint64 { return &c.DropNoBuffer }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := s.e.Counters()
			if c.etherType == 0 {
				c.etherType = transport.EtherTypeDefault
			}
			s.inject(t, c.etherType, c.payload)
			*c.counter(&want)++
			want.RxMessages++ // the marker
			got := s.e.Counters()
			want.RxBytes = got.RxBytes
			if got != want {
				t.Errorf("counters:\n got %+v\nwant %+v", got, want)
			}
		})
	}
	from, version, ok := s.e.Foreign()
	if from != s.link.MAC() || version != 0 || !ok {
		t.Errorf("Foreign: %v, version %d, %v; want the last sender of a foreign version", from, version, ok)
	}
}

// total is the number of frames that the counters account for.
func total(c mcd.Counters) uint64 {
	return c.RxMessages + c.DropShort + c.DropVersion + c.DropLength + c.DropChecksum + c.DropKind + c.DropType +
		c.DropCluster + c.DropNode + c.DropGroup + c.DropSource + c.DropNoPort + c.DropNoBuffer +
		c.DropProbe + c.RxProbes + c.RxReplies
}

// FuzzReceive: a frame of any bytes neither panics nor goes uncounted.
func FuzzReceive(f *testing.F) {
	s := newRawSetup(f)
	f.Add([]byte{})
	f.Add(message(nil, "hello"))
	f.Add(message(func(h *wire.Header) { h.Kind = wire.Broadcast }, ""))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > s.link.MTU() {
			return
		}
		before := total(s.e.Counters())
		s.inject(t, transport.EtherTypeDefault, payload)
		if got := total(s.e.Counters()); got != before+2 {
			t.Fatalf("%d frames were accounted for, want 2", got-before)
		}
	})
}
