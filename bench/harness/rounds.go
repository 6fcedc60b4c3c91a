//go:build linux

package harness

import (
	"context"
	"fmt"
	"slices"
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

// turn has a variant take a turn.
func (b *Bench) turn(ctx context.Context, v *Variant, had *turns) error {
	speed.begin(v)
	err := v.Run(ctx)
	had.last = speed.end()
	for _, r := range had.last {
		if !slices.Contains(had.all, r) {
			had.all = append(had.all, r)
		}
	}
	return err
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
