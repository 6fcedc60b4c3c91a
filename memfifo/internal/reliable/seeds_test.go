package reliable

import (
	"bytes"
	"slices"
)

// The events of a script beside those of seven kinds, by number: see script.doRarely.
const (
	restartNow = iota
	ringFull
	leaveAndRestart
	ringHalfFull
	uncork
	cutOff
	blackHole
	policyNone
	policyMay
	policyWill
)

// ev is the byte of an event: its kind, its number, and at which end.
func ev(kind, which, end int) byte { return byte(kind<<5 | which<<1 | end) }

func write(end, which int) byte     { return ev(0, which, end) } // 1 + which²/4 records, in lane which%2
func send(end int) byte             { return ev(1, 0, end) }
func arrive(end, frames int) byte   { return ev(2, frames-1, end) }
func arriveNth(end, which int) byte { return ev(3, which, end) } // frame which²; a copy stays if that is odd
func lose(end, which int) byte      { return ev(4, which, end) } // frame which²
func hold(end, lane int) byte       { return ev(5, lane, end) }  // or go on
func wait(which int) byte           { return ev(6, which, 0) }   // which² half milliseconds
func rare(which, end int) byte      { return ev(7, which, end) }

// trips is so many round trips of end 0, each of 16 frames at most.
func trips(n int) []byte {
	return bytes.Repeat([]byte{send(0), arrive(1, 16), send(1), arrive(0, 16)}, n)
}

// scripts are histories from which the fuzzer goes on.
func scripts() [][]byte {
	open := slices.Concat([]byte{write(0, 2)}, trips(4))
	opened := func(events ...byte) []byte { return slices.Concat(open, events, trips(4)) }
	all := func(end int, events ...byte) (s []byte) { // each frame of a handshake and a transfer comes to these events
		for range 8 {
			s = slices.Concat(s, events, []byte{send(0), arrive(1, 4), send(1), arrive(0, 4)})
		}
		return s
	}
	wide := slices.Concat(open, []byte{write(0, 15)}, trips(8), []byte{write(0, 15)}, trips(8),
		bytes.Repeat([]byte{write(0, 15)}, 5), []byte{send(0), lose(1, 0), lose(1, 4), lose(1, 7), lose(1, 11)},
		bytes.Repeat([]byte{arrive(1, 16)}, 14), []byte{send(1)}, bytes.Repeat([]byte{arrive(0, 16)}, 8), trips(8))
	return [][]byte{
		open,
		{rare(policyMay, 1)}, // acknowledgements are late to the end
		slices.Concat([]byte{write(0, 2), write(1, 3)}, trips(4)),                                                      // both begin
		slices.Concat([]byte{write(0, 2), send(0), lose(1, 0), wait(5)}, trips(4)),                                     // the hello is lost
		opened(write(0, 2), send(0), write(0, 2), send(0), lose(1, 1), arrive(1, 16), send(1), arrive(0, 16), wait(1)), // the last frame
		opened(write(0, 2), send(0), write(0, 2), send(0), lose(1, 0), arrive(1, 16), send(1), arrive(0, 16), wait(1)), // early retransmit
		opened(write(0, 2), send(0), write(0, 2), send(0), arriveNth(1, 1), arrive(1, 1)),                              // a copy, in another order
		opened(write(0, 14), send(0), lose(1, 0), arrive(1, 16), send(1), arrive(0, 16), write(1, 3)),                  // fast retransmit
		opened(write(0, 14), send(0), wait(6), arrive(1, 16), send(1), arrive(0, 16)),                                  // an RTO too soon
		opened(write(0, 14), send(0), wait(6), send(0), arrive(1, 16), send(1), arrive(0, 16)),                         // the same, retransmitted
		opened(bytes.Repeat([]byte{write(0, 2), send(0), lose(1, 0), wait(6), send(0), lose(1, 0), wait(9)}, 4)...),
		opened(write(0, 4), send(0), arrive(1, 8), send(1), write(0, 4), send(0), arrive(1, 8), send(1), arriveNth(0, 1), arrive(0, 1)), // an old acknowledgement
		opened(write(0, 15), write(0, 15), write(0, 15), write(0, 15), write(0, 15), write(0, 15)),                                      // no room
		opened(slices.Concat([]byte{hold(1, 0), write(0, 14)}, trips(3), []byte{write(0, 4), wait(3)}, trips(3), []byte{hold(1, 0)})...),
		opened(slices.Concat([]byte{hold(1, 0), hold(1, 1), write(0, 15), write(0, 15)}, trips(12), []byte{hold(1, 0)})...), // out of credit
		opened(write(0, 2), rare(restartNow, 1), send(0), arrive(1, 4), send(1), arrive(0, 4)),
		opened(write(1, 2), rare(restartNow, 0), rare(restartNow, 1), send(1)),
		opened(write(0, 2), send(0), rare(leaveAndRestart, 1), arrive(0, 4), write(0, 2)),
		opened(write(0, 2), write(1, 14), send(1), arrive(0, 4), rare(leaveAndRestart, 0), arrive(1, 8)), // data behind the bye
		slices.Concat([]byte{write(0, 14), write(1, 3)}, all(0, rare(ringFull, 0), rare(ringFull, 1))),
		slices.Concat([]byte{write(0, 14), write(1, 15)}, all(0, rare(ringHalfFull, 0), rare(ringHalfFull, 1))),
		opened(write(0, 2), send(0), lose(1, 0), wait(1), rare(ringFull, 0), send(0), arrive(1, 4), rare(ringFull, 1)), // a probe is refused
		opened(write(0, 14), send(0), wait(6), rare(ringFull, 0), rare(ringHalfFull, 0)),                               // retransmissions are
		opened(write(0, 2), send(0), write(0, 2), send(0), write(0, 2), rare(uncork, 0), send(0)),
		opened(rare(policyMay, 1), write(0, 14), send(0), arrive(1, 16), send(1), wait(1), rare(policyWill, 1), send(1), rare(policyNone, 1)),
		slices.Concat([]byte{write(0, 2)}, bytes.Repeat([]byte{rare(cutOff, 0)}, 3), trips(2)), // silent: before the handshake
		opened(write(0, 14), write(0, 3), rare(cutOff, 0), rare(cutOff, 0), rare(cutOff, 0)),   // and behind it
		opened(write(0, 14), rare(blackHole, 0), rare(blackHole, 0), rare(blackHole, 0)),       // data is lost
		slices.Concat([]byte{write(0, 2), send(0), lose(1, 0), wait(5), send(0), arrive(1, 1), send(1), arrive(0, 1), send(0), arrive(1, 1), lose(1, 0),
			write(0, 14), send(0), wait(5)}, bytes.Repeat([]byte{lose(1, 0)}, 60), []byte{send(0), lose(1, 0), arrive(1, 16), arrive(1, 16), send(1), arrive(0, 8)}, trips(4)), // no round trip is known
		wide,
	}
}

// hostileFrames are frames that nobody sends who keeps to the rules, each behind its length, as
// FuzzHostile takes them.
func hostileFrames() (all [][]byte) {
	for _, h := range []Header{
		{Kind: Hello, Src: 7, Sequence: 9},
		{Kind: Hello, Src: 1, Sequence: 9},
		{Kind: HelloAck, Src: 7, Dst: 2, Sequence: 9, Ack: 1},
		{Kind: Bye, Src: 1, Dst: 2},
		{Kind: Bye, Src: 1, Dst: 9},
		{Kind: Bye, Src: 1},
		{Kind: ByeAck, Src: 1, Dst: 2},
		{Kind: Ack, Src: 1, Dst: 2, Ack: 1 << 20},
		{Kind: Ack, Src: 1, Dst: 2, Lane: 1, AckLane: 1, Ack: 1, Credit: 1, SACK: SACK{1<<63 | 6, 1, 1, 1 << 63}},
		{Kind: Ack, Src: 1, Dst: 2, Lane: 1, AckNow: true, Sequence: 5, Ack: 1},
		{Kind: Data, Src: 1, Dst: 2, Sequence: 2, Ack: 1},
		{Kind: Data, Src: 1, Dst: 2, Sequence: 5, AckLane: 1, Ack: 2, Credit: 2},
		{Kind: Data, Src: 1, Dst: 2, Sequence: 300, Ack: 2, Credit: 1 << 15},
		{Kind: Data, Src: 1, Dst: 2, Lane: 1, Sequence: 1 << 31, Ack: 2},
	} {
		b := make([]byte, 1+200)
		n := 1 + h.put(b[1:])
		b[0] = byte(n)
		all = append(all, slices.Clone(b[:n]))
		if h.Kind == Data {
			b[0] = 201 // longer than any frame
			all = append(all, slices.Clone(b))
		}
	}
	return append(all, bytes.Join(all, nil))
}
