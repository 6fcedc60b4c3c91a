package cluster_test

import (
	"context"
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
