package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// stall is a context that holds up who asks whether it is over, once, from an instant on.
type stall struct {
	context.Context
	from time.Time
	hold func()
}

func (s *stall) Err() error {
	if hold := s.hold; hold != nil && time.Now().After(s.from) {
		s.hold = nil
		hold()
	}
	return s.Context.Err()
}

// A machine that stood still, as a virtual one may for a minute, does not take that for the silence
// of the others: it has not read yet what they have sent, and they may have stood still with it.
func TestExchanger_StandstillIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		x, err := cluster.OpenExchanger(eps[0], cluster.ExchangerConfig{PeerTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx := &stall{Context: t.Context(), from: time.Now().Add(5 * time.Second), hold: func() {
			time.Sleep(time.Minute)
			answer := func(mcd.NodeID, []byte) ([]byte, bool) { return []byte("here"), true }
			if _, err := cluster.OpenExchanger(eps[1], cluster.ExchangerConfig{Answer: answer}); err != nil {
				t.Error(err)
			}
		}}
		if b, err := x.Ask(ctx, 1, nil); string(b) != "here" || err != nil {
			t.Errorf("%q, %v, want the answer of the node that stood still, too", b, err)
		}
	})
}

// A deadline ends a wait for others also where the machine stood still until then: that time was
// not spent on waiting, and the error says so.
func TestStandstill_IsTold(t *testing.T) {
	const timeout, still = 30 * time.Second, time.Minute
	for name, hold := range map[string]time.Duration{"stood still": still, "ran": 0} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			x, err := cluster.OpenExchanger(eps[0], cluster.ExchangerConfig{})
			if err != nil {
				t.Fatal(err)
			}
			told := func(call string, stood time.Duration, err error) {
				if !errors.Is(err, context.DeadlineExceeded) || max(hold-stood, stood-hold) > time.Second ||
					strings.Contains(err.Error(), "stood still") != (hold > 0) {
					t.Errorf("%s, %s: stood still for %v (%v), want %v", name, call, stood, err, hold)
				}
			}
			stalled := func() context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				t.Cleanup(cancel)
				return &stall{Context: ctx, from: time.Now().Add(5 * time.Second), hold: func() { time.Sleep(hold) }}
			}
			_, err = cluster.Join(stalled(), eps[0], cluster.Config{Nodes: 2})
			var incomplete *cluster.IncompleteError
			if !errors.As(err, &incomplete) {
				t.Fatalf("%s: join: %v", name, err)
			}
			told("join", incomplete.Stood, err)
			_, err = x.Exchange(stalled(), nil)
			var missing *cluster.MissingError
			if !errors.As(err, &missing) {
				t.Fatalf("%s: exchange: %v", name, err)
			}
			told("exchange", missing.Stood, err)
		})
	}
}
