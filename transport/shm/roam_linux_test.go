package shm_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
)

// notes is a wire that hands out what the test says, and notes the origins of authentic frames.
type notes struct {
	transport.Link
	next  []transport.Frame
	calls []uint32
}

func (n *notes) Authenticates(int)                          {}
func (n *notes) Roamed() bool                               { return false }
func (n *notes) Departure(*transport.Frame) transport.Place { return transport.Place{} }
func (n *notes) CameFrom(*transport.Frame) transport.Place  { return transport.Place{} }
func (n *notes) Answered(*transport.Frame, bool) bool       { return true }
func (n *notes) Introduced([]byte)                          {}
func (n *notes) Requests() []transport.Request              { return nil }

func (n *notes) Authentic(f *transport.Frame) {
	if f.Origin != 0 {
		n.calls = append(n.calls, f.Origin)
	}
}

func (n *notes) Poll(frames []transport.Frame) (int, error) {
	came := copy(frames, n.next)
	n.next = n.next[came:]
	return came, nil
}

// Of a broadcast of a station of this host memory's copy is handed out. Once that is authentic, the
// wire is told that the first copy that it has had is, too, whichever came first; and of no other.
func TestRoam_TheOtherCopy(t *testing.T) {
	const memory, authentic = -1, -2 // else: the wire's copy, from there
	for name, c := range map[string]struct {
		steps []int
		want  []uint32
	}{
		"memory, authentic, wire":       {[]int{memory, authentic, 7}, []uint32{7}},
		"wire, memory, authentic":       {[]int{7, memory, authentic}, []uint32{7}},
		"memory, wire, authentic":       {[]int{memory, 7, authentic}, []uint32{7}},
		"then sent again by a stranger": {[]int{memory, authentic, 7, 8}, []uint32{7}},
		"and before it is authentic":    {[]int{memory, 7, 8, authentic}, []uint32{7}},
		"and both":                      {[]int{7, memory, 8, authentic, 9}, []uint32{7}},
		"never authentic":               {[]int{memory, 7, 8}, nil},
		"the wire knows where it is":    {[]int{memory, authentic, 0, 8}, []uint32{8}},
		"another one's bytes":           {[]int{memory, authentic, 1007}, nil},
		"and before":                    {[]int{1007, memory, authentic, 7}, []uint32{7}},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := wires(t, 2), shm.Folder(t)
			wire := &notes{Link: w[0]}
			a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
			roamer, _ := transport.As[transport.Roamer](a)
			roamer.Authenticates(0)
			all := transport.Frame{Dst: transport.Broadcast, Src: b.MAC(), Payload: []byte("to all")}
			var got [4]transport.Frame
			var came transport.Frame
			for _, step := range c.steps {
				switch step {
				case memory:
					if n, err := b.Send([]transport.Frame{all}); n != 1 || err != nil {
						t.Fatal(n, err)
					}
				case authentic:
					roamer.Authentic(&came)
					continue
				default:
					f := all
					if f.Origin = uint32(step); step > 1000 {
						f.Payload = []byte("to alL")
					}
					wire.next = []transport.Frame{f}
				}
				n, err := a.Poll(got[:])
				if want := min(1, max(0, -step)); n != want || err != nil {
					t.Fatalf("step %d: %d frames, %v; want %d", step, n, err, want)
				}
				if n == 1 {
					came = got[0]
					came.Payload = slices.Clone(came.Payload)
				}
			}
			if !slices.Equal(wire.calls, c.want) {
				t.Errorf("the wire is told of the frames from %d, want %d", wire.calls, c.want)
			}
		})
	}
}

// Where nobody authenticates frames, and of what is for a group, the wire is told nothing.
func TestRoam_OfBroadcastsAlone(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &notes{Link: w[0]}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	roamer, _ := transport.As[transport.Roamer](a)
	group := transport.MAC{3, 0, 0, 0, 0, 1}
	if err := a.Join(group); err != nil {
		t.Fatal(err)
	}
	for _, dst := range []transport.MAC{transport.Broadcast, group} {
		if dst == group {
			roamer.Authenticates(0)
		}
		f := transport.Frame{Dst: dst, Src: b.MAC(), Payload: []byte("one"), Origin: 7}
		if n, err := b.Send([]transport.Frame{f}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wire.next = []transport.Frame{f}
		var got [2]transport.Frame
		if n, err := a.Poll(got[:]); n != 1 || err != nil || got[0].Origin != 0 {
			t.Fatalf("%d frames, %v, the first from %d", n, err, got[0].Origin)
		}
		roamer.Authentic(&got[0])
		if wire.calls != nil {
			t.Errorf("to %v: the wire is told of the frames from %d", dst, wire.calls)
		}
	}
}

// Where frames are authenticated, a seed introduces the station with which it shares memory to those
// of other hosts, which know the seed alone.
func TestRoam_TheSeedsNeighbourIsIntroduced(t *testing.T) {
	dir, seeds := shm.Folder(t), []string(nil)
	on := func(n int) *udp.Link {
		l, err := udp.Open("127.0.0.1:0", udp.Config{MAC: mac(n), Seeds: seeds, EtherType: transport.EtherTypeAny})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	first := on(1)
	seeds = []string{first.Addr().String()}
	seed, near, far := open(t, shm.Config{Dir: dir, Wire: first}), open(t, shm.Config{Dir: dir, Wire: on(2)}), on(3)
	all := []transport.Link{seed, near, far}
	for _, l := range all {
		roamer, _ := transport.As[transport.Roamer](l)
		roamer.Authenticates(0)
	}
	met := map[transport.MAC]bool{} // the far one and the near one have heard each other, alone
	for end := time.Now().Add(patience); len(met) < 2; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("of the far one, %v, and the near one, %v, heard the other: %v", far.MAC(), near.MAC(), met)
		}
		for _, l := range all {
			for _, dst := range []transport.MAC{transport.Broadcast, near.MAC(), far.MAC()} {
				if dst != l.MAC() {
					_, _ = l.Send([]transport.Frame{saying(dst, "hello "+l.MAC().String()+time.Now().String())})
				}
			}
		}
		for _, l := range all {
			frames := make([]transport.Frame, 64)
			n, err := l.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			for i := range frames[:n] {
				f := &frames[i]
				authenticates(l, f)
				if f.Dst == l.MAC() && (f.Src == near.MAC() || f.Src == far.MAC()) && l != transport.Link(seed) {
					met[l.MAC()] = true
				}
			}
		}
	}
}

func saying(to transport.MAC, text string) transport.Frame {
	return transport.Frame{Dst: to, Payload: []byte(text)}
}

// authenticates does for a link what package mcd does with keys, where all frames are authentic: "where"
// asks a station where it is, "here" is its answer, with the place that this leaves, and "told" an
// introduction.
func authenticates(l transport.Link, f *transport.Frame) {
	roamer, _ := transport.As[transport.Roamer](l)
	roamer.Authentic(f)
	what, rest, _ := strings.Cut(string(f.Payload), " ")
	switch what {
	case "where":
		answer := saying(f.Src, "here ")
		answer.Answers = f
		at := roamer.Departure(&answer)
		answer.Payload = append(answer.Payload, at[:]...)
		_, _ = l.Send([]transport.Frame{answer})
	case "here":
		at := roamer.CameFrom(f)
		roamer.Answered(f, at != transport.Place{} && rest == string(at[:]))
	case "told":
		roamer.Introduced([]byte(rest))
	}
	for _, r := range roamer.Requests() {
		if r.Introduction != nil {
			_, _ = l.Send([]transport.Frame{saying(r.To, "told "+string(r.Introduction))})
			continue
		}
		asks := saying(r.To, "where ")
		asks.Answers = &transport.Frame{Src: r.To, Origin: r.Origin}
		_, _ = l.Send([]transport.Frame{asks})
	}
}
