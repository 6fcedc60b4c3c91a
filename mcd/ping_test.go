package mcd_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/linktest"
)

func by(vid transport.VID) transport.OptionalTag { return transport.Tagged(transport.Tag{VID: vid}) }

// wrapped opens nodes 0, 1, ... on links of the caller's. They sleep when they wait, so that a
// bubble's time passes.
func wrapped(t testing.TB, cfg mcd.Config, links ...transport.Link) []*mcd.Endpoint {
	t.Helper()
	cfg.Spin = -1
	var all [][]transport.Link
	for _, l := range links {
		all = append(all, []transport.Link{l})
	}
	return mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: cfg}, all...)
}

// faulty puts faults around a link.
func faulty(t testing.TB, l transport.Link, cfg fault.Config) *fault.Link {
	t.Helper()
	f, err := fault.New(l, rand.New(rand.NewPCG(1, 0)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ofVID(vid transport.VID) func(*transport.Frame) bool {
	return func(f *transport.Frame) bool { return f.Tagged && f.Tag.VID == vid }
}

// ofProbes matches probes and their answers, by the kind in the header's first byte.
func ofProbes(f *transport.Frame) bool { return f.Payload[0]&0xf == 4 || f.Payload[0]&0xf == 5 }

func TestPingIsAnsweredWithItsTag(t *testing.T) {
	es := open(t, 2, 2)
	for _, c := range []struct {
		name string
		path mcd.Path
		o    mcd.ProbeOptions
	}{
		{"untagged", mcd.Path{Node: 1}, mcd.ProbeOptions{}},
		{"by a VID", mcd.Path{Node: 1, OptionalTag: by(101)}, mcd.ProbeOptions{}},
		{"by another NIC, with priority", mcd.Path{Node: 1, NIC: 1, OptionalTag: transport.Tagged(transport.Tag{VID: 7, PCP: 5, DEI: true})}, mcd.ProbeOptions{}},
		{"priority only, VID 0 is not untagged", mcd.Path{Node: 1, OptionalTag: transport.Tagged(transport.Tag{PCP: 3})}, mcd.ProbeOptions{}},
		{"as long as a frame", mcd.Path{Node: 1, OptionalTag: by(101)}, mcd.ProbeOptions{Size: es[0].MaxPayload()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := es[1].LinkCounters(c.path.NIC)
			reply, err := es[0].Ping(limit(t), c.path, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if reply.PeerReceivedTag != c.path.OptionalTag || reply.ReceivedTag != c.path.OptionalTag || reply.From != 1 || reply.Src != es[1].MAC(c.path.NIC) || reply.RTT <= 0 {
				t.Errorf("%+v", reply)
			}
			after := es[1].LinkCounters(c.path.NIC)
			tx, rx := after.TxBytes-before.TxBytes, after.RxBytes-before.RxBytes
			if tx > rx || after.TxFrames-before.TxFrames != 1 {
				t.Errorf("node 1 answered %d bytes with %d: no answer may be longer than its probe", rx, tx)
			}
		})
	}
	if err := es[1].Close(); err != nil { // an answer may be here before it is counted there
		t.Fatal(err)
	}
	if c := es[1].Counters(); c.RxProbes != 5 || c.ProbesAnswered != 5 || c.ProbesUnanswered != 0 || c.RxMessages != 0 {
		t.Errorf("%+v, want 5 probes, all answered, and no message", c)
	}
	if c := es[0].Counters(); c.RxReplies != 5 {
		t.Errorf("%+v, want 5 answers", c)
	}
}

// A probe tells what the switches made of its tag: here an access port strips it.
func TestPingTellsOfAStrippedTag(t *testing.T) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sw := f.AddSwitch("")
	a, err := f.Attach(sw, fabric.Station{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Attach(sw, fabric.Station{Port: fabric.Port{PVID: 5, VIDs: []transport.VID{5}, Untagged: []transport.VID{5}}})
	if err != nil {
		t.Fatal(err)
	}
	es := wrapped(t, mcd.Config{}, a, b)
	untagged := transport.Untagged
	reply, err := es[0].Ping(limit(t), mcd.Path{Node: 1, OptionalTag: by(5)}, mcd.ProbeOptions{ReplyTag: &untagged})
	if err != nil || reply.PeerReceivedTag != transport.Untagged {
		t.Errorf("%+v, %v: want it seen without a tag", reply, err)
	}
	if reply.ReceivedTag != by(5) {
		t.Errorf("the answer came by %v, want by VID 5: that is the VLAN of its port", reply.ReceivedTag)
	}
}

func TestPingNamesTheSilentPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		cut := faulty(t, links[0], fault.Config{})
		es := wrapped(t, mcd.Config{}, cut, links[1])
		cut.Cut(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := es[0].Ping(ctx, mcd.Path{Node: 1, OptionalTag: by(5)}, mcd.ProbeOptions{})
		if !errors.Is(err, mcd.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) || err.Error() != "node 1 by VID 5: no answer for 1s" {
			t.Errorf("got %v, want that node 1 by VID 5 has not answered for 1s", err)
		}
	})
}

func TestPingRefusesBeforeAnythingIsSent(t *testing.T) {
	es := open(t, 2, 1)
	for _, c := range []struct {
		path mcd.Path
		o    mcd.ProbeOptions
		want error
		text string
	}{
		{mcd.Path{Node: 9}, mcd.ProbeOptions{}, mcd.ErrUnknownNode, "probe node 9 by no tag"},
		{mcd.Path{Node: 0}, mcd.ProbeOptions{}, mcd.ErrSelf, "node 0"},
		{mcd.Path{Node: 1, NIC: 1}, mcd.ProbeOptions{}, nil, "NIC 1: the endpoint has 1"},
		{mcd.Path{Node: 1}, mcd.ProbeOptions{Size: es[0].MaxPayload() + 1}, mcd.ErrTooLarge, "at most 1480 fit"},
		{mcd.Path{Node: 1, OptionalTag: by(4095)}, mcd.ProbeOptions{}, transport.ErrBadTag, "VID 4095"},
	} {
		_, err := es[0].Ping(limit(t), c.path, c.o)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: got %v, want %v that says %q", c.path, err, c.want, c.text)
		}
	}
	if c := es[0].LinkCounters(0); c.TxFrames != 0 {
		t.Errorf("%d frames were sent", c.TxFrames)
	}
}

// One direction of a VLAN is dead: the answer may come by another one, and then the other direction
// is the dead one.
func TestProbesBackByAnotherVIDTellWhichDirectionIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		deaf := faulty(t, links[0], fault.Config{Loss: 1, Match: ofVID(5)}) // node 0 hears nothing of VID 5
		es := wrapped(t, mcd.Config{}, deaf, links[1])
		ping := func(there, back transport.VID) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			tag := by(back)
			_, err := es[0].Ping(ctx, mcd.Path{Node: 1, OptionalTag: by(there)}, mcd.ProbeOptions{ReplyTag: &tag})
			return err
		}
		if err := ping(5, 6); err != nil {
			t.Errorf("there by VID 5, back by VID 6: %v", err)
		}
		for _, there := range []transport.VID{5, 6} {
			if err := ping(there, 5); !errors.Is(err, mcd.ErrNoAnswer) {
				t.Errorf("back by VID 5: %v, want no answer", err)
			}
		}
	})
}

// watch collects what an endpoint hears of probes.
type watch struct {
	mu  sync.Mutex
	got []mcd.Probe
}

func (w *watch) hear(p *mcd.Probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := *p
	c.Body = bytes.Clone(p.Body)
	w.got = append(w.got, c)
}

func (w *watch) take() (got []mcd.Probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got, w.got = w.got, nil
	return got
}

func TestWatchersHearOfProbesAndAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es := wrapped(t, mcd.Config{Cluster: cluster}, switched(t, 2)...)
		var at [2]watch
		for k, e := range es {
			defer e.WatchProbes(at[k].hear)()
		}
		n, err := es[0].TryProbe(mcd.Path{Node: 1, OptionalTag: by(3)}, mcd.ProbeOptions{Body: []byte("state"), Size: 40})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		probes, answers := at[1].take(), at[0].take()
		if len(probes) != 1 || len(answers) != 1 {
			t.Fatalf("%d probes and %d answers, want one of each", len(probes), len(answers))
		}
		want := append([]byte("state"), make([]byte, 40-mcd.MinProbe-5)...)
		p, a := probes[0], answers[0]
		if p.Reply || p.Number != n || p.From != 0 || p.Src != es[0].MAC(0) || p.SentTag != by(3) || p.ReceivedTag != by(3) || !bytes.Equal(p.Body, want) {
			t.Errorf("probe %+v", p)
		}
		if !a.Reply || a.Number != n || a.From != 1 || a.PeerReceivedTag != by(3) || a.Incarnation == p.Incarnation || !bytes.Equal(a.Body, want) {
			t.Errorf("answer %+v", a)
		}
		if again, err := es[0].TryProbe(mcd.Path{Node: 1}, mcd.ProbeOptions{}); err != nil || again == n {
			t.Errorf("the second probe has number %d, and the first one %d (%v)", again, n, err)
		}
	})
}

// probeTo makes a probe by hand, as node 2.
func probeTo(dst transport.MAC, to uint16, head wire.ProbeHead, payload int) transport.Frame {
	b := make([]byte, mcd.HeaderLen+max(payload, wire.ProbeHeadLen))
	head.Put(b[mcd.HeaderLen:])
	b = b[:mcd.HeaderLen+payload]
	wire.Seal(b, &wire.Header{Kind: wire.Probe, From: 2, To: to})
	return transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: b}
}

// Nothing that comes has more than one frame sent, and no probe to a group any.
func TestProbesAreNotAmplified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 3)
		es := wrapped(t, mcd.Config{}, links[:2]...)
		for _, c := range []struct {
			name                          string
			frame                         transport.Frame
			answered, dropped, notForNode uint64
		}{
			{"well formed", probeTo(links[1].MAC(), 1, wire.ProbeHead{}, 16), 1, 0, 0},
			{"to all", probeTo(transport.Broadcast, 1, wire.ProbeHead{}, 16), 0, 1, 0},
			{"to all, and any node", probeTo(transport.Broadcast, 7, wire.ProbeHead{Flags: wire.ProbeAnyNode}, 16), 0, 1, 0},
			{"without a whole head", probeTo(links[1].MAC(), 1, wire.ProbeHead{}, 15), 0, 1, 0},
			{"for another node", probeTo(links[1].MAC(), 7, wire.ProbeHead{}, 16), 0, 0, 1},
			{"for any node with this address", probeTo(links[1].MAC(), 7, wire.ProbeHead{Flags: wire.ProbeAnyNode}, 16), 1, 0, 0},
		} {
			before, sent := es[1].Counters(), es[1].LinkCounters(0).TxFrames
			if _, err := links[2].Send([]transport.Frame{c.frame}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			after := es[1].Counters()
			if after.ProbesAnswered-before.ProbesAnswered != c.answered || after.DropProbe-before.DropProbe != c.dropped ||
				after.DropNode-before.DropNode != c.notForNode || es[1].LinkCounters(0).TxFrames-sent != c.answered {
				t.Errorf("%s: %+v, before %+v", c.name, after, before)
			}
		}
	})
}

// echo is a link whose broadcasts come back to it, as they do where the network has a loop.
type echo struct {
	transport.Link
	mu   sync.Mutex
	back []transport.Frame
}

func (l *echo) Unwrap() transport.Link { return l.Link }

func (l *echo) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	for _, f := range frames {
		if f.Dst == transport.Broadcast {
			f.Payload = bytes.Clone(f.Payload)
			l.back = append(l.back, f)
		}
	}
	l.mu.Unlock()
	return l.Link.Send(frames)
}

func (l *echo) Poll(frames []transport.Frame) (int, error) {
	l.mu.Lock() // also while it polls: what comes back is there before a reply to a later frame
	defer l.mu.Unlock()
	came := copy(frames, l.back)
	l.back = l.back[came:]
	n, err := l.Link.Poll(frames[came:])
	return came + n, err
}

func TestProbeToOneselfComesBackWhereThereIsALoop(t *testing.T) {
	for _, loop := range []bool{false, true} {
		links := switched(t, 2)
		if loop {
			links[0] = &echo{Link: links[0]}
		}
		es := wrapped(t, mcd.Config{}, links...)
		var w watch
		defer es[0].WatchProbes(w.hear)()
		if _, err := es[0].TryProbe(mcd.Path{Node: 0, OptionalTag: by(4)}, mcd.ProbeOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := es[0].Ping(limit(t), mcd.Path{Node: 1}, mcd.ProbeOptions{}); err != nil { // by then it is back
			t.Fatal(err)
		}
		came := 0
		for _, p := range w.take() {
			if !p.Reply && p.From == 0 && p.SentTag == by(4) {
				came++
			}
		}
		if (came > 0) != loop {
			t.Errorf("loop %v: came back %d times", loop, came)
		}
		if err := es[1].Close(); err != nil { // it counts a probe as answered when the reply is on its way
			t.Fatal(err)
		}
		if c := es[1].Counters(); c.DropNode != 1 || c.ProbesAnswered != 1 {
			t.Errorf("node 1: %+v, want the other one's dropped", c)
		}
	}
}

func TestPingsEndWithTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		cut := faulty(t, links[0], fault.Config{})
		es := wrapped(t, mcd.Config{}, cut, links[1])
		cut.Cut(true)
		result := make(chan error)
		go func() {
			_, err := es[0].Ping(context.Background(), mcd.Path{Node: 1}, mcd.ProbeOptions{})
			result <- err
		}()
		synctest.Wait()
		if err := es[0].Close(); err != nil {
			t.Error(err)
		}
		if err := <-result; !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("a ping that waited: %v, want ErrClosed", err)
		}
		if _, err := es[0].Ping(context.Background(), mcd.Path{Node: 1}, mcd.ProbeOptions{}); !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("a later ping: %v, want ErrClosed", err)
		}
	})
}

// A reply counts only from the node, and from the address, that were asked: not whoever sends the
// right number.
func TestPing_RepliesOfOthersDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		e := wrapped(t, mcd.Config{Nodes: []mcd.Node{
			{ID: 1, MACs: []transport.MAC{y.MAC()}}, {ID: 2, MACs: []transport.MAC{mac(2)}}}}, x)[0]
		type result struct {
			reply mcd.PingReply
			err   error
		}
		ended := make(chan result, 1)
		go func() {
			reply, err := e.Ping(limit(t), mcd.Path{Node: 1}, mcd.ProbeOptions{})
			ended <- result{reply, err}
		}()
		synctest.Wait()
		frames := make([]transport.Frame, 2)
		if n, _ := y.Poll(frames); n != 1 {
			t.Fatalf("%d probes, want 1", n)
		}
		answer := func(from uint16) {
			var h wire.Header
			if fault := wire.Parse(frames[0].Payload, &h); fault != wire.OK {
				t.Fatal(fault)
			}
			b := make([]byte, mcd.HeaderLen+len(h.Payload))
			wire.Put(b, &wire.Header{Kind: wire.Reply, From: from, To: 0}, h.Payload)
			if _, err := y.Send([]transport.Frame{{Dst: x.MAC(), EtherType: transport.EtherTypeDefault, Payload: b}}); err != nil {
				t.Fatal(err)
			}
			e.Progress()
			synctest.Wait()
		}
		answer(2) // node 2's, from node 1's address
		answer(3) // an unknown node's
		select {
		case r := <-ended:
			t.Fatalf("the replies of others count: %+v, %v", r.reply, r.err)
		default:
		}
		answer(1)
		if r := <-ended; r.err != nil || r.reply.From != 1 || r.reply.Src != y.MAC() {
			t.Errorf("%+v, %v; want node 1's reply", r.reply, r.err)
		}
	})
}

// While the link has no room, Ping leaves it alone between tries, and ends with its context.
func TestPing_WaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 2)
		tries := 0
		link.refuse(func(*transport.Frame) bool { tries++; return true })
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if _, err := es[0].Ping(ctx, mcd.Path{Node: 1}, mcd.ProbeOptions{}); !errors.Is(err, mcd.ErrNoAnswer) {
			t.Errorf("over a full link: %v, want ErrNoAnswer", err)
		}
		if tries < 10 || tries > 300 {
			t.Errorf("%d tries in 10 ms", tries)
		}
		time.AfterFunc(time.Millisecond, func() { link.refuse(nil) })
		if _, err := es[0].Ping(limit(t), mcd.Path{Node: 1}, mcd.ProbeOptions{}); err != nil {
			t.Errorf("over a link that has room by and by: %v", err)
		}
	})
}

// Where a context is over, a ping that could never have had an answer says why, all the same.
func TestPing_WhatIsWrongWithoutTime(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	es := open(t, 2, 1)
	for name, c := range map[string]struct {
		to   mcd.Path
		o    mcd.ProbeOptions
		want error
	}{
		"a node that there is none of": {mcd.Path{Node: 9}, mcd.ProbeOptions{}, mcd.ErrUnknownNode},
		"a probe that is too long":     {mcd.Path{Node: 1}, mcd.ProbeOptions{Size: 1 << 20}, mcd.ErrTooLarge},
		"a tag that there is none of":  {mcd.Path{Node: 1, OptionalTag: by(4095)}, mcd.ProbeOptions{}, transport.ErrBadTag},
	} {
		if _, err := es[0].Ping(over, c.to, c.o); !errors.Is(err, c.want) || errors.Is(err, mcd.ErrNoAnswer) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := es[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := es[0].Ping(over, mcd.Path{Node: 1}, mcd.ProbeOptions{}); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("a closed endpoint: %v, want ErrClosed", err)
	}
}
