package memfifo_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// loggedLink notes the lengths of the frames that it is given, of each call apart.
type loggedLink struct {
	trainsLink
	peer   transport.Link
	ack    []byte // the message of an acknowledgement that the peer has sent
	mu     sync.Mutex
	calls  [][]int
	pieces int // of memory, in calls of several frames
}

func (l *loggedLink) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	var call []int
	var end uintptr // of the frame before
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range frames[:n] {
		call = append(call, len(f.Payload))
		at := uintptr(unsafe.Pointer(&f.Payload[0]))
		if n > 1 && at != end {
			l.pieces++
		}
		end = at + uintptr(len(f.Payload))
	}
	l.calls = append(l.calls, call)
	return n, err
}

// take returns the calls since the last take.
func (l *loggedLink) take() (calls [][]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls, l.calls = l.calls, nil
	return calls
}

// onTrains is piped with links that send trains, and after the handshake; the first node's notes
// what it is given.
func onTrains(t *testing.T) (link *loggedLink, eps [2]*mcd.Endpoint, d [2]*memfifo.Domain) {
	t.Helper()
	x, y := linktest.Pipe()
	link = &loggedLink{trainsLink: trainsLink{x}, peer: y}
	cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}
	eps = [2]*mcd.Endpoint(mcdtest.OpenLinks(t, cfg, []transport.Link{link}, []transport.Link{trainsLink{y}}))
	for k, e := range eps {
		var err error
		d[k], err = memfifo.Open(e, memfifo.Config{})
		must(t, err)
	}
	w, err := d[1].Register(9, make([]byte, 8), memfifo.All)
	must(t, err)
	must(t, d[0].Remote(w.Key()).Signal(t.Context()))
	settle(eps)
	link.take()
	return link, eps, d
}

// Poll keeps what was received last.
func (l *loggedLink) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	for _, f := range frames[:n] {
		l.ack = append(l.ack[:0], f.Payload...)
	}
	return n, err
}

// A stream of puts fills frames, one put's end and the next one's beginning, so that trains are
// whole: a frame that is not full would end its train.
func TestTrains_PutsFillFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, eps, d := onTrains(t)
		w, err := d[1].Register(1, make([]byte, 1<<16), memfifo.All)
		must(t, err)
		r := d[0].Remote(w.Key())
		const puts = 60 // they fit the window: no caller waits
		for i := range puts {
			must(t, r.Put(t.Context(), 0, make([]byte, 3500+53*i)))
		}
		settle(eps)
		settle(eps)
		full, short := 0, 0
		for _, call := range link.take() {
			if len(call) > link.TrainFrames() {
				t.Errorf("%d frames in one call, want %d at most", len(call), link.TrainFrames())
			}
			for _, n := range call {
				switch {
				case n == link.TrainMTU():
					full++
				case n > link.TrainMTU():
					t.Errorf("a frame of %d bytes, want %d at most", n, link.TrainMTU())
				case n > 100:
					short++
				}
			}
		}
		if full < puts*3 || short > puts/10 { // without the rule 19 are not full
			t.Errorf("%d frames are full and %d are not, of %d puts", full, short, puts)
		}
		if link.pieces > full/8 { // blocks of 16 frames, and where a call begins
			t.Errorf("%d full frames lie in %d pieces", full, link.pieces)
		}
	})
}

// A put that ends with less than a train leaves that to the next one.
func TestTrains_PutsLeaveWhatIsLessThanATrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, eps, d := onTrains(t)
		w, err := d[1].Register(1, make([]byte, 1<<16), memfifo.All)
		must(t, err)
		r := d[0].Remote(w.Key())
		put := func() error { return r.Put(t.Context(), 0, make([]byte, 1<<16)) }
		for range 50 { // until the congestion window is wide
			must(t, while(eps, put))
		}
		settle(eps)
		settle(eps) // the acknowledgement that the last poll has sent
		link.take()
		must(t, put())
		var sent []int
		for _, call := range link.take() {
			sent = append(sent, len(call))
		}
		if most := link.TrainFrames(); !slices.Equal(sent, []int{most}) { // of 45 and what is not a full frame
			t.Errorf("calls of %d frames, want one of %d", sent, most)
		}
	})
}

// corkOne has a put that waits in its frame, with others in flight.
func corkOne(t *testing.T, link *loggedLink, r *memfifo.Remote) {
	t.Helper()
	for sent := 1; sent > 0; sent = len(link.take()) {
		link.take()
		must(t, r.Put(t.Context(), 0, make([]byte, 64)))
	}
}

// What waits for more to go with it is sent by who waits for its effect, and not because a message
// comes while its caller goes on.
func TestTrains_WhoLetsFramesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, eps, d := onTrains(t)
		w, err := d[1].Register(1, make([]byte, 1<<16), memfifo.All)
		must(t, err)
		own, err := d[0].Register(1, make([]byte, 8), memfifo.All)
		must(t, err)
		r, back := d[0].Remote(w.Key()), d[1].Remote(own.Key())
		must(t, back.Signal(t.Context()))
		settle(eps)
		settle(eps) // the acknowledgement that the last poll has sent
		corkOne(t, link, r)
		before := d[0].Counters().Sent
		old := transport.Frame{Dst: link.MAC(), EtherType: transport.EtherTypeDefault, Payload: link.ack}
		for range 2 { // an old acknowledgement changes nothing
			_, err := link.peer.Send([]transport.Frame{old})
			must(t, err)
			for eps[0].Progress() {
			}
		}
		must(t, back.Signal(t.Context()))
		for eps[0].Progress() {
		}
		_, err = link.peer.Send([]transport.Frame{old})
		must(t, err)
		for eps[0].Progress() {
		}
		if n := d[0].Counters().Sent - before; n > 0 {
			t.Errorf("what comes lets %d frames go that their caller goes on with", n)
		}
		soon, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = own.Wait(soon, 1000)
		if n := d[0].Counters().Sent - before; n != 1 {
			t.Errorf("a wait lets %d frames go, want the one that is not full", n)
		}
	})
}

// A handler's answer goes behind the batch that has brought the question, also in a frame that its
// own node's callers go on with; and that once.
func TestTrains_AHandlersAnswerGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, eps, d := onTrains(t)
		answers := 0
		count := func(memfifo.Sender, []byte) { answers++ }
		asker, err := d[1].Handle(5, memfifo.HandlerConfig{Record: count, Public: true})
		must(t, err)
		answer := func(from memfifo.Sender, rec []byte) {
			if string(rec) != "none" {
				must(t, from.Post(asker.Key().ID, asker.Key().Secret, rec))
			}
		}
		_, err = d[0].Handle(5, memfifo.HandlerConfig{Record: answer, Public: true})
		must(t, err)
		ask := d[1].Remote(memfifo.PublicKey(0, 5))
		w, err := d[1].Register(1, make([]byte, 1<<16), memfifo.All)
		must(t, err)
		r := d[0].Remote(w.Key())
		for i, question := range []string{"first", "second", "none", "third"} {
			settle(eps)
			settle(eps) // the acknowledgement that the last poll has sent
			corkOne(t, link, r)
			before := d[0].Counters().Sent
			must(t, ask.Push(t.Context(), []byte(question)))
			for eps[0].Progress() {
			}
			if sent := d[0].Counters().Sent - before; (sent == 1) != (question != "none") {
				t.Errorf("question %d, %q: %d frames are sent behind it", i, question, sent)
			}
		}
		settle(eps)
		if answers != 3 {
			t.Errorf("%d answers, want 3", answers)
		}
	})
}
