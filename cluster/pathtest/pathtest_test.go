package pathtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster/pathtest"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// Each fault is planted, and found; a healthy network has none.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(t *testing.T) *mcd.Endpoint // node 0
		tags  []transport.OptionalTag
		want  []pathtest.Fault
		text  string
	}{
		{
			name:  "nothing",
			plant: func(t *testing.T) *mcd.Endpoint { return open(t, switched(t, 3)...)[0] },
			tags:  append(by(1, 2), transport.Untagged),
		},
		{
			name: "loop: broadcasts of VID 2 come back",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 2)
				return open(t, &looped{Link: links[0]}, links[1])[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.Loop, By: by(2)[0], Count: 3}},
			text: "loop: a broadcast of node 0 by VID 2 came back 3 times",
		},
		{
			name: "loop: frames arrive twice",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 2)
				return open(t, suffering(t, links[0], fault.Config{Duplicate: 1, Match: ofVID(2)}), links[1])[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.Loop, To: 1, By: by(2)[0], Count: 2}},
			text: "node 1 answered one probe of node 0 by VID 2 2 times",
		},
		{
			name: "black hole: a cable of VID 2 is out",
			plant: func(t *testing.T) *mcd.Endpoint {
				links, second := twoTops(t)
				second[0].SetUp(false)
				return open(t, links...)[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.BlackHole, To: 1, By: by(2)[0]}},
			text: "black hole: nodes 0 and 1 hear nothing of each other by VID 2, and do by others",
		},
		{
			name: "one-way: node 0 hears nothing of VID 2",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 2)
				return open(t, suffering(t, links[0], fault.Config{Loss: 1, Match: ofVID(2)}), links[1])[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.OneWay, To: 1, By: by(2)[0]}},
			text: "one-way: frames of node 1 by VID 2 do not reach node 0; the other direction works",
		},
		{
			name: "one-way: node 1 hears nothing of VID 2",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 2)
				return open(t, links[0], suffering(t, links[1], fault.Config{Loss: 1, Match: ofVID(2)}))[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.OneWay, To: 1, By: by(2)[0], Toward: true}},
			text: "one-way: frames of node 0 by VID 2 do not reach node 1",
		},
		{
			name: "unreachable: node 2 is unplugged",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 3)
				links[2].(*fabric.Link).SetUp(false)
				return open(t, links...)[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.Unreachable, To: 2}},
			text: "unreachable: node 0 hears nothing of node 2 by any VID",
		},
		{
			name: "duplicate address: nodes 1 and 2",
			plant: func(t *testing.T) *mcd.Endpoint {
				here, there := switched(t, 2), switched(t, 2)
				nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{here[0].MAC()}}, {ID: 1, MACs: []transport.MAC{here[1].MAC()}}}
				openOne(t, 1, nodes, here[1])
				openOne(t, 2, nil, there[1])
				return openOne(t, 0, nodes, &both{here[0], there[0]})
			},
			tags: by(1),
			want: []pathtest.Fault{
				{Kind: pathtest.Duplicate, To: 1, MACs: []transport.MAC{{2, 0, 0, 0, 0, 2}}, Nodes: []mcd.NodeID{1, 2}},
			},
			text: "duplicate address: nodes [1 2] answer at [02:00:00:00:00:02]",
		},
		{
			name: "duplicate address: node 1 was cloned, number and all",
			plant: func(t *testing.T) *mcd.Endpoint {
				here, there := switched(t, 2), switched(t, 2)
				nodes := []mcd.Node{{ID: 0, MACs: []transport.MAC{here[0].MAC()}}, {ID: 1, MACs: []transport.MAC{here[1].MAC()}}}
				openOne(t, 1, nodes, here[1])
				openOne(t, 1, nodes, there[1])
				return openOne(t, 0, nodes, &both{here[0], there[0]})
			},
			tags: by(1),
			want: []pathtest.Fault{
				{Kind: pathtest.Duplicate, To: 1, MACs: []transport.MAC{{2, 0, 0, 0, 0, 2}}, Nodes: []mcd.NodeID{1, 1}},
			},
		},
		{
			name:  "tag changed: an access port strips VID 5",
			plant: func(t *testing.T) *mcd.Endpoint { return byPorts(t, fabric.Port{}, fabric.Access(5))[0] },
			tags:  by(5),
			want:  []pathtest.Fault{{Kind: pathtest.TagChanged, To: 1, By: by(5)[0], Toward: true, Arrive: transport.Untagged}},
			text:  "what node 0 sends to node 1 by VID 5 arrives with no tag",
		},
		{
			name:  "tag changed: the same, as the other end sees it",
			plant: func(t *testing.T) *mcd.Endpoint { return byPorts(t, fabric.Port{}, fabric.Access(5))[1] },
			tags:  by(5),
			want:  []pathtest.Fault{{Kind: pathtest.TagChanged, From: 1, By: by(5)[0], Arrive: transport.Untagged}},
			text:  "what node 0 sends to node 1 by VID 5 arrives with no tag",
		},
		{
			name:  "tag changed: both ways",
			plant: func(t *testing.T) *mcd.Endpoint { return byPorts(t, fabric.Access(5), fabric.Access(5))[0] },
			tags:  by(5),
			want: []pathtest.Fault{
				{Kind: pathtest.TagChanged, To: 1, By: by(5)[0], Toward: true, Arrive: transport.Untagged},
				{Kind: pathtest.TagChanged, To: 1, By: by(5)[0], Arrive: transport.Untagged},
			},
			text: "what node 0 sends to node 1 by VID 5 arrives with no tag",
		},
		{
			name: "MTU: frames of VID 2 pass with 1007 bytes at most",
			plant: func(t *testing.T) *mcd.Endpoint {
				links := switched(t, 2)
				long := func(f *transport.Frame) bool { return ofVID(2)(f) && len(f.Payload) > 1007 }
				return open(t, links[0], suffering(t, links[1], fault.Config{Loss: 1, Match: long}))[0]
			},
			tags: by(1, 2),
			want: []pathtest.Fault{{Kind: pathtest.MTU, To: 1, By: by(2)[0], Bytes: 1007, Want: 1500}},
			text: "MTU: between nodes 0 and 1 by VID 2 frames of 1007 bytes pass, and of 1500 do not",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := pathtest.Check(context.Background(), c.plant(t), 0, c.tags, pathtest.Options{})
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("found %v (%v), want %v", got, err, c.want)
				}
				if len(got) > 0 && (!strings.Contains(got[0].String(), c.text) || got[0].Record().Text != got[0].String()) {
					t.Errorf("%q does not say %q", got[0], c.text)
				}
			})
		})
	}
}

func TestCheckByNoTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := pathtest.Check(context.Background(), open(t, switched(t, 2)...)[0], 0, nil, pathtest.Options{})
		if err != nil || len(got) != 0 {
			t.Errorf("found %v (%v)", got, err)
		}
	})
}

// A tenth of all frames is lost by chance: that is no fault of a path.
func TestCheckIsNotMisledByChance(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			links := switched(t, 2)
			lossy, err := fault.New(links[0], rand.New(rand.NewPCG(seed, 0)), fault.Config{Loss: 0.05})
			if err != nil {
				t.Fatal(err)
			}
			got, err := pathtest.Check(context.Background(), open(t, lossy, links[1])[0], 0, by(1, 2), pathtest.Options{})
			if err != nil || len(got) != 0 {
				t.Errorf("seed %d: found %v (%v)", seed, got, err)
			}
		})
	}
}

// A node stands still for as long as all tries with full frames take: that is no small MTU.
func TestCheckIsNotMisledByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		stalled, lost := stoodStill(t, links[1], 3, func(f *transport.Frame) bool { return len(f.Payload) >= 1500 })
		got, err := pathtest.Check(context.Background(), open(t, links[0], stalled)[0], 0, by(1), pathtest.Options{})
		if err != nil || len(got) != 0 || *lost != 3 {
			t.Errorf("found %v (%v), %d probes lost, want 3", got, err, *lost)
		}
	})
}

// A node stands still for as long as the tries of one VID take, and answers again when it is asked which
// way is dead: none is.
func TestCheckIsNotMisledByAPauseOfAPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		stalled, lost := stoodStill(t, links[1], 4, ofVID(2))
		got, err := pathtest.Check(context.Background(), open(t, links[0], stalled)[0], 0, by(1, 2), pathtest.Options{})
		if err != nil || len(got) != 0 || *lost != 4 {
			t.Errorf("found %v (%v), %d frames lost, want 4: a broadcast, and three probes", got, err, *lost)
		}
	})
}

// A node stands still for as long as the tries of all VIDs take: it is there, and so are its paths.
func TestCheckIsNotMisledByAPauseOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		stalled, lost := stoodStill(t, links[1], 8, func(*transport.Frame) bool { return true })
		got, err := pathtest.Check(context.Background(), open(t, links[0], stalled)[0], 0, by(1, 2), pathtest.Options{})
		if err != nil || len(got) != 0 || *lost != 8 {
			t.Errorf("found %v (%v), %d frames lost, want 8: two broadcasts, and three probes by each VID", got, err, *lost)
		}
	})
}

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		e := open(t, suffering(t, links[0], fault.Config{Delay: 1, DelayMin: 3 * time.Millisecond, DelayMax: 3 * time.Millisecond}), links[1])[0]
		told := 0
		m, err := pathtest.Measure(context.Background(), e, mcd.Path{Node: 1, OptionalTag: by(7)[0]}, pathtest.Options{Count: 5}, func(mcd.PingReply, error) { told++ })
		if err != nil || m.Sent != 5 || m.Answered != 5 || told != 5 || m.Quantile(0.5) != 3*time.Millisecond || m.PeerReceivedTag != by(7)[0] {
			t.Errorf("%+v, told %d times, %v", m, told, err)
		}
		m, err = pathtest.Measure(context.Background(), e, mcd.Path{Node: 1}, pathtest.Options{Count: 2, Timeout: time.Millisecond}, nil)
		if err != nil || m.Alive() || m.Sent != 2 || m.Quantile(1) != 0 {
			t.Errorf("%+v, %v: want that none is answered in time", m, err)
		}
		brief, ctx := pathtest.Options{Timeout: 5}, context.Background() // nanoseconds: nobody can answer
		_, measure := pathtest.Measure(ctx, e, mcd.Path{Node: 1}, brief, nil)
		_, rate := pathtest.EchoRate(ctx, e, mcd.Path{Node: 1}, brief, time.Second)
		_, sweep := pathtest.Sweep(ctx, e, 1, 0, by(7), brief)
		_, check := pathtest.Check(ctx, e, 0, by(7), brief)
		for name, err := range map[string]error{"Measure": measure, "EchoRate": rate, "Sweep": sweep, "Check": check} {
			if err == nil || !strings.Contains(err.Error(), "Options.Timeout 5ns: want 1ms or more") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := pathtest.Measure(context.Background(), e, mcd.Path{Node: 9}, pathtest.Options{}, nil); !errors.Is(err, mcd.ErrUnknownNode) {
			t.Errorf("%v, want ErrUnknownNode", err)
		}
	})
}

// What was measured before the context ended is returned as all would be.
func TestMeasure_Interrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := switched(t, 2)
		e := open(t, suffering(t, links[0], fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: 9 * time.Millisecond}), links[1])[0]
		ctx, end := context.WithCancel(context.Background())
		left := 20
		m, err := pathtest.Measure(ctx, e, mcd.Path{Node: 1}, pathtest.Options{Count: 100}, func(mcd.PingReply, error) {
			if left--; left == 0 {
				end()
			}
		})
		if !errors.Is(err, context.Canceled) || m.Sent != 20 || m.Answered != 20 || !slices.IsSorted(m.RTT) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestSweepFindsTheVIDsThatWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, _ := twoTops(t)
		var all []transport.VID
		for vid := transport.VID(1); vid <= transport.MaxVID; vid++ {
			all = append(all, vid)
		}
		got, err := pathtest.Sweep(context.Background(), open(t, links...)[0], 1, 0, by(all...), pathtest.Options{})
		if err != nil || !reflect.DeepEqual(got, by(1, 2)) {
			t.Errorf("%v (%v), want VIDs 1 and 2", got, err)
		}
	})
}

// A path's rate is that of its windows, with as many frames as came back: what is lost takes none of
// the time.
func TestEchoRate(t *testing.T) {
	rate := func(loss float64) (rate float64) {
		synctest.Test(t, func(t *testing.T) {
			links := switched(t, 2)
			const delay = time.Millisecond
			links[0] = suffering(t, links[0], fault.Config{Loss: loss, Delay: 1, DelayMin: delay, DelayMax: delay})
			e := open(t, links...)[0]
			var err error
			rate, err = pathtest.EchoRate(context.Background(), e, mcd.Path{Node: 1}, pathtest.Options{}, 20*delay)
			if err != nil {
				t.Error(err)
			}
		})
		return rate
	}
	whole, lossy, none := rate(0), rate(0.2), rate(1)
	if lossy < 0.6*whole || lossy > 0.95*whole || none != 0 {
		t.Errorf("%.0f bytes/s, %.0f with a fifth lost, %.0f if all are", whole, lossy, none)
	}
}

// A node that has no others waits for what comes back of its broadcasts, too.
func TestCheck_LoopOfANodeAlone(t *testing.T) {
	for _, n := range []int{2, 1} {
		synctest.Test(t, func(t *testing.T) {
			links := switched(t, n)
			links[0] = waking{&looped{Link: links[0]}}
			faults, err := pathtest.Check(t.Context(), open(t, links...)[0], 0, by(1, 2), pathtest.Options{})
			if err != nil || len(faults) != 1 || faults[0].Kind != pathtest.Loop {
				t.Errorf("%d nodes: %v, %v; want the loop", n, faults, err)
			}
		})
	}
}
