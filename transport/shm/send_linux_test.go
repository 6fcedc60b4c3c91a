package shm

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// A sender wakes who sleeps once a sleep, however many frames it sends meanwhile, and not who is
// awake.
func TestSend_WakesOnceASleep(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	wakeups := func() uint64 { // since the last call
		var n [8]byte
		if err := b.event.conn.Control(func(fd uintptr) { _, _ = unix.Read(int(fd), n[:]) }); err != nil {
			t.Fatal(err)
		}
		return binary.NativeEndian.Uint64(n[:]) // 0 if there is nothing to be read
	}
	wakeups()
	f := []transport.Frame{{Dst: b.MAC(), Payload: []byte("wake up")}}
	send := func() {
		t.Helper()
		for range 5 {
			if n, err := a.Send(f); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	for round := range 3 {
		b.sleep()
		b.awake()
		if send(); wakeups() != 0 {
			t.Errorf("round %d: one that is awake is woken", round)
		}
		b.sleep()
		send()
		send()
		if n := wakeups(); n != 1 {
			t.Errorf("round %d: woken %d times in one sleep", round, n)
		}
	}
}

// Frames for a station that reads no more, and whose end is not noticed yet, are lost: nobody waits
// for room in its ring.
func TestSend_NobodyReads(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	f := []transport.Frame{{Dst: b.MAC(), Payload: make([]byte, 64)}}
	for {
		if _, err := a.Send(f); errors.Is(err, transport.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	b.sources[0].Load().reader.Close()
	if n, err := a.Send(f); n != 1 || err != nil {
		t.Errorf("%d, %v, want that it is lost", n, err)
	}
}

// A Send that has found a station just before the link lost it writes nothing to it: the memory is
// another one's by now. A link with a wire sends what it is not rid of there.
func TestSend_StationIsLost(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	s := a.stations.Load().all[0]
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end is not noticed", s.source.dead.Load)
	a.txMu.Lock()
	defer a.txMu.Unlock()
	if got := a.put(s, &transport.Frame{Dst: b.MAC(), Payload: make([]byte, 64)}); got != records.Broken {
		t.Errorf("%v, want that it will not take it", got)
	}
	a.show(s)
}

// What was dropped for want of room in a ring is counted on when its station has gone.
func TestCounters_OfAStationThatClosed(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	f := []transport.Frame{{Dst: a.MAC(), Payload: make([]byte, 64)}}
	for {
		if _, err := b.Send(f); errors.Is(err, transport.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f[0].Dst = transport.Broadcast
	for range 3 {
		if n, err := b.Send(f); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Frame, 64)
	eventually(t, "it is not forgotten", func() bool {
		_, err := a.Poll(in)
		return err != nil || !hasBits(a)
	})
	if n := a.Counters().RxDropped; n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
}

// A station that has not read its full ring for a second counts as stopped: what is for it is
// dropped, and nothing that others are sent waits for it. Once it reads it gets what comes.
func TestSend_ToOneThatIsStopped(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	f := []transport.Frame{{Dst: b.MAC(), Payload: make([]byte, 64)}}
	sent := 0
	for ; ; sent++ {
		if _, err := a.Send(f); errors.Is(err, transport.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	s := a.stations.Load().byMAC[b.MAC()]
	s.still.since = stopsAfter - 1
	s.still.last = s.still.last.Add(-time.Hour)
	for range 3 {
		if n, err := a.Send(f); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	in := make([]transport.Frame, 64)
	for came := 0; came < sent; {
		n, err := b.Poll(in)
		if err != nil {
			t.Fatal(err)
		}
		came += n
	}
	if n := b.Counters().RxDropped; n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
	if n, err := b.Poll(in); n != 0 || err != nil { // gives the last ones back
		t.Fatal(n, err)
	}
	n, err := 0, error(nil)
	for ; err == nil; n++ {
		_, err = a.Send(f)
	}
	if !errors.Is(err, transport.ErrBusy) || n < sent/2 {
		t.Errorf("after it has read: %v for frame %d", err, n)
	}
}

// full is a wire that has no room.
type full struct {
	transport.Link
	now bool
}

func (f *full) Send(frames []transport.Frame) (int, error) {
	if f.now {
		return 0, transport.ErrBusy
	}
	return f.Link.Send(frames)
}

// A wire that has had no room for a second keeps no multicast from the stations of this host, until it
// takes a frame; what is for it alone waits.
func TestSend_AWireThatTakesNothing(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	links, err := fabric.Links(1)
	if err != nil {
		t.Fatal(err)
	}
	wire := &full{links[0], true}
	a.wire = newWire(wire)
	defer func() { a.wire = nil }()
	all, far := []transport.Frame{{Dst: transport.Broadcast}}, []transport.Frame{{Dst: transport.MAC{2, 9}}}
	busy := func(frames []transport.Frame) {
		t.Helper()
		if n, err := a.Send(frames); n != 0 || !errors.Is(err, transport.ErrBusy) {
			t.Errorf("%d, %v; want ErrBusy", n, err)
		}
	}
	taken := func(frames []transport.Frame) {
		t.Helper()
		if n, err := a.Send(frames); n != len(frames) || err != nil {
			t.Errorf("%d, %v; want all taken", n, err)
		}
	}
	second := func() {
		a.wire.still.since = stopsAfter - 1
		a.wire.still.last = a.wire.still.last.Add(-time.Hour)
	}
	busy(all)
	busy(all)
	second()
	taken(all)
	taken(all)
	busy(far)
	wire.now = false
	taken(far)
	wire.now = true
	busy(all)
	second()
	taken(all)
	if n, err := b.Poll(make([]transport.Frame, 8)); n != 3 || err != nil {
		t.Errorf("%d multicasts came, %v; want those 3 that were taken", n, err)
	}
}

// Refusals count as a stop if nothing is read for a second, and only the time in which the sender
// tries: it may have been stopped, too.
func TestStill(t *testing.T) {
	now := time.Now()
	var s still
	for _, c := range []struct {
		name  string
		read  uint64
		after time.Duration
		times int
		want  bool
	}{
		{"the first", 8, 0, 1, false},
		{"an hour later", 8, time.Hour, 1, false},
		{"for less than a second", 8, stillStep, 18, false},
		{"for a second", 8, stillStep, 1, true},
		{"and longer", 8, 1, 3, true},
		{"it has read", 16, stillStep, 20, false},
		{"for a second again", 16, stillStep, 1, true},
	} {
		got := false
		for range c.times {
			now = now.Add(c.after)
			got = s.refused(c.read, now)
		}
		if got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A receiver that gives memory back ends the sender's Wait if the sender was refused, and else not.
func TestPoll_TellsOfRoom(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	f := []transport.Frame{{Dst: b.MAC(), Payload: make([]byte, 64)}}
	in := make([]transport.Frame, 16)
	for _, refused := range []bool{false, true, false} {
		var sent, n int
		var err error
		for err == nil && (refused || sent == 0) {
			n, err = a.Send(f)
			sent += n
		}
		if errors.Is(err, transport.ErrBusy) != refused {
			t.Fatalf("%d frames were sent: %v", sent, err)
		}
		if n, err := a.Poll(in); n != 0 || err != nil || a.pending() {
			t.Fatalf("%d frames for the sender, %v, and its Wait would end: %v", n, err, a.pending())
		}
		for came := 0; came < sent; came += n {
			if n, err = b.Poll(in); n == 0 || err != nil {
				t.Fatalf("%d of %d frames came: %v", came, sent, err)
			}
		}
		if n, err := b.Poll(in); n != 0 || err != nil { // gives the last ones back
			t.Fatal(n, err)
		}
		if a.pending() != refused {
			t.Errorf("refused: %v, and the sender's Wait would end: %v", refused, a.pending())
		}
	}
}

// A Poll takes half of what a ring holds, at most. What is left ends the next Wait, and comes then.
func TestPoll_TakesHalf(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	f := []transport.Frame{{Dst: b.MAC(), Payload: make([]byte, 64)}}
	sent := 0
	for {
		n, err := a.Send(f)
		if sent += n; errors.Is(err, transport.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	in := make([]transport.Frame, sent+1)
	for came := 0; came < sent; {
		if !b.pending() {
			t.Fatalf("%d of %d frames came, and a Wait would go on", came, sent)
		}
		n, err := b.Poll(in)
		if n == 0 || n == sent || err != nil {
			t.Fatalf("%d of %d frames came, and then %d, %v", came, sent, n, err)
		}
		came += n
	}
}

// Of a long train of frames the receiver sees each 16 KiB, while more is written.
func TestSend_ShowsSomeEarly(t *testing.T) {
	dir := Folder(t)
	a, b := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(a.Stations()) == 1 && len(b.Stations()) == 1 })
	a.txMu.Lock() // as Send does, which shows the rest at its end
	defer a.txMu.Unlock()
	to, frames := a.stations.Load().all[0], make([]transport.Frame, 1)
	const record = 24 + 64 // bytes, with its head
	for range 2 {
		if n, err := b.Poll(frames); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		written := 0
		for ; !b.pending(); written++ {
			if a.put(to, &transport.Frame{Dst: b.MAC(), Payload: make([]byte, 64)}) != records.Done {
				t.Fatalf("there is room for %d frames, and none was shown", written)
			}
		}
		if want := 16<<10/record + 1; written != want {
			t.Errorf("%d frames are shown, want %d", written, want)
		}
		for came := range written {
			if n, err := b.Poll(frames); n != 1 || err != nil {
				t.Fatalf("after %d of %d frames: %d, %v", came, written, n, err)
			}
		}
	}
}
