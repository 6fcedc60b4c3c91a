package control

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Of a peer's probes each newer one counts, and none twice.
func TestHeardTakesEachNewerProbe(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(high, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, low, 10, nil); err != nil {
		t.Fatal(err)
	}
	hear := func(number uint32, choice, want transport.VID) {
		t.Helper()
		body := []byte{adVersion, 3, 0, byte(choice), byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number), 0, 10, 0, 20, 0, 30}
		f.Heard(now, low, 1, body, nil)
		if got, _ := f.VID(low); got != want {
			t.Errorf("probe %d says VID %d: VID %d, want %d", number, choice, got, want)
		}
	}
	hear(5, 20, 20)
	hear(6, 30, 30)
	hear(6, 20, 30)
	hear(5, 10, 30)
	hear(7, 10, 10)
}

// A peer that has begun anew counts, whatever its numbers, and what it has sent before comes too late.
// If the incarnation before goes on, by its numbers, it is the other one that was late.
func TestHeard_FromBeforeThePeerBeganAnew(t *testing.T) {
	f, p := pairOf(t, false)
	begun := f.now
	for _, c := range []struct {
		after       time.Duration
		incarnation uint32
		number      uint32
		choice      transport.VID
		want        transport.VID
	}{
		{0, 7, 5000, 20, 20},
		{time.Second, 8, 3, 10, 10}, // 7 has come to 6000 by now, if it is there
		{2 * time.Second, 7, 5999, 20, 10}, {2 * time.Second, 7, 6000, 20, 10}, {2 * time.Second, 8, 1003, 30, 30},
		{2 * time.Second, 7, 6001, 20, 20}, {3 * time.Second, 8, 2003, 10, 10},
		{4 * time.Second, 9, 1, 30, 30}, {5 * time.Second, 8, 3003, 10, 30},
		{6 * time.Second, 7, 6500, 20, 20}, {6 * time.Second, 9, 2002, 10, 10}, // 7 is not known any more: for one probe
		{6*time.Second + overtakes - 1, 7, 6500, 30, 10}, {6*time.Second + overtakes, 7, 6500, 30, 30}, // numbers may have come round
	} {
		number := c.number
		body := []byte{adVersion, 3, 0, byte(c.choice), byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number), 0, 10, 0, 20, 0, 30}
		f.Heard(begun.Add(c.after), p.mac, c.incarnation, body, nil)
		if got := p.current.vid; got != c.want {
			t.Errorf("%+v: VID %d", c, got)
		}
	}
}

// Numbers of probes go on from the time, so that a peer that is removed and set again in one
// incarnation is heard; and answers to probes of before a link went down do not count.
func TestProbesAreNumberedByTime(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.settling(); got != 150*time.Millisecond {
		t.Errorf("settling takes %v, want three timeouts", got)
	}
	for _, at := range []time.Duration{time.Hour, time.Hour + 1500*time.Millisecond, 48 * time.Hour} {
		if _, err := f.SetPeer(monotime.At(at), high, 10, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := f.peers[high].number, uint32(at.Milliseconds()); got != want {
			t.Errorf("at %v: %d, want %d", at, got, want)
		}
		f.RemovePeer(high)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	var old []byte
	for _, s := range f.Advance(now, nil) {
		if s.Body != nil && s.VID == 10 {
			old = slices.Clone(s.Body)
		}
	}
	if old == nil {
		t.Fatal("no probe")
	}
	f.SetLink(now, false, nil)
	f.SetLink(now, true, nil)
	f.Answered(now, high, 10, old, nil)
	if s := f.peers[high].path(10).state; s != PathDown {
		t.Errorf("an answer to a probe of before the link went down: %v", s)
	}
	now = now.Add(10 * time.Millisecond)
	var answered bool
	f.SetLink(now, false, nil)
	for _, s := range f.SetLink(now, true, nil) {
		if s.Body != nil && s.VID == 10 {
			answered = true
			f.Answered(now, high, 10, slices.Clone(s.Body), nil)
			break
		}
	}
	if s := f.peers[high].path(10).state; !answered || s != PathWaitToRestore {
		t.Errorf("an answer to a probe since: %v, %v", answered, s)
	}
}

// All paths are dead and another one than the pair's comes back: the pair moves to it once it has
// answered for the settling time, at the next probe at the latest, and long before it counts as up.
func TestFirstPathThatComesBackIsUsed(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20, 30}})
	if err != nil {
		t.Fatal(err)
	}
	begin := monotime.At(time.Hour)
	if _, err := f.SetPeer(begin, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	f.SetLink(begin, false, nil)
	now, moved := begin, monotime.Time{}
	for steps := f.SetLink(now, true, nil); now.Sub(begin) < 2*time.Second; steps = f.Advance(now, nil) {
		var answered []FailoverStep
		for _, s := range steps {
			switch {
			case s.Body == nil && s.VID != 20:
				t.Errorf("after %v the pair moves to VID %d", now.Sub(begin), s.VID)
			case s.Body == nil:
				moved = now
			case s.VID == 20:
				answered = append(answered, FailoverStep{Body: slices.Clone(s.Body)})
			}
		}
		for _, s := range answered {
			f.Answered(now, high, 20, s.Body, nil)
		}
		var ok bool
		if now, ok = f.Deadline(); !ok {
			t.Fatal("nothing is due")
		}
	}
	if vid, _ := f.VID(high); vid != 20 || moved.Sub(begin) < f.settling() || moved.Sub(begin) > f.settling()+f.cfg.Probe {
		t.Errorf("VID %d, since %v; want 20 after %v, and at the next probe at the latest", vid, moved.Sub(begin), f.settling())
	}
	if s := f.peers[high].path(20).state; s != PathWaitToRestore {
		t.Errorf("the path is %v already", s)
	}
}

// A path that is dead is probed on: nothing else could tell that it is back.
func TestDeadPathsAreProbed(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	steps, err := f.SetPeer(now, high, 20, nil)
	if err != nil {
		t.Fatal(err)
	}
	end, probes := now.Add(10*time.Second), 0
	for ok := true; ok && now.Before(end); steps = f.Advance(now, nil) {
		var answered [][]byte
		for _, s := range steps {
			switch {
			case s.Body != nil && s.VID == 20:
				answered = append(answered, slices.Clone(s.Body))
			case s.Body != nil && f.peers[high].path(10).state == PathDown:
				probes++
			}
		}
		for _, body := range answered {
			f.Answered(now, high, 20, body, nil)
		}
		now, ok = f.Deadline()
	}
	if s := f.peers[high].path(10).state; s != PathDown || probes < 8 {
		t.Errorf("the path is %v, and was probed %d times in ten seconds; want it down, and about ten", s, probes)
	}
}

// A peer that is removed while its pair waits to move leaves no timer: it would be told of, and
// woken for, for ever.
func TestRemovedPeerLeavesNoTimer(t *testing.T) {
	low, high := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	f, err := NewFailover(low, FailoverConfig{VIDs: []transport.VID{10, 20}})
	if err != nil {
		t.Fatal(err)
	}
	now := monotime.At(time.Hour)
	if _, err := f.SetPeer(now, high, 10, nil); err != nil {
		t.Fatal(err)
	}
	f.SetLink(now, false, nil)
	for _, s := range f.SetLink(now, true, nil) {
		if s.Body != nil && s.VID == 20 {
			f.Answered(now, high, 20, slices.Clone(s.Body), nil) // it has to hold for a while
		}
	}
	if f.peers[high].timer.at == 0 {
		t.Fatal("the pair does not wait")
	}
	f.RemovePeer(high)
	if at, ok := f.Deadline(); ok {
		t.Errorf("something is due at %v", at)
	}
	if steps := f.Advance(monotime.At(1000*time.Hour), nil); len(steps) > 0 {
		t.Errorf("nothing is due, and it does %v", steps)
	}
}

// The first probes of all pairs are spread over the whole time between two: by the sum of the two
// addresses, each at a moment of its own, whatever the addresses begin with.
func TestFirstProbesAreSpread(t *testing.T) {
	const probe = 256 * time.Millisecond
	begin := monotime.At(time.Hour)
	for first := range 3 {
		seen := make(map[time.Duration]bool)
		for b := range 256 {
			f, err := NewFailover(transport.MAC{6}, FailoverConfig{VIDs: []transport.VID{10}, Probe: probe})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.SetPeer(begin, transport.MAC{byte(2 * first), 0, 255, 0, 0, byte(b)}, 10, nil); err != nil {
				t.Fatal(err)
			}
			at, ok := f.Deadline()
			wait := at.Sub(begin)
			if !ok || wait < 0 || wait >= probe || seen[wait] {
				t.Errorf("%d, %d: the first probe after %v, seen already: %v", first, b, wait, seen[wait])
			}
			seen[wait] = true
		}
	}
}

// So are those of the paths of one pair.
func TestFirstProbesOfAPair(t *testing.T) {
	begin := monotime.At(time.Hour)
	f, err := NewFailover(transport.MAC{}, FailoverConfig{VIDs: []transport.VID{10, 20, 30}, Probe: 256 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for last, want := range map[byte][]time.Duration{2: {2, 2 + 37, 2 + 74}, 250: {250, 250 + 37 - 256, 250 + 74 - 256}} {
		mac := transport.MAC{0, 0, 0, 0, 0, last}
		if _, err := f.SetPeer(begin, mac, 10, nil); err != nil {
			t.Fatal(err)
		}
		for i, path := range f.peers[mac].paths {
			if got, want := path.timer.due.Sub(begin), want[i]*time.Millisecond; got != want {
				t.Errorf("%v, VID %d: the first probe after %v, want %v", mac, path.vid, got, want)
			}
		}
	}
}
