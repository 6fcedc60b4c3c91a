package mcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// probeFrame makes a probe or reply to node 0, as node 1.
func probeFrame(dst transport.MAC, kind wire.Kind, head wire.ProbeHead) transport.Frame {
	b := make([]byte, HeaderLen+MinProbe)
	head.Put(b[HeaderLen:])
	wire.Seal(b, &wire.Header{Kind: kind, From: 1})
	return transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: b}
}

// A reply says how the probe arrived, whatever the probe says of that itself, and whose it is.
func TestReply_SaysHowTheProbeArrived(t *testing.T) {
	tag := transport.Tagged(transport.Tag{VID: 5, PCP: 1})
	for _, arrived := range []transport.OptionalTag{transport.Untagged, tag} {
		for _, claims := range []wire.ProbeHead{{}, {Flags: wire.ProbeReceivedTagged, ReceivedTCI: 0x0007}} {
			e, _, links, others := openScripts(t, 1)
			var replies []wire.ProbeHead
			links[0].send = func(frames []transport.Frame) (int, error) {
				for _, f := range frames {
					var h wire.Header
					var head wire.ProbeHead
					if wire.Parse(f.Payload, &h) != wire.OK || h.Kind != wire.Reply || !head.Parse(h.Payload) {
						t.Errorf("not a reply: %x", f.Payload)
					}
					replies = append(replies, head)
				}
				return len(frames), nil
			}
			claims.Number, claims.Incarnation = 9, e.probes.incarnation+1
			f := probeFrame(e.MAC(0), wire.Probe, claims)
			f.OptionalTag = arrived
			if _, err := others[0].Send([]transport.Frame{f}); err != nil {
				t.Fatal(err)
			}
			for !e.Progress() {
			}
			want := wire.ProbeHead{Number: 9, Incarnation: e.probes.incarnation, ReceivedTCI: arrived.TCI()}
			if arrived.Tagged {
				want.Flags = wire.ProbeReceivedTagged
			}
			if len(replies) != 1 || replies[0] != want {
				t.Errorf("arrived by %v, claims %+v: replies %+v, want %+v", arrived, claims, replies, want)
			}
		}
	}
}

// Of two replies to one probe the first counts, also where both come at once; and nothing is kept of
// a ping that is over, with a reply or without.
func TestPing_FirstReplyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, others := openScripts(t, 1)
		defer e.Close()
		links[0].send = func(frames []transport.Frame) (int, error) {
			var h wire.Header
			var head wire.ProbeHead
			if wire.Parse(frames[0].Payload, &h) != wire.OK || !head.Parse(h.Payload) {
				t.Fatalf("not a probe: %x", frames[0].Payload)
			}
			first, second := head, head
			first.Incarnation, second.Incarnation = 101, 102
			return others[0].Send([]transport.Frame{
				probeFrame(e.MAC(0), wire.Reply, first), probeFrame(e.MAC(0), wire.Reply, second),
			})
		}
		time.AfterFunc(time.Millisecond, func() { e.Progress() })
		reply, err := e.Ping(t.Context(), Path{Node: 1}, ProbeOptions{})
		if err != nil || reply.Incarnation != 101 || reply.RTT != time.Millisecond {
			t.Errorf("%+v, %v; want the first reply, after 1 ms", reply, err)
		}
		links[0].send = func(frames []transport.Frame) (int, error) { return len(frames), nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Ping(ctx, Path{Node: 1}, ProbeOptions{}); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("without a reply: %v", err)
		}
		if n := len(e.probes.waiting); n != 0 {
			t.Errorf("%d pings are kept that are over", n)
		}
	})
}

// The time until the reply is that of the probe: what a ping has waited for room does not count.
func TestPing_WaitingForRoomIsNoRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, others := openScripts(t, 1)
		defer e.Close()
		begun := time.Now()
		links[0].send = func(frames []transport.Frame) (int, error) {
			if time.Since(begun) < time.Millisecond {
				return 0, transport.ErrBusy
			}
			var h wire.Header
			var head wire.ProbeHead
			if wire.Parse(frames[0].Payload, &h) != wire.OK || !head.Parse(h.Payload) {
				t.Fatalf("not a probe: %x", frames[0].Payload)
			}
			time.AfterFunc(30*time.Microsecond, func() { e.Progress() })
			return others[0].Send([]transport.Frame{probeFrame(e.MAC(0), wire.Reply, head)})
		}
		reply, err := e.Ping(t.Context(), Path{Node: 1}, ProbeOptions{})
		if err != nil || reply.RTT != 30*time.Microsecond {
			t.Errorf("%v, %v; want 30 us", reply.RTT, err)
		}
	})
}

// A node that is opened again takes no reply to its former life for its own: numbers begin anywhere.
func TestProbes_NumbersBeginAnywhere(t *testing.T) {
	const endpoints = 4
	incarnations, first := map[uint32]bool{}, map[uint32]bool{}
	for range endpoints {
		e, _, links, _ := openScripts(t, 1)
		links[0].send = func(frames []transport.Frame) (int, error) { return len(frames), nil }
		n, err := e.TryProbe(Path{Node: 1}, ProbeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		incarnations[e.probes.incarnation], first[n] = true, true
		if next, err := e.TryProbe(Path{Node: 1}, ProbeOptions{}); err != nil || next != n+1 {
			t.Errorf("the next one has number %d, %v; want %d", next, err, n+1)
		}
	}
	if len(incarnations) != endpoints || len(first) < 2 {
		t.Errorf("%d endpoints have %d incarnations, and probe from %d numbers on", endpoints, len(incarnations), len(first))
	}
}

// What comes before a probe was sent is not its reply, also if somebody has guessed its number.
func TestPing_ReplyBeforeTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, links, others := openScripts(t, 1)
		defer e.Close()
		busy := true
		links[0].send = func(frames []transport.Frame) (int, error) {
			var h wire.Header
			var head wire.ProbeHead
			if wire.Parse(frames[0].Payload, &h) != wire.OK || !head.Parse(h.Payload) {
				t.Fatalf("not a probe: %x", frames[0].Payload)
			}
			head.Incarnation = 101
			time.AfterFunc(10*time.Microsecond, func() { e.Progress() })
			n, err := others[0].Send([]transport.Frame{probeFrame(e.MAC(0), wire.Reply, head)})
			if busy {
				busy = false
				return 0, transport.ErrBusy
			}
			return n, err
		}
		reply, err := e.Ping(t.Context(), Path{Node: 1}, ProbeOptions{})
		if err != nil || reply.RTT != 10*time.Microsecond {
			t.Errorf("%+v, %v; want the reply of the second try, after 10 us", reply, err)
		}
		if c := e.Counters(); c.RxReplies != 2 || len(e.probes.waiting) != 0 {
			t.Errorf("%d replies, want 2; %d pings are kept that are over", c.RxReplies, len(e.probes.waiting))
		}
	})
}
