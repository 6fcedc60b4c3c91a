//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Frames of one length for one station leave as one message, and arrive as one, once a stream of
// them has come. Where trains are refused, each leaves alone.
func TestTrains_AreOneMessage(t *testing.T) {
	var links [2]*Link
	for k := range links {
		l, err := Open("127.0.0.1:0", Config{MAC: numbered(k + 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		links[k] = l
	}
	a, b := links[0], links[1]
	if err := a.AddStation(Station{Addr: b.Addr().String(), MAC: b.MAC()}); err != nil {
		t.Fatal(err)
	}
	const n = 44
	send := func() (messages int) {
		t.Helper()
		var frames []transport.Frame
		for range n {
			frames = append(frames, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1000)})
		}
		if sent, err := a.Send(frames); sent != n {
			t.Fatal(sent, err)
		}
		in := make([]transport.Frame, n)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for came := 0; came < n; {
			if err := b.Wait(ctx); err != nil {
				t.Fatalf("%d of %d frames: %v", came, n, err)
			}
			more := b.socket.pending()
			got, err := b.Poll(in)
			if err != nil {
				t.Fatal(err)
			}
			if came += got; !more { // else Poll has gone on with what was received before
				messages += b.socket.in.got
			}
		}
		return messages
	}
	if messages := send(); messages != n {
		t.Errorf("%d frames, the first of all, came in %d messages", n, messages)
	}
	if messages := send(); messages != 1 {
		t.Errorf("%d frames came in %d messages, want 1", n, messages)
	}
	if sent, received := trainsOf(a, b); sent != 2 || received != 1 {
		t.Errorf("%d trains sent, %d received; want 2, 1", sent, received)
	}
	to := a.socket.address(b.Addr())
	a.socket.out.refuses(&to)
	if messages := send(); messages != n {
		t.Errorf("without trains %d frames came in %d messages", n, messages)
	}
	if sent, received := trainsOf(a, b); sent != 2 || received != 1 {
		t.Errorf("%d trains sent, %d received, when none are", sent, received)
	}
}

// trainsOf returns how many trains one link has sent, and another one received.
func trainsOf(from, to *Link) (sent, received uint64) {
	sent, _ = from.Trains()
	_, received = to.Trains()
	return sent, received
}

// A train has what a datagram's limits allow, and none is of frames that fill one alone.
func TestTrainFrames(t *testing.T) {
	for mtu, want := range map[int]int{64: trainLen, 1454: 44, 8954: 7, 32486: 2, 32487: 0, 65000: 0} {
		l := &Link{mtu: mtu}
		if got := l.TrainFrames(); got != want || l.TrainMTU() != mtu {
			t.Errorf("MTU %d: %d frames of %d bytes, want %d", mtu, got, l.TrainMTU(), want)
		}
	}
}

// Frames whose payloads lie side by side, TrainHeadroom bytes apart, are one piece to the kernel.
func TestGather_SideBySide(t *testing.T) {
	a, b := linked(t)
	const n, size = 20, 100
	room := a.TrainHeadroom()
	var frames []transport.Frame
	for memory := make([]byte, n*(room+size)); len(memory) > 0; memory = memory[room+size:] {
		frames = append(frames, transport.Frame{
			Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Headroom: memory[:room], Payload: memory[room:][:size],
		})
	}
	if sent, err := a.Send(frames); sent != n || err != nil {
		t.Fatal(sent, err)
	}
	if a.socket.out.used != 1 {
		t.Errorf("%d pieces, want 1", a.socket.out.used)
	}
}

// A call receives all that is there, and one message alone after a call that found nothing. Trains
// are cut where they were coupled whatever came before them.
func TestPoll_HowManyMessages(t *testing.T) {
	a, b := linked(t)
	in := make([]transport.Frame, 64)
	poll := func(frames, messages int) {
		t.Helper()
		n, err := b.Poll(in)
		if n != frames || err != nil || n > 0 && b.socket.in.got != messages {
			t.Fatalf("%d frames in %d messages (%v), want %d in %d", n, b.socket.in.got, err, frames, messages)
		}
		for i := range in[:n] {
			if len(in[i].Payload) != 100 {
				t.Errorf("frame %d of %d has %d bytes, want 100", i, n, len(in[i].Payload))
			}
		}
	}
	send := func(n int) {
		t.Helper()
		if sent, err := a.Send(plain(b.MAC(), n, 100)); sent != n || err != nil {
			t.Fatal(sent, err)
		}
	}
	send(5)
	poll(5, 5)
	send(5)
	poll(5, 5) // something was there
	poll(0, 0)
	send(5)
	poll(1, 1) // nothing was
	poll(4, 4)
	for _, n := range []int{15, 15, 16} { // the last is a stream: from then on trains are joined
		send(n)
		poll(n, n)
	}
	for range 2 {
		send(20)
		poll(20, 1)
		poll(0, 0)
		send(1)
		poll(1, 1)
		send(20)
		poll(20, 1)
		poll(0, 0)
		send(20)
		poll(20, 1)
	}
}
