package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Post exposes this process' memory to some ranks, which Start, until Wait: MPI_Win_post. It does
// not wait. Errors: ErrEpoch before the last one is over; ErrRank, ErrFreed, ErrClosed; a
// *ProcessError.
func (v *window) Post(ranks ...int) error {
	members, err := v.group(ranks)
	w := v.w
	w.mu.Lock()
	if err == nil {
		err = v.unfenced()
	}
	if err == nil && v.exposed != nil {
		err = ErrEpoch
	}
	if err = errors.Join(err, v.anyUnusable(members)); err != nil {
		w.mu.Unlock()
		return fmt.Errorf("post: %w", err)
	}
	v.exposed, v.fenced = members, false
	for _, m := range members {
		v.tell(m, &wire.WindowRecord{Kind: wire.Post})
		w.mu.Lock()
	}
	w.mu.Unlock()
	return nil
}

// Start begins an epoch at some ranks, once they have called Post with this one: MPI_Win_start.
// Errors: ErrEpoch in another epoch but a fence's; those of Post; ctx's. Then it has not begun.
func (v *window) Start(ctx context.Context, ranks ...int) error {
	members, err := v.group(ranks)
	for _, m := range members {
		v.expect(m)
	}
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		err = v.unfenced()
	}
	if err == nil {
		err = v.await(ctx, func() (bool, error) {
			if v.usable(nil) == nil && (v.started != nil || v.holdsLock()) { // by another goroutine meanwhile, too
				return false, ErrEpoch
			}
			posted := true
			for _, m := range members {
				posted = posted && m.posts > 0
			}
			return posted, v.anyUnusable(members)
		})
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for _, m := range members {
		m.posts--
		m.started = true
	}
	v.started, v.fenced = members, false
	v.wake()
	return nil
}

// Complete ends the epoch that Start has begun: MPI_Win_complete. It does not wait; what was done
// is in place when the other processes' Wait returns. Errors: ErrEpoch without such an epoch;
// ErrFreed, ErrClosed; a *ProcessError for each that is down: the epoch is over all the same.
func (v *window) Complete() error {
	w := v.w
	w.mu.Lock()
	err := v.usable(nil)
	if err == nil && v.started == nil {
		err = ErrEpoch
	}
	if err != nil {
		w.mu.Unlock()
		return fmt.Errorf("complete: %w", err)
	}
	members := v.started
	v.started = nil
	for _, m := range members {
		m.started = false
		err = errors.Join(err, m.p.err)
		v.tell(m, &wire.WindowRecord{Kind: wire.Complete})
		w.mu.Lock()
	}
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	return nil
}

// Wait ends the exposure that Post has begun, once all those ranks have called Complete or are
// down: MPI_Win_wait. Errors: ErrEpoch without an exposure; ErrFreed, ErrClosed; ctx's, and then it
// goes on; a *ProcessError for each that is down before its Complete.
func (v *window) Wait(ctx context.Context) error {
	w := v.w
	w.mu.Lock()
	exposed, exposures := v.exposed, v.exposures
	err := v.usable(nil)
	w.mu.Unlock()
	if err == nil && exposed == nil {
		err = ErrEpoch
	}
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	for _, m := range exposed {
		v.expect(m)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err = v.await(ctx, func() (bool, error) {
		if v.usable(nil) == nil && v.exposures != exposures { // another goroutine has ended it
			return false, ErrEpoch
		}
		over := true
		for _, m := range exposed {
			over = over && (m.completes > 0 || v.usable(m) != nil)
		}
		return over, v.usable(nil)
	})
	if err == nil {
		for _, m := range exposed {
			if m.completes > 0 {
				m.completes--
			} else {
				err = errors.Join(err, v.usable(m))
			}
		}
		v.exposed = nil
		v.exposures++
		v.wake()
	}
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

// group returns the members of some ranks; of ProcNull there is none.
func (v *window) group(ranks []int) ([]*member, error) {
	members := make([]*member, 0, len(ranks)) // not nil
	for _, rank := range ranks {
		if rank == ProcNull {
			continue
		}
		if err := v.comm.checkRank(rank); err != nil {
			return nil, err
		}
		if slices.Contains(members, v.members[rank]) {
			return nil, fmt.Errorf("rank %d: %w: it is named twice", rank, ErrRank)
		}
		members = append(members, v.members[rank])
	}
	return members, nil
}

// anyUnusable is usable of several members. The caller holds World.mu.
func (v *window) anyUnusable(members []*member) error {
	err := v.usable(nil)
	for _, m := range members {
		if err == nil {
			err = v.usable(m)
		}
	}
	return err
}
