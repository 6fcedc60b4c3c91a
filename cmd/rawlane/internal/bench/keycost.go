package bench

import (
	"context"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
)

// keyRounds is how often a run without the key and one with it take turns: what else the machine
// does meanwhile slows down both.
const keyRounds = 5

// keyCost compares runs with a key to runs without.
type keyCost struct {
	rounds, round int                  // from 0
	sum           map[measured]*result // what the rounds so far have measured
}

// measured is what a round measures.
type measured struct {
	row   int // among those of the sizes, of which some may be alike
	keyed bool
}

// newKeyCost returns a comparison of that many round trips.
func newKeyCost(iters int) *keyCost {
	return &keyCost{rounds: min(keyRounds, iters), sum: make(map[measured]*result)}
}

// share returns how many of a number of round trips are this round's.
func (k *keyCost) share(iters int) int {
	if k == nil {
		return iters
	}
	return (k.round+1)*iters/k.rounds - k.round*iters/k.rounds
}

// KeyTimes are what a key costs, and what it has done meanwhile.
type KeyTimes struct {
	PlainUS       float64 `json:"plain_p50_us"`  // without a key, in the same run
	Ratio         float64 `json:"key_ratio"`     // p50_us divided by that
	Authenticated uint64  `json:"authenticated"` // messages of the other nodes that node 0 has checked, and taken
	Refused       uint64  `json:"refused"`       // frames that node 0 has not: replayed, forged, altered, or of no key
}

// measure measures the size of a row by a function, and what the key has done meanwhile. What it
// has measured before is in the result, too.
func (k *keyCost) measure(
	ctx context.Context, c *client, row int, r *result, measure func(*client, context.Context, *result) error,
) error {
	if k == nil {
		return measure(c, ctx, r)
	}
	before := c.ep.Counters()
	if err := measure(c, ctx, r); err != nil {
		return err
	}
	after := c.ep.Counters()
	keyed := k.keyed(c.ep)
	r.KeyTimes = &KeyTimes{Refused: refused(&after) - refused(&before)}
	if keyed {
		r.Authenticated = after.RxMessages - before.RxMessages
	}
	what := measured{row, keyed}
	if earlier := k.sum[what]; earlier != nil {
		r.addPingPong(earlier)
		r.Refused += earlier.Refused
		r.Authenticated += earlier.Authenticated
	}
	k.sum[what] = r
	r.PlainUS = k.sum[measured{row, false}].P50US
	r.Ratio = r.P50US / r.PlainUS
	return nil
}

// keyed reports whether an endpoint has a key: its frames have another header.
func (*keyCost) keyed(ep *mcd.Endpoint) bool { return ep.HeaderLen() == mcd.AuthHeaderLen }

// room returns the longest payload that goes with the key, too.
func (k *keyCost) room(ep *mcd.Endpoint) int {
	if k == nil {
		return ep.MaxPayload()
	}
	return ep.MaxPayload() + ep.HeaderLen() - mcd.AuthHeaderLen
}

// ends reports whether this is the last round, whose results are those of all.
func (k *keyCost) ends() bool { return k == nil || k.round == k.rounds-1 }

// last reports whether an endpoint is that of the last run.
func (k *keyCost) last(ep *mcd.Endpoint) bool { return k == nil || k.ends() && k.keyed(ep) }

// refused sums what an endpoint has dropped for want of a right key.
func refused(c *mcd.Counters) uint64 {
	return c.DropPlain + c.DropKey + c.DropTag + c.DropReplay + c.DropStale + c.DropBudget
}

func (t *KeyTimes) heads() string {
	if t == nil {
		return ""
	}
	return "  / plain  authenticated  refused"
}

func (t *KeyTimes) columns() string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(" %8.2f %14d %8d", t.Ratio, t.Authenticated, t.Refused)
}
