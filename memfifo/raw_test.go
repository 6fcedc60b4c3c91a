package memfifo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// raw is a node without a domain, which sends any records and frames that a test wants.
type raw struct {
	t    testing.TB
	ep   *mcd.Endpoint
	port *mcd.Port

	mu      sync.Mutex
	conn    *reliable.Conn
	mute    bool // acknowledges nothing
	replies []byte
}

// openRaw makes a domain at node 0 and a raw node 1. It sends one frame from a node that the table
// does not have.
func openRaw(t testing.TB) (*Domain, *raw) {
	t.Helper()
	links, err := fabric.Links(3)
	if err != nil {
		t.Fatal(err)
	}
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	eps := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Nodes: table, Spin: -1}},
		[]transport.Link{links[0]}, []transport.Link{links[1]}, []transport.Link{links[2]})
	d, err := Open(eps[0], Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	r := &raw{t: t, ep: eps[1]}
	r.begin()
	r.port, err = eps[1].OpenPort(DefaultPort, mcd.PortOptions{Receive: r.receive})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := eps[2].OpenPort(DefaultPort, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, reliable.HeaderLen)
	hello[0], hello[7] = reliable.Version<<4|byte(reliable.Hello), 1
	if err := stranger.TrySend(0, mcd.To(d.port.Addr()), hello); err != nil {
		t.Fatal(err)
	}
	return d, r
}

// begin starts a new incarnation.
func (r *raw) begin() {
	size := r.ep.MaxPayload()
	memory := reliable.NewMemory(size)
	r.conn = reliable.New(reliable.Config{
		PeerTimeout: DefaultPeerTimeout, Counters: new(reliable.Counters),
		Incarnation: uint32(secret()) | 1, FrameSize: size, Alloc: memory.Alloc, Free: memory.Free,
	})
}

func (r *raw) receive(batch []mcd.Message, _ bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range batch {
		r.handle(&batch[i])
	}
}

func (r *raw) handle(m *mcd.Message) {
	var h reliable.Header
	if err := reliable.Parse(m.Payload, &h); err != nil {
		r.t.Error(err)
		return
	}
	if r.mute && h.Kind == reliable.Data {
		h.Kind = reliable.Ack
	}
	if r.conn.Handle(clock.Now(), &h, m.Payload[reliable.HeaderLen:]) == reliable.Deliver {
		r.replies = append(r.replies, m.Payload[reliable.HeaderLen:]...)
		r.conn.Delivered(h.Lane)
	}
	r.pump()
}

func (r *raw) pump() {
	var frames [reliable.MaxBatch][]byte
	for n := r.conn.NextBatch(clock.Now(), &frames); n > 0; n = r.conn.NextBatch(clock.Now(), &frames) {
		for _, f := range frames[:n] {
			r.send(f)
		}
	}
}

// send sends a frame as it is.
func (r *raw) send(f []byte) {
	err := r.port.TrySend(0, mcd.To(mcd.Addr{Node: 0, Port: DefaultPort}), f)
	if err != nil && !errors.Is(err, mcd.ErrClosed) { // the domain's goodbye may come while the test's endpoints close
		r.t.Error(err)
	}
}

// say sends a frame of records in a lane. It returns false if the domain accepts none any more.
func (r *raw) say(lane reliable.Lane, records []byte) bool {
	for range 1000 {
		r.mu.Lock()
		b := r.conn.Reserve(lane, len(records))
		if b != nil {
			copy(b, records)
			r.conn.Uncork(lane)
			r.pump()
		}
		r.mu.Unlock()
		if b != nil {
			return true
		}
		time.Sleep(10 * time.Microsecond)
	}
	return false
}

// rec makes a record: fields are numbers of the size that they have on the wire, then bytes of
// data.
func rec(op opcode, flags byte, fields ...any) []byte {
	b := []byte{byte(op), flags, 0, 0}
	for _, f := range fields {
		switch f := f.(type) {
		case []byte:
			binary.BigEndian.PutUint16(b[2:], uint16(len(f)))
			b = append(b, f...)
		default:
			var buf bytes.Buffer
			_ = binary.Write(&buf, binary.BigEndian, f)
			b = append(b, buf.Bytes()...)
		}
	}
	return b
}

// guarded is memory with canaries around it.
type guarded []byte

const canaryLen = 64

func newGuarded(n int) guarded {
	b := guarded(bytes.Repeat([]byte{0xa5}, n+2*canaryLen))
	clear(b.inside())
	return b
}

func (b guarded) inside() []byte { return b[canaryLen : len(b)-canaryLen : len(b)-canaryLen] }

// whole reports whether nothing was written around it.
func (b guarded) whole() bool {
	c := bytes.Repeat([]byte{0xa5}, canaryLen)
	return bytes.Equal(b[:canaryLen], c) && bytes.Equal(b[len(b)-canaryLen:], c)
}
