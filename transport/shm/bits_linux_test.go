package shm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// Patience is how long what must happen may take.
const Patience = 20 * time.Second

// Folder returns a folder for the segments of a test. A test's own name may be too long for a
// socket's path.
func Folder(t testing.TB) string {
	t.Helper()
	return testbed.SocketDir(t)
}

// SegmentFolder returns the folder in which the links of the tests' segment meet.
func SegmentFolder(dir string) string { return filepath.Join(dir, folderName("test", kernel())) }

// Meetings that come to nothing leave nothing: no bit of the bell, and no memory.
func TestHalf_IsUndone(t *testing.T) {
	dir := Folder(t)
	l, err := Open("test", Config{Dir: dir, MTU: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for range MaxStations + 1 {
		h, err := l.newHalf()
		if err != nil {
			t.Fatal(err)
		}
		l.undo(h)
	}
	if n := len(l.memories.spare); n != 1 {
		t.Errorf("%d mappings are left, want one that is used again", n)
	}
	var all []*half
	for {
		h, err := l.newHalf()
		if err != nil {
			break
		}
		all = append(all, h)
	}
	if len(all) != MaxStations {
		t.Errorf("%d stations have a bit, want %d", len(all), MaxStations)
	}
	for _, h := range all {
		l.undo(h)
	}
}

// Each bit of the bell may be a station's.
func TestStation_OneForEachBit(t *testing.T) {
	if MaxStations != records.Rings {
		t.Errorf("up to %d stations, and the bell has %d bits", MaxStations, records.Rings)
	}
}

// hasBits reports whether a bit of the bell is some station's.
func hasBits(l *Link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bits != [MaxStations]bool{}
}

// HasBits is hasBits, for tests of other processes.
func HasBits(l *Link) bool { return hasBits(l) }

// A station that has gone leaves nothing, once its frames were polled.
func TestStation_IsForgotten(t *testing.T) {
	dir := Folder(t)
	l, err := Open("test", Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	frames := make([]transport.Frame, 4)
	for round := range 5 {
		other, err := Open("test", Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for range 7 {
			if _, err := other.Send([]transport.Frame{{Dst: l.MAC(), Payload: []byte("last")}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		came := 0
		for hasBits(l) {
			if err := l.Wait(ctx); err != nil || ctx.Err() != nil {
				t.Fatalf("round %d: %d frames came, and the station is not forgotten: %v", round, came, err)
			}
			for more := true; more; {
				n, err := l.Poll(frames)
				if err != nil {
					t.Fatal(err)
				}
				came += n
				more = ctx.Err() == nil && (n > 0 || len(l.over) > 0)
			}
		}
		l.memories.mu.Lock()
		n := len(l.memories.spare)
		l.memories.mu.Unlock()
		if came != 7 || n != 3 {
			t.Errorf("round %d: %d frames came, and %d mappings are to be used again; want 7, and 3", round, came, n)
		}
	}
	if n := l.used.Load(); n != 1 {
		t.Errorf("bits up to %d were used, for one station at a time", n)
	}
}

// Close gives all memory back, frames that nobody has polled included.
func TestClose_GivesMemoryBack(t *testing.T) {
	dir := Folder(t)
	var links []*Link
	for range 3 {
		l, err := Open("test", Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	all := []transport.Frame{{Dst: transport.Broadcast, Payload: []byte("nobody polls")}}
	for _, l := range links {
		if _, err := l.Send(all); err != nil {
			t.Fatal(err)
		}
	}
	for k, l := range links {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(l.memories.spare); n != 7 { // its bell, and of each other one a bell and two rings
			t.Errorf("link %d: %d mappings were given back, want 7", k, n)
		}
	}
}

// Memory is retired once, though the Poll that is to forget a station goes on while the link closes.
func TestClose_WhilePollForgets(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(other.Stations()) == 1 })
	if _, err := other.Send([]transport.Frame{{Dst: l.mac}}); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	frames := make([]transport.Frame, 2)
	eventually(t, "the station is not to be forgotten", func() bool { return len(l.over) > 0 || l.pollMemory(frames) < 0 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.giveBack() // of a Poll that was called before
	if n := len(l.memories.spare); n != 4 {
		t.Errorf("%d mappings are to be used again, want 4: a bell, and of the other link a bell and two rings", n)
	}
}

// Close gives all descriptors back: of links that have met, and of one that could not be opened.
func TestClose_GivesDescriptorsBack(t *testing.T) {
	dir := Folder(t)
	list := func() (open []string) {
		t.Helper()
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		for _, f := range files {
			to, _ := os.Readlink("/proc/self/fd/" + f.Name())
			open = append(open, f.Name()+" "+to)
		}
		return open
	}
	var before []string
	for round := range 3 {
		var links []*Link
		for range 3 {
			l, err := Open("test", Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, l)
		}
		if _, err := Open("test", Config{Dir: dir, MAC: links[0].MAC()}); err == nil {
			t.Error("two links have one address")
		}
		for _, l := range links {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if open := list(); round == 0 {
			before = open // with what the runtime has opened by now
		} else if len(open) != len(before) {
			t.Errorf("round %d: open are %q, before: %q", round, open, before)
		}
	}
}

// A link that only sends, and never polls, meets as many stations as come, one after the other.
func TestStation_OfALinkThatNeverPolls(t *testing.T) {
	dir := Folder(t)
	l, err := Open("test", Config{Dir: dir, MTU: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	deadline := time.Now().Add(Patience)
	for round := range 5 {
		other, err := Open("test", Config{Dir: dir, MTU: 64})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		for hasBits(l) { // until the link hears of it
			if time.Now().After(deadline) {
				t.Fatalf("round %d: a station that closed has its bit of the bell still", round)
			}
			runtime.Gosched()
		}
	}
	if n, err := l.Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// A link that never polls meets as many stations as come that leave frames for it: those of the oldest
// are dropped, and counted.
func TestStation_LeavesFramesThatNobodyPolls(t *testing.T) {
	dir := Folder(t)
	l := opened(t, dir, 1)
	const more = 3
	for round := range MaxStations + more {
		other, err := Open("test", Config{Dir: dir, MTU: 64})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("station %d does not meet the link", round), func() bool { return len(other.Stations()) == 1 })
		for _, dst := range []transport.MAC{transport.Broadcast, l.mac, {2, 0, 0, 0, 0, 99}} { // the last is nobody's
			if _, err := other.Send([]transport.Frame{{Dst: dst, Payload: []byte("last")}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it does not hear that a station closed", func() bool { return len(l.Stations()) == 0 })
	}
	eventually(t, "the last one is not left", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.unread) == MaxStations
	})
	if c := l.Counters(); c.RxDropped != 2*more {
		t.Errorf("%+v, want %d dropped", c, 2*more)
	}
	came := 0
	frames := make([]transport.Frame, 64)
	eventually(t, "what the last ones have left does not come", func() bool {
		n, err := l.Poll(frames)
		came += n
		return err != nil || !hasBits(l)
	})
	if came != 2*MaxStations {
		t.Errorf("%d frames came, want %d", came, 2*MaxStations)
	}
}

// A Poll that has found a source just before the link lost its station, and forgot it, leaves it
// alone: its memory is another one's by now.
func TestStation_IsLostWhilePollLooks(t *testing.T) {
	dir := Folder(t)
	l, other := opened(t, dir, 1), opened(t, dir, 2)
	eventually(t, "they do not meet", func() bool { return len(other.Stations()) == 1 })
	s := l.sources[0].Load()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not forgotten", func() bool { return !hasBits(l) })
	l.sources[0].Store(s) // as that Poll sees it
	defer l.sources[0].Store(nil)
	if n := l.takeFrom(0, make([]transport.Frame, 1)); n != 0 || len(l.lent)+len(l.over) > 0 {
		t.Errorf("%d frames, and the next Poll gives back the memory of %d rings, and forgets %d", n, len(l.lent), len(l.over))
	}
}

// One link at a time opens or closes on a segment. The lock of a process that has gone is free, and
// one on a folder that was removed meanwhile is none.
func TestFolder_Lock(t *testing.T) {
	dir := Folder(t)
	f, unlock, err := openFolder(dir, folderName("test", kernel()), lockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := f.tryLock(); second != nil || err != nil {
		t.Errorf("the lock is held twice, or %v", err)
	}
	f.remove()
	unlock()
	second, err := f.tryLock()
	if second == nil || err != nil {
		t.Fatalf("the lock is not free: %v", err)
	}
	second()
	f.remove()
	if _, err := os.Lstat(f.path); !os.IsNotExist(err) {
		t.Errorf("an empty folder stays: %v", err)
	}
	if third, err := f.tryLock(); third != nil || err != nil {
		t.Errorf("a lock of a folder that is not there, or %v", err)
	}
}

// The last link of a segment may remove its folder while another one opens, which starts again.
func TestFolder_IsRemovedMeanwhile(t *testing.T) {
	if err := checkFolder(filepath.Join(Folder(t), "gone")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A file in a segment's folder is a link's if its name is the one that the link's socket has, and no
// other one.
func TestFolder_Owner(t *testing.T) {
	mac := transport.MAC{2, 0xab, 0, 0, 0, 0x42}
	if got, ok := owner(filepath.Base(folder{"test"}.socket(mac))); got != mac || !ok {
		t.Errorf("%v, %v; want %v", got, ok, mac)
	}
	for _, name := range []string{"", lockName, "02ab00000", "02ab000000", "02ab0000004200", "02AB00000042", "02ab0000004g"} {
		if got, ok := owner(name); ok {
			t.Errorf("%s: %v's", name, got)
		}
	}
}

// A ring has as much data as the MTU needs, or the next power of two that is no less than what was
// asked for.
func TestConfig_RingBytes(t *testing.T) {
	for _, c := range []struct{ mtu, asked, want int }{
		{0, 0, 512 << 10}, {64, 0, 128 << 10}, {64, 1, 128 << 10}, {64, 128 << 10, 128 << 10}, {64, 128<<10 + 1, 256 << 10},
		{64, 1 << 20, 1 << 20}, {0, 1, 512 << 10}, {64, MaxRingBytes, MaxRingBytes}, {MaxMTU, 1, 4 << 20},
	} {
		cfg := Config{MTU: c.mtu, RingBytes: c.asked}
		if err := cfg.validate("test"); err != nil || cfg.RingBytes != c.want {
			t.Errorf("MTU %d, %d asked for: %d bytes, %v; want %d", c.mtu, c.asked, cfg.RingBytes, err, c.want)
		}
	}
}

// A link that stands alone takes frames of 9,000 bytes, as NICs with jumbo frames do, unless another
// MTU is asked for.
func TestConfig_MTU(t *testing.T) {
	for asked, want := range map[int]int{0: 9000, 1: 1, 1500: 1500, 65535: 65535} {
		cfg := Config{MTU: asked}
		if err := cfg.validate("test"); err != nil || cfg.MTU != want {
			t.Errorf("MTU %d: %d, %v; want %d", asked, cfg.MTU, err, want)
		}
	}
}

// An address by chance is one station's, locally administered, and another one each time.
func TestConfig_MACByChance(t *testing.T) {
	seen := map[transport.MAC]bool{}
	for range 100 {
		var cfg Config
		if err := cfg.validate("test"); err != nil || cfg.MAC.IsMulticast() || !cfg.MAC.IsLocal() || seen[cfg.MAC] {
			t.Fatalf("%v, %v; there were %d others", cfg.MAC, err, len(seen))
		}
		seen[cfg.MAC] = true
	}
}

// The address of a node is a station's, the same each time, and of that node alone.
func TestNodeMAC(t *testing.T) {
	seen := map[transport.MAC]string{}
	for _, segment := range []string{"a", "a.1", "b"} {
		for cluster := range uint32(3) {
			for node := range 100 {
				m, what := nodeMAC(segment, cluster, node), fmt.Sprintf("node %d of cluster %d on %s", node, cluster, segment)
				if m.IsMulticast() || !m.IsLocal() || m != nodeMAC(segment, cluster, node) {
					t.Errorf("%v is no address for %s", m, what)
				}
				if other := seen[m]; other != "" {
					t.Errorf("%v is %s and %s", m, other, what)
				}
				seen[m] = what
			}
		}
	}
}
