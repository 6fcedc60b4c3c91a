package barrier_test

import (
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// logged opens a cluster in which node 0 alone has a service so far, and keeps the attributes of its
// log's entries.
func logged(t *testing.T, size int) (eps []*mcd.Endpoint, s *barrier.Service, entries *[]map[string]any) {
	entries = new([]map[string]any)
	handle := func(r slog.Record) {
		all := map[string]any{}
		r.Attrs(func(a slog.Attr) bool { all[a.Key] = a.Value.Any(); return true })
		*entries = append(*entries, all)
	}
	eps = mcdtest.Open(t, size, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
	s = service(t, eps[0], barrier.Config{Logger: slog.New(callingHandler{slog.DiscardHandler, handle})})
	t.Cleanup(func() { _ = s.Close() })
	return eps, s, entries
}

// A barrier is late from the very moment that Late has passed. The entry tells apart those that have
// entered, have not, have no group, and do not answer; it is made once.
func TestLate_TellsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first = 3 * time.Millisecond // when the service looks at a barrier that waits
		eps, s, entries := logged(t, 5)
		cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent(), PeerTimeout: time.Minute, Late: first}
		g := group(t, s, cfg)
		for _, k := range []int{1, 2, 3} {
			other := service(t, eps[k], barrier.Config{})
			defer other.Close()
			if cfg.Late = 0; k != 3 {
				members := group(t, other, cfg)
				if k == 1 {
					arrive(t, members, barrier.Options{Number: 7})
				}
			}
		}
		synctest.Wait()
		arrive(t, g, barrier.Options{Number: 7})
		time.Sleep(5 * time.Second)
		synctest.Wait() // for the logger
		want := []map[string]any{{
			"number": uint64(7), "generation": uint64(1), "waited": 3 * first,
			"not_entered": []mcd.NodeID{2, 3}, "no_answer": []mcd.NodeID{4},
		}}
		if !reflect.DeepEqual(*entries, want) {
			t.Errorf("logged %v, want %v", *entries, want)
		}
	})
}

// A barrier that was refused, as its group has lost a member, is not late, however long ago that was.
func TestLate_NotOfABarrierThatWasNotEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, entries := logged(t, 2)
		broken := group(t, s, barrier.GroupConfig{PeerTimeout: time.Second, Late: 1500 * time.Millisecond})
		downOf(t, broken.Barrier(limit(t)))
		if _, err := broken.ArriveWith(barrier.Options{Number: 1}); err == nil {
			t.Fatal("a group without a member has barriers")
		}
		arrive(t, group(t, s, barrier.GroupConfig{ID: 1, PeerTimeout: time.Minute}), barrier.Options{}) // has the service look
		time.Sleep(10 * time.Second)
		synctest.Wait() // for the logger
		if len(*entries) != 0 {
			t.Errorf("logged %v", *entries)
		}
	})
}

// The answers have time to come, also where a barrier of another group has the service look meanwhile.
func TestLate_WaitsForTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first = 3 * time.Millisecond // when the service looks at a barrier that waits
		eps, s, entries := logged(t, 2)
		other := service(t, eps[1], barrier.Config{})
		defer other.Close()
		var groups [2]*barrier.Group
		for id := range groups {
			cfg := barrier.GroupConfig{ID: uint32(id), PeerTimeout: time.Minute}
			group(t, other, cfg)
			if id == 0 {
				cfg.Late = first
			}
			groups[id] = group(t, s, cfg)
		}
		var held atomic.Bool // what node 1 gets
		stop, err := eps[1].OpenPort(1, mcd.PortOptions{Receive: func([]mcd.Message, bool) {
			for held.Load() {
				time.Sleep(100 * time.Microsecond)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		arrive(t, groups[0], barrier.Options{})
		time.Sleep(time.Millisecond)
		arrive(t, groups[1], barrier.Options{})
		time.Sleep(first - 2*time.Millisecond)
		held.Store(true) // until both barriers were looked at
		p, err := eps[0].OpenPort(1, mcd.PortOptions{})
		if err == nil {
			err = p.Send(limit(t), stop.Addr(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(first)
		held.Store(false)
		time.Sleep(time.Second)
		synctest.Wait() // for the logger
		want := []map[string]any{{
			"number": uint64(0), "generation": uint64(1), "waited": 3 * first,
			"not_entered": []mcd.NodeID{1}, "no_answer": []mcd.NodeID(nil),
		}}
		if !reflect.DeepEqual(*entries, want) {
			t.Errorf("logged %v, want %v", *entries, want)
		}
	})
}

// Close returns once the logger has, which a program closes then: a first call, and one beside it.
func TestLate_CloseWaitsForTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, goOn := make(chan struct{}), make(chan struct{})
		handle := func(slog.Record) { close(logs); <-goOn }
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		s := service(t, eps[0], barrier.Config{Logger: slog.New(callingHandler{slog.DiscardHandler, handle})})
		arrive(t, group(t, s, barrier.GroupConfig{PeerTimeout: time.Minute, Late: time.Second}), barrier.Options{})
		<-logs
		var returned atomic.Int32
		for range 2 {
			go func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				returned.Add(1)
			}()
		}
		time.Sleep(time.Hour) // the other node answers no goodbye
		if n := returned.Load(); n != 0 {
			t.Errorf("%d calls of Close have returned while the logger runs", n)
		}
		close(goOn)
		synctest.Wait()
		if n := returned.Load(); n != 2 {
			t.Errorf("%d calls of Close have returned, want 2", n)
		}
	})
}
