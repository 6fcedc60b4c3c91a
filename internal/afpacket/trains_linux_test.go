package afpacket

import (
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/transport"
)

// The filter of a link that receives trains passes those of its EtherType, and nothing else of IPv4.
func TestFilter_Trains(t *testing.T) {
	self, other := transport.MAC{2, 0, 0, 0, 0, 2}, transport.MAC{2, 0, 0, 0, 1, 2}
	set := func(at int, to ...byte) []byte {
		b := train(trainFrames, ours, make([]byte, 20))
		copy(b[at:], to)
		return b
	}
	plain := transport.Frame{Dst: self, EtherType: ours, Payload: make([]byte, 46)}
	for _, c := range []struct {
		name          string
		bytes         []byte
		trains, plain bool // taken by a link that receives trains, and by one that does not
	}{
		{"a train", set(0), true, false},
		{"a train for another station", set(0, other[:]...), false, false},
		{"a train of another EtherType", set(37, 0xb6), false, false},
		{"from another address", set(29, 9), false, false},
		{"with IP options", set(14, 0x46), false, false},
		{"a frame", plain.AppendTo(nil), true, true},
		{"IPv6", set(12, 0x86, 0xdd), false, false},
		{"a short one", set(0)[:20], false, false},
	} {
		for _, trains := range []bool{true, false} {
			raw, err := newFilter(ours, self, false, trains)
			if err != nil {
				t.Fatal(err)
			}
			program, _ := bpf.Disassemble(raw)
			vm, err := bpf.NewVM(program)
			if err != nil {
				t.Fatal(err)
			}
			want := c.plain
			if trains {
				want = c.trains
			}
			if n, err := vm.Run(c.bytes); err != nil || (n > 0) != want {
				t.Errorf("%s, trains %v: %d, %v", c.name, trains, n, err)
			}
		}
	}
}

// sockets makes a sender whose frames arrive at one socket, and trains at another.
func sockets(t *testing.T, plainKind, trainKind int) (s *sender, plain, trained int) {
	t.Helper()
	pair := func(kind int) (ours, theirs int) {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fds[1]) })
		return fds[0], fds[1]
	}
	s = &sender{ifi: &Interface{MTU: 1500, MAC: transport.MAC{2, 0, 0, 0, 0, 9}}}
	for i := range s.bufs {
		s.bufs[i] = make([]byte, 2000)
		s.msgs[i].Hdr.Iov = &s.vec[i]
		s.msgs[i].Hdr.SetIovlen(1)
	}
	s.fd, plain = pair(plainKind)
	s.trains = &trains{
		ifi: s.ifi, etherType: ours, sendsOne: true, receiveOne: true,
		stations: newStations(func() uint64 { return 4 }), answers: tokenbucket.New(answerRate, answerBurst),
	}
	s.trains.msg.Iov = &s.trains.vec[0]
	s.trains.fd, trained = pair(trainKind)
	t.Cleanup(func() { _ = s.close() })
	return s, plain, trained
}

// proven makes a station one that takes trains.
func proven(s *sender, mac transport.MAC, ordered bool) {
	key := stationKey{mac, -1}
	far := monotime.At(100 * 365 * 24 * time.Hour) // no instant of this process is later
	s.trains.stations.byKey[key] = &station{key: key, proven: far, offered: far, ordered: ordered}
	s.trains.unordered = !ordered
}

// packets reads what has come.
func packets(fd int) (n int) {
	b := make([]byte, 1<<16)
	for {
		if _, err := unix.Read(fd, b); err != nil {
			return n
		}
		n++
	}
}

// From the first train on frames that go singly take the queueing discipline, too: past it they would
// overtake trains that wait there.
func TestSender_TrainsTakeTheQdisc(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	for _, c := range []struct {
		noQueue       bool
		before, after int
	}{{false, 1, 0}, {true, 1, 1}} {
		var s sender
		err := bed.Node(0).Do(func() error {
			ifi, err := FindInterface("eth0")
			if err != nil {
				return err
			}
			ifi.Driver = Driver{TxQueues: 1, RxQueues: 1, NoQueue: c.noQueue, Fifo: true}
			return s.open(ifi, Config{EtherType: ours, BypassQdisc: true, Trains: true})
		})
		if err != nil {
			t.Fatal(err)
		}
		bypass := func() int {
			n, err := unix.GetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		proven(&s, testbed.MAC(1, 0), true)
		f := transport.Frame{Dst: testbed.MAC(1, 0), EtherType: ours, Payload: make([]byte, 100)}
		send := func(frames ...transport.Frame) int {
			if _, err := s.send(frames); err != nil {
				t.Fatal(err)
			}
			return bypass()
		}
		if before, after := send(f), send(f, f, f, f); before != c.before || after != c.after {
			t.Errorf("no queue %v: PACKET_QDISC_BYPASS is %d, after a train %d; want %d and %d", c.noQueue, before, after, c.before, c.after)
		}
		_ = s.close()
	}
}

// Frames of one Send go by the way of each, and in order.
func TestSender_TrainsAndPlainFrames(t *testing.T) {
	frames := func(to transport.MAC, lengths ...int) (fs []transport.Frame) {
		for _, n := range lengths {
			fs = append(fs, transport.Frame{Dst: to, EtherType: ours, Payload: make([]byte, n)})
		}
		return fs
	}
	join := func(all ...[]transport.Frame) (fs []transport.Frame) {
		for _, f := range all {
			fs = append(fs, f...)
		}
		return fs
	}
	old := stationB // it is offered trains, and never answers
	for _, c := range []struct {
		name           string
		frames         []transport.Frame
		plain, trained int // packets; unordered: where a single frame keeps its place behind a header
		unordered      [2]int
	}{
		{"one", frames(stationA, 100), 1, 0, [2]int{0, 1}},
		{"three", frames(stationA, 100, 100, 100), 3, 0, [2]int{0, 3}},
		{"four", frames(stationA, 100, 100, 100, 100), 0, 1, [2]int{0, 1}},
		{"growing", frames(stationA, 1, 2, 3), 3, 0, [2]int{0, 3}},
		{"too long for the headers", frames(stationA, 1473, 1473), 2, 0, [2]int{2, 0}},
		{"a train between two", frames(stationA, 1, 2, 2, 2, 2, 3), 2, 1, [2]int{0, 3}},
		{"to an old host", frames(old, 10, 10, 10, 10), 4, 1, [2]int{4, 1}},
		{"to both", join(frames(old, 10, 10, 10, 10), frames(stationA, 10, 10, 10, 10), frames(old, 10, 10)), 6, 2, [2]int{6, 2}},
		{"to all", frames(transport.Broadcast, 10, 10, 10, 10), 4, 0, [2]int{4, 0}},
		{"more than a batch", frames(stationA, make([]int, Batch+5)...), Batch + 5, 0, [2]int{Batch + 5, 0}},
	} {
		for _, ordered := range []bool{true, false} {
			s, plain, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
			proven(s, stationA, ordered)
			wantPlain, wantTrained := c.plain, c.trained
			if !ordered {
				wantPlain, wantTrained = c.unordered[0], c.unordered[1]
			}
			n, err := s.send(c.frames)
			if n != len(c.frames) || err != nil {
				t.Errorf("%s: %d, %v", c.name, n, err)
			}
			if p, q := packets(plain), packets(trained); p != wantPlain || q != wantTrained {
				t.Errorf("%s, ordered %v: %d packets and %d trains, want %d and %d", c.name, ordered, p, q, wantPlain, wantTrained)
			}
			offers := 0 // the old host is offered trains once
			for _, f := range c.frames {
				if f.Dst == old {
					offers = 1
				}
			}
			if n := s.trains.count.Load(); int(n) != wantTrained-offers {
				t.Errorf("%s: %d trains counted, want %d", c.name, n, wantTrained-offers)
			}
			var counters transport.Counters
			if s.count(&counters); counters.TxFrames != uint64(n) {
				t.Errorf("%s: %d frames counted, want %d", c.name, counters.TxFrames, n)
			}
		}
	}
}

// A stream of frames that go alone behind a train's headers renews what it rests on: else they would
// go without, and overtake each other, until the next train.
func TestSender_FramesAloneRenewTheOffer(t *testing.T) {
	f := []transport.Frame{{Dst: stationA, EtherType: ours, Payload: make([]byte, 100)}}
	for _, ordered := range []bool{true, false} {
		s, _, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
		proven(s, stationA, ordered)
		st := s.trains.stations.find(&f[0])
		st.retry = renewal
		st.offered = clock.Now().Add(-renewal)
		if n, err := s.send(f); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		want := 0
		if !ordered {
			want = 2 // the offer, and the frame
		}
		if n := packets(trained); n != want || (st.offer != 0) == ordered {
			t.Errorf("ordered %v: %d packets with headers, offer %d; want %d", ordered, n, st.offer, want)
		}
	}
}

// Where the kernel refuses a train, its frames go as they are, and those that come next.
func TestSender_RefusedTrains(t *testing.T) {
	s, plain, _ := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
	proven(s, stationA, true)
	if err := unix.Close(s.trains.fd); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.trains.fd, err = unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil { // not a socket: ENOTSOCK
		t.Fatal(err)
	}
	f := transport.Frame{Dst: stationA, EtherType: ours, Payload: make([]byte, 100)}
	for range 2 {
		if n, err := s.send([]transport.Frame{f, f, f, f}); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n := packets(plain); n != 4 {
			t.Errorf("%d packets, want 4", n)
		}
	}
	if s.trains.stations.find(&f).taking(clock.Now()) || s.trains.off {
		t.Error("the station takes trains still, or nobody ever does")
	}
}

// An answer that was not asked for does not have single frames look for their station.
func TestSender_AStrangersAnswer(t *testing.T) {
	s, _, _ := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
	proven(s, stationA, true)
	from := transport.Frame{Src: stationA, Dst: s.ifi.MAC}
	c := control{vid: -1, number: 9}
	b := c.append(nil)
	s.control(trainAnswer, &from, b[:controlLen])
	s.control(trainAnswer, &from, b[controlLen:])
	if s.trains.unordered {
		t.Error("they do")
	}
}

// Kernels before 6.2 neither cut such packets nor describe them.
func TestDescribesTrains(t *testing.T) {
	for release, want := range map[string]bool{
		"6.2": true, "6.2.0-39-generic": true, "6.18.5": true, "7.0-rc1": true, "10.1": true,
		"6.1.0-27-amd64": false, "6.1": false, "5.15.0": false, "4.20": false, "": false, "six": false,
	} {
		if got := describesTrains(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

// A train for which there is no room is refused whole, and may be tried again.
func TestSender_NoRoomForATrain(t *testing.T) {
	s, _, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
	proven(s, stationA, true)
	f := transport.Frame{Dst: stationA, EtherType: ours, Payload: make([]byte, 1000)}
	batch := []transport.Frame{f, f, f, f}
	sent := 0
	for {
		n, err := s.send(batch)
		if err != nil {
			if n != 0 || err != transport.ErrBusy { //nolint:errorlint // the very value
				t.Fatalf("%d, %v", n, err)
			}
			break
		}
		sent++
	}
	if got := packets(trained); got != sent || sent == 0 {
		t.Errorf("%d trains arrived, %d sent", got, sent)
	}
	if n, err := s.send(batch); n != len(batch) || err != nil {
		t.Errorf("with room again: %d, %v", n, err)
	}
}

// Without CAP_NET_ADMIN a buffer is as large as the system allows to all.
func TestSetBuffer_WithoutPrivilege(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	const refused, size = 1 << 20, 40_000 // an option that no system has
	setBuffer(fds[0], unix.SO_RCVBUF, refused, size)
	if n, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || n != 2*size { // doubled by the kernel
		t.Errorf("%d, %v; want %d", n, err, 2*size)
	}
}

// Strangers cause a bounded number of answers.
func TestSender_AnswersAreBounded(t *testing.T) {
	s, _, trained := sockets(t, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET)
	s.trains.answers = tokenbucket.New(0, 3)
	b := (&control{vid: -1, number: 9}).append(nil)
	from := transport.Frame{Src: stationA, Dst: s.ifi.MAC}
	s.control(trainOffer, &from, b[:controlLen])
	if n := packets(trained); n != 0 {
		t.Errorf("%d answers to half an offer", n)
	}
	for _, dst := range []transport.MAC{transport.Broadcast, stationB} { // a group, or promiscuous
		to := transport.Frame{Src: stationA, Dst: dst}
		s.control(trainOffer, &to, b[:controlLen])
		s.control(trainOffer, &to, b[controlLen:])
	}
	if n := packets(trained); n != 0 {
		t.Errorf("%d answers to offers for others", n)
	}
	for range 10 {
		s.control(trainOffer, &from, b[:controlLen])
		s.control(trainOffer, &from, b[controlLen:])
	}
	if n := packets(trained); n != 3 {
		t.Errorf("%d answers, want 3", n)
	}
	const each = int64(time.Millisecond / 4)
	rate := tokenbucket.New(answerRate, answerBurst)
	for range 100 {
		rate.Take(0)
	}
	if rate.Take(0) || rate.Take(each-1) || !rate.Take(each) || rate.Take(2*each-1) {
		t.Error("after 100 answers there are not 4 each ms")
	}
	from.Src = transport.Broadcast
	s.trains.answers = tokenbucket.New(0, 3)
	s.control(trainOffer, &from, b[:controlLen])
	s.control(trainOffer, &from, b[controlLen:])
	if n := packets(trained); n != 0 {
		t.Errorf("%d answers to a group", n)
	}
}
