package mcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Probes of a drain are sent in rounds, to all paths that have not answered: after firstProbe
// again, and then after twice as long each time, to lastProbe. An answer takes tens of microseconds
// where nodes wait for it, and a millisecond where they must be woken first. The answer to any
// round's probe will do, however long it takes: all of them follow what is held back.
const (
	firstProbe = 5 * time.Millisecond
	lastProbe  = 200 * time.Millisecond
	// maxRounds bounds the rounds whose answers count, to those of the last ten seconds or so.
	maxRounds = 64
)

// arrivals is a drain's wait for all that was sent by its paths, in groups, each of which waits for
// its own. A path may be of several groups.
type arrivals struct {
	e      *Endpoint
	paths  []Path // one for each lane
	lanes  map[laneID]int
	of     [][]int // by path: its groups
	groups [][]int // the paths of each

	// What follows belongs to the goroutine that drains.
	done  []bool   // by group
	open  int      // groups that are not done
	sent  []uint32 // by path: the last round in which a probe was sent
	round uint32   // from 1

	arrived []atomic.Bool // by path; written with mu held

	mu     sync.Mutex  // guards what follows; taken inside the poll lock
	rounds []uint32    // the number of the first path's probe in each round; the others' follow
	left   []int       // by group: paths that have not arrived
	ready  []int       // groups of which all have, since the last look
	news   *Completion // done when there are such
	over   bool        // answers do not count any more
}

// laneID names a lane of the endpoint.
type laneID struct {
	node NodeID
	nic  int
}

func newArrivals(e *Endpoint, groups int) *arrivals {
	return &arrivals{e: e, lanes: make(map[laneID]int), groups: make([][]int, groups), open: groups,
		done: make([]bool, groups), left: make([]int, groups), news: new(Completion)}
}

// add has a group wait for a path.
func (a *arrivals) add(group int, p Path) {
	id := laneID{p.Node, p.NIC}
	i, known := a.lanes[id]
	if !known {
		i = len(a.paths)
		a.lanes[id] = i
		a.paths = append(a.paths, p)
		a.of = append(a.of, nil)
	}
	if !slices.Contains(a.of[i], group) {
		a.of[i] = append(a.of[i], group)
		a.groups[group] = append(a.groups[group], i)
		a.left[group]++
	}
}

// await calls change for each group: without an error when all has arrived, several groups at once
// perhaps, and with one where that cannot be awaited, or has not come to pass when ctx ends. It
// lets lanes go behind the changes of all their groups.
func (a *arrivals) await(ctx context.Context, change func(groups []int, err error)) {
	a.sent, a.arrived = make([]uint32, len(a.paths)), make([]atomic.Bool, len(a.paths))
	for g, left := range a.left {
		if left == 0 {
			a.ready = append(a.ready, g)
		}
	}
	defer a.e.WatchProbes(a.onProbe)()
	start := clock.Now()
	next, pause, retry := start, firstProbe, sendRetry
	for {
		if clock.Now().Sub(next) >= 0 {
			a.beginRound()
			next, pause, retry = clock.Now().Add(pause), min(2*pause, lastProbe), sendRetry
		}
		full := a.probe(change)
		over := ctx.Err() // looked at once: it may end in any instant
		closed := a.e.err()
		ready, news := a.take(over != nil || closed != nil)
		a.finish(ready, nil, change)
		switch {
		case a.open == 0:
			return
		case closed != nil:
			a.finish(a.unfinished(), closed, change)
			return
		case over != nil:
			a.finish(a.unfinished(), a.silence(start, over), change)
			return
		}
		wait := next.Sub(clock.Now())
		if full {
			wait = min(wait, retry)
			retry = min(2*retry, maxSendRetry)
		}
		until, cancel := context.WithTimeout(ctx, wait)
		_ = a.e.Await(until, news) // what has ended it is looked at above
		cancel()
	}
}

// beginRound has probes be sent to all paths that have not answered. Each round has numbers of its
// own, one for each path: what has the number of a probe that the link refused is no answer.
func (a *arrivals) beginRound() {
	n := uint32(len(a.paths))
	first := a.e.probes.last.Add(n) - n + 1
	a.round++
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rounds) == maxRounds {
		a.rounds = a.rounds[:copy(a.rounds, a.rounds[1:])]
	}
	a.rounds = append(a.rounds, first)
}

// probe sends the probes of this round that were not sent yet, and finishes the groups of those
// that cannot be. It reports whether a link had no room for some. Others do not wait for these: a
// link may refuse what is for one destination alone.
func (a *arrivals) probe(change func(groups []int, err error)) (full bool) {
	first := a.rounds[len(a.rounds)-1] // no other goroutine writes it
	for i, p := range a.paths {
		if a.sent[i] == a.round || !a.isAwaited(i) || a.arrived[i].Load() {
			continue
		}
		var err error
		if a.e.isLeft(p.NIC) {
			err = a.e.sendProbe(p, ProbeOptions{}, first+uint32(i))
		}
		switch {
		case errors.Is(err, transport.ErrBusy):
			full = true
			continue
		case !a.e.isLeft(p.NIC): // nothing is under way by a link that is gone
			a.arrive(i)
		case err != nil:
			a.finish(a.of[i], err, change)
		}
		a.sent[i] = a.round
	}
	return full
}

// onProbe takes in a reply. The caller holds the poll lock.
func (a *arrivals) onProbe(p *Probe) {
	if !p.Reply {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, first := range a.rounds {
		i := p.Number - first
		if i < uint32(len(a.paths)) && a.e.isReply(a.paths[i], p) {
			a.count(int(i))
			return
		}
	}
}

// arrive notes that all that was sent by a path has arrived.
func (a *arrivals) arrive(path int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(path)
}

// count is arrive. The caller holds mu.
func (a *arrivals) count(path int) {
	if a.over || a.arrived[path].Swap(true) {
		return
	}
	for _, g := range a.of[path] {
		if a.left[g]--; a.left[g] > 0 {
			continue
		}
		if a.ready = append(a.ready, g); len(a.ready) == 1 {
			a.news.Complete(nil)
		}
	}
}

// isAwaited reports whether a group of the path is not done.
func (a *arrivals) isAwaited(path int) bool {
	return slices.ContainsFunc(a.of[path], func(g int) bool { return !a.done[g] })
}

// take returns the groups whose paths have all arrived since the last call, and what is done as
// soon as there are others. After the last call there are none.
func (a *arrivals) take(last bool) (ready []int, news *Completion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ready, a.ready, a.over = a.ready, nil, last
	if len(ready) > 0 {
		a.news = new(Completion)
	}
	return ready, a.news
}

// unfinished returns the groups that are not done.
func (a *arrivals) unfinished() (groups []int) {
	for g, done := range a.done {
		if !done {
			groups = append(groups, g)
		}
	}
	return groups
}

// finish calls change for those of the groups that are not done, and lets go what waits for no
// other group.
func (a *arrivals) finish(groups []int, err error, change func(groups []int, err error)) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g int) bool { return a.done[g] })
	if len(groups) == 0 {
		return
	}
	for _, g := range groups {
		a.done[g] = true
	}
	a.open -= len(groups)
	change(groups, err)
	var free []Path
	for _, g := range groups {
		for _, i := range a.groups[g] {
			if !a.isAwaited(i) {
				free = append(free, a.paths[i])
			}
		}
	}
	a.e.release(free)
}

// silence is the error of what has not arrived when ctx has ended. It names the first path, and
// says how many there are.
func (a *arrivals) silence(start monotime.Time, over error) error {
	var first Path
	silent := 0
	for i, p := range a.paths {
		if a.arrived[i].Load() || !a.isAwaited(i) {
			continue
		}
		if silent == 0 {
			first = p
		}
		silent++
	}
	err := error(&NoAnswerError{Path: first, Silent: clock.Now().Sub(start), Keys: a.e.KeyMismatch(), cause: over})
	if silent > 1 {
		err = fmt.Errorf("%w (one of %d silent paths)", err, silent)
	}
	return err
}
