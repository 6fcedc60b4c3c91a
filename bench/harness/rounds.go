//go:build linux

package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Variant is one of the programs that a benchmark compares. Run adds its results of a round to
// tables.
type Variant struct {
	Name string
	Rows []string // names of the rows that Run adds to; the variant's own if empty
	Run  func(context.Context) error

	MayFail bool // and is left out then, with what it has added: a program of others, or what a machine may lack
}

// turns are those of a variant so far.
type turns struct {
	last []*Row // that have got results in the last one
	all  []*Row // and in any
}

// RunRounds runs the variants in turns, so that a slow moment of the machine slows all of them.
// Where limits are to be met, those of which some results were slowed have further turns: at most
// as many again, and three times as many while fewer than half of what was asked for were not.
func (b *Bench) RunRounds(ctx context.Context, all []Variant) error {
	if b.watches {
		defer speed.watch(ctx)()
	}
	all = slices.Clone(all)
	had := make([]turns, len(all))
	for round := range 4 * b.Rounds {
		for k := range all {
			v, had := &all[k], &had[k]
			if v.Run == nil || round >= b.Rounds && !b.lacksRounds(had.last, round) {
				continue
			}
			err := b.turn(ctx, v, had)
			switch {
			case err == nil:
			case ctx.Err() == nil && v.MayFail:
				b.LeftOut(fmt.Errorf("%s: %w", v.Name, err))
				v.Run = nil
				for _, r := range had.all {
					r.dropBy(v)
				}
			default:
				return fmt.Errorf("%s: %w", v.Name, err)
			}
		}
	}
	return nil
}

// turnPatience is how long a turn may take whose iterations are the default: several times what the
// longest does, on a slow machine.
const turnPatience = 10 * time.Minute

// most is how long a turn may take: longer in proportion where there are more iterations.
func (b *Bench) most() time.Duration {
	const longest = 1000 * time.Hour
	most := float64(cmp.Or(b.patience, turnPatience)) * max(1, float64(b.Iters)/float64(max(b.usual, 1)))
	return time.Duration(min(most, float64(longest)))
}

// turn has a variant take a turn. No program ends by itself in which one waits for another one that
// it does not hear.
func (b *Bench) turn(ctx context.Context, v *Variant, had *turns) error {
	ranOut := fmt.Errorf("took more than %v", b.most())
	ctx, cancel := context.WithTimeoutCause(ctx, b.most(), ranOut)
	defer cancel()
	speed.begin(v)
	err := v.Run(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	had.last = speed.end()
	for _, r := range had.last {
		if !slices.Contains(had.all, r) {
			had.all = append(had.all, r)
		}
	}
	if err == nil {
		err = had.check()
	}
	return err
}

// errNothing: a variant has added nothing in its turn.
var errNothing = errors.New("no result")

// check returns an error if the last turn had no result, or one that is none: of a number that was
// not there, or by nothing. It would be taken for as good as can be, or left out in silence.
func (t *turns) check() error {
	if len(t.last) == 0 {
		return errNothing
	}
	for _, r := range t.last {
		for _, value := range slices.Concat(r.Values, r.second) {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return fmt.Errorf("%s: %w: %v", r.Name, errNothing, value)
			}
		}
	}
	return nil
}

// lacksRounds reports whether a variant is to have a further turn: some of its results were slowed,
// and not nearly all of them, as on a machine that is always slow.
func (b *Bench) lacksRounds(rows []*Row, round int) bool {
	want := b.Rounds
	if round >= 2*b.Rounds {
		want = (b.Rounds + 1) / 2
	}
	lacks, slowed, all := false, 0, 0
	for _, r := range rows {
		n := r.slowed()
		lacks = lacks || len(r.Values)-n < want
		slowed, all = slowed+n, all+len(r.Values)
	}
	return b.limits && lacks && 8*slowed <= 7*all
}
