//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"sync"
	"time"
)

// campaign is a run over some units.
type campaign struct {
	profile profile
	units   []*unit
	state   *state
	shop    *workshop
	out     io.Writer // progress
	until   time.Time // no piece begins later; zero: any time
	jobs    int       // how many units are worked on at once; 0: one

	mu    sync.Mutex // guards what follows, state, out and now
	turn  int        // of units
	taken map[*unit]bool
	now   func() time.Time
}

// begin finds what each unit runs, and keeps of the state what was done with the same.
func (c *campaign) begin(ctx context.Context) error {
	for _, u := range c.units {
		code := c.state.commit
		if u.pkg != "" && c.profile != commit {
			var err error
			if code, err = c.shop.digest(ctx, u.pkg); err != nil {
				return err
			}
		}
		if c.state.begin(u, code) {
			_, _ = fmt.Fprintf(c.out, "%s begins anew: its code has changed\n", u.key())
		}
	}
	return nil
}

// run works on the units in turns, a piece of each, until all have reached their goals, or the time
// is over. A unit that has found a violation stops, and the others go on. As many units are worked
// on at once as there are jobs, each by one of them.
func (c *campaign) run(ctx context.Context) error {
	var err error
	if jobs(1, func() { err = c.begin(ctx) }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs(max(c.jobs, 1), func() {
		for u := c.take(ctx); u != nil; u = c.take(ctx) {
			if err := c.piece(ctx, u); err != nil {
				cancel(err)
			}
			c.giveBack(u)
		}
	})
	err = context.Cause(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopped (the same command goes on from here): %w", err)
	}
	return err
}

// jobs has a number of goroutines work at once, each on a thread of its own: what they start ends
// with that, and so with this process.
func jobs(n int, work func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			work()
		})
	}
	all.Wait()
}

// take returns the unit whose turn it is, for one job: nil if none is left that no job has, or
// nothing new begins.
func (c *campaign) take(ctx context.Context) *unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	for range c.units {
		u := c.units[c.turn%len(c.units)]
		c.turn++
		if c.taken[u] || c.finished(u) {
			continue
		}
		if !c.until.IsZero() && !c.now().Before(c.until) {
			return nil
		}
		if c.taken == nil {
			c.taken = map[*unit]bool{}
		}
		c.taken[u] = true
		return u
	}
	return nil
}

func (c *campaign) giveBack(u *unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, u)
}

// only has each unit do one piece, from its own place.
func (c *campaign) only(cursor uint64) {
	for _, u := range c.units {
		c.state.of(u).Cursor = cursor
		u.goals[c.profile] = 1
	}
}

// finished reports whether nothing of a unit is left to do.
func (c *campaign) finished(u *unit) bool {
	d := c.state.of(u)
	return len(d.Violations) > 0 || d.Figures[u.counts] >= u.goals[c.profile]
}

// piece does one piece of a unit.
func (c *campaign) piece(ctx context.Context, u *unit) error {
	c.mu.Lock()
	d := c.state.of(u)
	began := c.now()
	c.mu.Unlock()
	size := u.pieceSize(c.profile)
	r, err := u.work(ctx, c.shop, d.Cursor, size)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", u.key(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.violation == nil && r.figures[u.counts] == 0 {
		return fmt.Errorf("%s: a piece of %d steps from %d on has no %s: its test ran nothing",
			u.key(), size, d.Cursor, u.counts)
	}
	if r.violation == nil && u.check != nil && d.Figures[u.counts]+r.figures[u.counts] >= u.goals[c.profile] {
		all := maps.Clone(d.Figures)
		addFigures(all, r.figures)
		if err := u.check(all, c.profile); err != nil {
			repeat := fmt.Sprintf("go run ./bench/campaign --%v --layer %q", c.profile, u.key())
			r.violation = &violation{Repeat: repeat, Output: err.Error()}
		}
	}
	if err := c.state.add(u, size, r, c.now().Sub(began)); err != nil {
		return err
	}
	c.progress(u, d)
	if r.violation != nil {
		_, err = fmt.Fprintf(c.out, "\nVIOLATION of %s at commit %s\n%s\nrepeat: %s\n\n",
			u.key(), c.state.commit, r.violation.Output, r.violation.Repeat)
	}
	return err
}

func (c *campaign) progress(u *unit, d *done) {
	goal, count := u.goals[c.profile], d.Figures[u.counts]
	rate := 0.0
	if d.Seconds > 0 {
		rate = float64(count) / d.Seconds
	}
	left := ""
	if rate > 0 && count < goal {
		left = ", " + (time.Duration(float64(goal-count)/rate) * time.Second).String() + " of its own time left"
	}
	_, _ = fmt.Fprintf(c.out, "%s  %-22s %s of %s %s, %.3g/s%s\n",
		c.now().Format(time.TimeOnly), u.key(), count3(count), count3(goal), u.counts, rate, left)
}

// errViolation is what a campaign ends with that has found something.
var errViolation = errors.New("promises are broken: see VIOLATION above")

// verdict is the campaign's error: nil if no promise is broken.
func (c *campaign) verdict() error {
	all := c.state.violations()
	if len(all) == 0 {
		return nil
	}
	for _, v := range all {
		_, _ = fmt.Fprintf(c.out, "VIOLATION of %s at commit %s: %s\n%s\n", v.Unit, v.Commit, v.Repeat, v.Output)
	}
	return errViolation
}
