//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/bench/campaign/internal/grid"
)

// gridUnit is layers L6 and L8: clusters of n nodes in all cells, and their histories.
func gridUnit(n int, atCommit uint64) *unit {
	cells := uint64(len(grid.Cells()))
	return &unit{
		layer: "L6", name: fmt.Sprintf("n=%d", n), counts: "cells", namespaces: true,
		goals: [3]uint64{atCommit, cells, cells}, pieces: [2]uint64{1, 1},
		work: func(ctx context.Context, _ *workshop, cursor, _ uint64) (result, error) {
			return runCell(ctx, fmt.Sprintf("L6 n=%d", n), &grid.Cells()[cursor%cells], n, cursor)
		},
	}
}

// deadly are the cells of which a member is gone at the end.
var deadly = []string{"kill -9", "kill -9, loss 10 %", "SIGSTOP for good", "link down for good"}

// deathsUnit is of layer L12 what virtual time does not show: how long the survivors take that are
// processes, whose schedulers and timers are real.
func deathsUnit() *unit {
	const nodes = 4
	return &unit{
		layer: "L12", name: "processes", counts: "deaths", namespaces: true,
		goals: [3]uint64{0, 12, 100}, pieces: [2]uint64{1, 1}, check: noticedInTime,
		work: func(ctx context.Context, _ *workshop, cursor, _ uint64) (result, error) {
			cells := grid.Cells()
			k := slices.IndexFunc(cells, func(c grid.Cell) bool { return c.Name == deadly[cursor%uint64(len(deadly))] })
			r, err := runCell(ctx, "L12 processes", &cells[k], nodes, cursor)
			if err == nil {
				r.figures["deaths"] = 1
			}
			return r, err
		},
	}
}

// noticedInTime judges it: 95 of 100 survivors notice a death within two peer timeouts, as in
// virtual time. The grid itself refuses more than five.
func noticedInTime(figures map[string]uint64, _ profile) error {
	all, soon := figures["deaths noticed"], figures[noticedSoon]
	if all == 0 || (all-soon)*20 > all {
		return fmt.Errorf("%d of %d deaths noticed within 2 timeouts (want 95 of 100)", soon, all)
	}
	return nil
}

const noticedSoon = "deaths noticed within 2 timeouts"

// runCell runs one cell of a unit. Its seed is its place there.
func runCell(ctx context.Context, unit string, cell *grid.Cell, n int, cursor uint64) (r result, err error) {
	dir, err := os.MkdirTemp("", "campaign-grid")
	if err != nil {
		return r, fmt.Errorf("make a folder for histories: %w", err)
	}
	o, err := cell.Run(ctx, n, cursor+1, dir)
	if err != nil {
		return r, errors.Join(fmt.Errorf("cell %q, %d nodes: %w", cell.Name, n, err), os.RemoveAll(dir))
	}
	r.figures = map[string]uint64{"cells": 1, "barriers on sockets": o.Barriers, "events of histories": o.Events}
	for _, took := range o.Noticed {
		r.figures["deaths noticed"]++
		name := "deaths noticed after ms, max"
		r.figures[name] = max(r.figures[name], uint64(took.Milliseconds()))
		if took <= 2*cell.PeerTimeout {
			r.figures[noticedSoon]++
		}
	}
	if len(o.Wrong) == 0 {
		return r, os.RemoveAll(dir)
	}
	r.violation = &violation{
		Repeat: fmt.Sprintf("go run ./bench/campaign --release --layer %q --only %d", unit, cursor),
		Output: fmt.Sprintf("cell %d, %q, %d nodes; histories in %s:\n%s", cursor, cell.Name, n, dir,
			strings.Join(o.Wrong[:min(len(o.Wrong), 20)], "\n")),
	}
	return r, nil
}
