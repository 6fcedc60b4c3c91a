package mcd_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
)

// narrow is a link of a small MTU.
type narrow struct {
	transport.Link
	mtu int
}

func (n *narrow) MTU() int { return n.mtu }

// A link has to have room for a message of one byte at least.
func TestOpen_SmallestMTU(t *testing.T) {
	l := switched(t, 1)[0]
	defer l.Close()
	for _, mtu := range []int{0, mcd.HeaderLen - 1, mcd.HeaderLen} {
		if _, err := mcd.Open(mcd.Config{}, &narrow{l, mtu}); err == nil || !strings.Contains(err.Error(), "leaves no room") {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
	e, err := mcd.Open(mcd.Config{}, &narrow{l, mcd.HeaderLen + 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := e.MaxPayload(); n != 1 {
		t.Errorf("messages of %d bytes", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// With keys it has to have room for the frames by which nodes get to know each other, too: without
// them no message would ever be believed.
func TestOpen_SmallestMTUWithKeys(t *testing.T) {
	const least = 112
	cfg := func(mtu int) mcdtest.Config {
		return mcdtest.Config{Fabric: fabric.Config{MTU: mtu}, Endpoint: mcd.Config{Keys: ring(1, true)}}
	}
	_, closeAll, err := mcdtest.Start(1, cfg(least-1))
	if err == nil {
		t.Errorf("MTU %d was taken", least-1)
		_ = closeAll()
	} else if !strings.Contains(err.Error(), "with keys 112") {
		t.Error(err)
	}
	es := mcdtest.Open(t, 2, cfg(least))
	to := port(t, es[1], 1)
	send(t, port(t, es[0], 1), to.Addr(), make([]byte, es[0].MaxPayload()))
	buf := make([]byte, least)
	if n, _, err := to.Recv(limit(t), buf); n != least-mcd.AuthHeaderLen || err != nil {
		t.Error(n, err)
	}
}

// trainer is a link that says that it sends trains.
type trainer struct {
	narrow
	trainMTU, frames, headroom int
	pieces                     int // of memory that the frames were, of one that is given several at a time
}

func (l *trainer) Send(frames []transport.Frame) (int, error) {
	var end uintptr // of the frame before
	for i := range frames {
		at := uintptr(unsafe.Pointer(&frames[i].Payload[0]))
		if len(frames) > 1 && at != end+uintptr(l.headroom) {
			l.pieces++
		}
		end = at + uintptr(len(frames[i].Payload))
	}
	return l.Link.Send(frames)
}

func (l *trainer) TrainMTU() int                   { return l.trainMTU }
func (l *trainer) TrainFrames() int                { return l.frames }
func (l *trainer) TrainHeadroom() int              { return l.headroom }
func (l *trainer) Trains() (sent, received uint64) { return 0, 0 }

// What may go in a train is what the train of every link takes, and as many as each of them.
func TestOpen_Trains(t *testing.T) {
	const most = 1<<16 - 1 // of a message
	for _, c := range []struct {
		name                  string
		links                 []trainer // of which a TrainMTU of 0 is one that sends none
		payload, long, frames int
	}{
		{"one link", []trainer{{narrow: narrow{mtu: 1500}, trainMTU: 1400, frames: 20}}, 1400 - mcd.HeaderLen, 1500 - mcd.HeaderLen, 20},
		{"the second has shorter trains, the first longer frames",
			[]trainer{{narrow: narrow{mtu: 1500}, trainMTU: 1400, frames: 20}, {narrow: narrow{mtu: 1450}, trainMTU: 1390, frames: 30}}, 1390 - mcd.HeaderLen, 1450 - mcd.HeaderLen, 20},
		{"the first has shorter trains",
			[]trainer{{narrow: narrow{mtu: 1500}, trainMTU: 1200, frames: 20}, {narrow: narrow{mtu: 1500}, trainMTU: 1400, frames: 10}}, 1200 - mcd.HeaderLen, 1500 - mcd.HeaderLen, 10},
		{"one sends none", []trainer{{narrow: narrow{mtu: 1500}, trainMTU: 1400, frames: 20}, {narrow: narrow{mtu: 1300}, trainMTU: 0, frames: 0}},
			1300 - mcd.HeaderLen, 1300 - mcd.HeaderLen, 0},
		{"longer than any message", []trainer{{narrow: narrow{mtu: 1 << 17}, trainMTU: 1 << 17, frames: 2}}, most, most, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			links := switched(t, len(c.links))
			for i := range links {
				l := &c.links[i]
				l.Link, links[i] = links[i], l
				if l.trainMTU == 0 {
					links[i] = &l.narrow
				}
			}
			e, err := mcd.Open(mcd.Config{}, links...)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if e.TrainPayload() != c.payload || e.MaxPayload() != c.long || e.TrainFrames() != c.frames {
				t.Errorf("messages of %d bytes, in trains of %d, %d of them; want %d, %d, %d",
					e.MaxPayload(), e.TrainPayload(), e.TrainFrames(), c.long, c.payload, c.frames)
			}
		})
	}
}

// Where messages go in trains, those of a batch lie side by side when the link is given them: those
// that were copied, and those in place whose memory does.
func TestTrains_SideBySide(t *testing.T) {
	for _, headroom := range []int{0, transport.HeaderLen} {
		var links [2]*trainer
		es := mcdtest.Open(t, len(links), mcdtest.Config{
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				links[node] = &trainer{narrow: narrow{l, 1500}, trainMTU: 1400, frames: 20, headroom: headroom}
				return links[node]
			},
		})
		const n, size = 20, 1000
		link, from := links[0], es[0]
		in, out := port(t, es[1], 1), port(t, from, 1)
		var descs []*mcd.SendDesc
		for range n {
			descs = append(descs, &mcd.SendDesc{To: mcd.To(in.Addr()), Payload: make([]byte, size)})
		}
		for range 2 { // the first batch grows the memory
			link.pieces = 0
			if err := out.PostSend(descs...); err != nil {
				t.Fatal(err)
			}
			for _, d := range descs {
				if err := d.Wait(limit(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		copied := link.pieces
		memory := make([]byte, n*(from.Headroom()+size))
		if sent, err := out.TrySendInPlace(0, mcd.To(in.Addr()), slices.Collect(slices.Chunk(memory, from.Headroom()+size))...); sent != n || err != nil {
			t.Fatal(sent, err)
		}
		if copied != 1 || link.pieces != 2 || from.Headroom() != headroom+mcd.HeaderLen {
			t.Errorf("%d bytes between them: %d pieces of %d copied messages, %d of as many in place; %d bytes of room",
				headroom, copied, n, link.pieces-copied, from.Headroom())
		}
	}
}

// What a program gets that sets nothing, as the documentation has it.
func TestDefaults(t *testing.T) {
	if mcd.DefaultBacklog != 64 || mcd.DefaultSpin != 100*time.Microsecond || mcd.Ports != 256 || mcd.MaxNodeID != 65534 {
		t.Errorf("a backlog of %d, %v of spinning, %d ports, nodes to %d",
			mcd.DefaultBacklog, mcd.DefaultSpin, mcd.Ports, mcd.MaxNodeID)
	}
	es := open(t, 2, 1)
	from, p, last := port(t, es[0], 1), port(t, es[1], 1), port(t, es[1], 255)
	for range 66 {
		send(t, from, p.Addr(), nil)
	}
	send(t, from, last.Addr(), []byte("to the last port"))
	expect(t, last, from.Addr(), "to the last port")
	if c := p.Counters(); c.RxMessages != 64 || c.DropNoBuffer != 2 {
		t.Errorf("of 66 messages %d are kept, and %d dropped; want 64, 2", c.RxMessages, c.DropNoBuffer)
	}
}

// Memory of a message in place that begins at a cache line has the kernel copy from one: a packet
// without a tag, or of a train the payload; with keys, too.
func TestHeadroom_CacheLine(t *testing.T) {
	const line = 64
	for _, keys := range []*keyring.Ring{nil, ring(1, false)} {
		for _, frames := range []int{0, 44} {
			x, y := linktest.Pipe()
			seen := &starts{trainer: trainer{narrow: narrow{x, x.MTU()}, trainMTU: x.MTU(), frames: frames}}
			es := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Keys: keys}}, []transport.Link{seen}, []transport.Link{y})
			b := make([]byte, es[0].Headroom()+1000)
			b = b[-uintptr(unsafe.Pointer(&b[0]))%line:]
			to := mcd.To(mcd.Addr{Node: 1, Port: 1})
			if n, err := port(t, es[0], 1).TrySendInPlace(0, to, b); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if at := seen.last % line; at != 0 || seen.last == 0 {
				t.Errorf("keys %t, trains of %d: the packet begins at %d of a cache line", keys != nil, frames, at)
			}
		}
	}
}

// starts notes where in memory the last long packet begins.
type starts struct {
	trainer
	last uintptr
}

func (l *starts) Send(frames []transport.Frame) (int, error) {
	if f := &frames[0]; len(f.Payload) > 900 { // with keys nodes get to know each other meanwhile
		b := f.Payload
		if l.frames == 0 {
			b, _ = f.PutHeaderInPlace()
		}
		l.last = uintptr(unsafe.Pointer(&b[0]))
	}
	return l.trainer.Send(frames)
}
