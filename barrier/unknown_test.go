package barrier_test

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// A message of a group that a node has not made, or has left, gets one answer at most: that there is no
// such group, or goodbye. What needs none gets none, also from a node that has the group.
func TestAnswersWhereAGroupIsNotThere(t *testing.T) {
	query, told := &agreement.Report{Query: true}, &agreement.Report{}
	for _, c := range []struct {
		message engine.Message
		unknown engine.Kind // the answer where the group was never made; 0: none
		left    engine.Kind // the answer where it was left
	}{
		{engine.Message{Kind: engine.Notify}, 0, 0},
		{engine.Message{Kind: engine.Nack, Heard: true}, engine.NoSuchGroup, engine.Bye},
		{engine.Message{Kind: engine.Nack}, engine.NoSuchGroup, engine.Bye},
		{engine.Message{Kind: engine.NotYet}, 0, 0},
		{engine.Message{Kind: engine.Fail, Failure: &engine.Failure{Ranks: []int{0}, Reasons: []engine.Reason{engine.OtherAlgorithm}}}, 0, 0},
		{engine.Message{Kind: engine.Bye}, engine.ByeAck, engine.ByeAck},
		{engine.Message{Kind: engine.ByeAck}, 0, 0},
		{engine.Message{Kind: engine.StatusRequest}, engine.NoSuchGroup, engine.NoSuchGroup},
		{engine.Message{Kind: engine.StatusReply}, 0, 0},
		{engine.Message{Kind: engine.NoSuchGroup, Answers: engine.Nack}, 0, 0},
		{engine.Message{Kind: engine.Report, Report: query}, engine.NoSuchGroup, engine.Bye},
		{engine.Message{Kind: engine.Report, Report: told}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			s := service(t, eps[0], barrier.Config{})
			defer s.Close()
			var got []engine.Message
			port, err := eps[1].OpenPort(barrier.DefaultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
				for i := range batch {
					var m engine.Message
					if err := engine.Parse(batch[i].Payload, &m); err != nil {
						t.Error(err)
					}
					got = append(got, m)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			send := func(m engine.Message) (answers []engine.Message) {
				synctest.Wait()
				got = nil
				if err := port.TrySend(0, mcd.To(mcd.Addr{Node: 0, Port: barrier.DefaultPort}), m.Append(nil)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				return got
			}
			m := c.message
			m.Number, m.Incarnation, m.Generation = 3, 99, 1
			m.Identity = engine.Identity{Hash: 12345, Epoch: 2}
			want := []engine.Message{{Kind: c.unknown, Number: 3, Identity: m.Identity, Generation: 1}}
			if c.unknown == engine.NoSuchGroup {
				want[0].Answers, want[0].Heard = m.Kind, m.Heard
			}
			if c.unknown == 0 {
				want = nil
			}
			if m.Kind == engine.Report { // its generation is its version
				m.Report.Version = m.Generation
			}
			if answers := send(m); !reflect.DeepEqual(answers, want) {
				t.Errorf("%v of an unknown group: answered %+v, want %+v", m.Kind, answers, want)
			}

			g := group(t, s, barrier.GroupConfig{Algorithm: schedule.Concurrent(), PeerTimeout: time.Minute})
			arrive(t, g, barrier.Options{Number: 3})
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
			m.Identity = got[len(got)-1].Identity
			_ = g.Close()
			answers := send(m)
			if c.left == 0 && len(answers) != 0 || c.left != 0 && (len(answers) != 1 || answers[0].Kind != c.left) {
				t.Errorf("%v of a group that was left: answered %+v, want %v", m.Kind, answers, c.left)
			}
		})
	}
}

// A node that has not made a group consents to one set of the members that are gone, and to what contains
// that. When it makes the group it has them itself.
func TestConsentWhereAGroupIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 4, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		late, early := service(t, eps[2], barrier.Config{}), service(t, eps[1], barrier.Config{})
		defer late.Close()
		defer early.Close()
		var mu sync.Mutex
		var got []engine.Message
		port, err := eps[0].OpenPort(barrier.DefaultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
			mu.Lock()
			defer mu.Unlock()
			for i := range batch {
				var m engine.Message
				if err := engine.Parse(batch[i].Payload, &m); err != nil {
					t.Error(err)
				}
				got = append(got, m)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		take := func() (all []engine.Message) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			all, got = got, nil
			return all
		}
		cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent(), PeerTimeout: time.Minute}
		arrive(t, group(t, early, cfg), barrier.Options{})
		time.Sleep(5 * time.Millisecond)
		identity := take()[0].Identity // of what it tells the first member

		const version = 7
		for _, c := range []struct {
			gone     []int
			consents bool
		}{
			{nil, true}, {[]int{3}, true}, {[]int{1}, false}, {[]int{3}, true}, {nil, true},
			{[]int{1, 3}, true}, {[]int{3}, false}, {[]int{0, 1, 3}, true}, {[]int{1, 3}, false},
		} {
			m := engine.Message{Kind: engine.Report, Identity: identity, Generation: version, Incarnation: 99, Report: &agreement.Report{Query: true}}
			for _, rank := range c.gone {
				m.Report.Gone = append(m.Report.Gone, agreement.Gone{Rank: rank, Reason: agreement.Silent})
			}
			take()
			if err := port.TrySend(0, mcd.To(mcd.Addr{Node: 2, Port: barrier.DefaultPort}), m.Append(nil)); err != nil {
				t.Fatal(err)
			}
			answers := take()
			if len(answers) != 1 || answers[0].Kind != engine.NoSuchGroup || (answers[0].Generation == version) != c.consents {
				t.Errorf("asked about %v: %+v; consents: want %v", c.gone, answers, c.consents)
			}
		}

		take()
		g := group(t, late, cfg)
		if down := downOf(t, g.Barrier(t.Context())); !slices.Equal(down.Nodes, []mcd.NodeID{0, 1, 3}) {
			t.Errorf("nodes %v are down, want 0, 1 and 3", down.Nodes)
		}
	})
}
