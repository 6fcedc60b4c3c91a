//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
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
			return runCell(ctx, n, cursor)
		},
	}
}

// runCell runs one cell. Its seed is its place.
func runCell(ctx context.Context, n int, cursor uint64) (r result, err error) {
	cells := grid.Cells()
	cell := &cells[cursor%uint64(len(cells))]
	dir, err := os.MkdirTemp("", "campaign-grid")
	if err != nil {
		return r, fmt.Errorf("make a folder for histories: %w", err)
	}
	o, err := cell.Run(ctx, n, cursor+1, dir)
	if err != nil {
		return r, fmt.Errorf("cell %q, %d nodes: %w", cell.Name, n, err)
	}
	r.figures = map[string]uint64{"cells": 1, "barriers on sockets": o.Barriers, "events of histories": o.Events}
	for _, took := range o.Noticed {
		r.figures["deaths noticed"]++
		name := "deaths noticed after ms, max"
		r.figures[name] = max(r.figures[name], uint64(took.Milliseconds()))
	}
	if len(o.Wrong) == 0 {
		return r, os.RemoveAll(dir)
	}
	r.violation = &violation{
		Repeat: fmt.Sprintf("go run ./bench/campaign --release --layer %q --only %d --state again.json",
			fmt.Sprintf("L6 n=%d", n), cursor),
		Output: fmt.Sprintf("cell %d, %q, %d nodes; histories in %s:\n%s", cursor, cell.Name, n, dir,
			strings.Join(o.Wrong[:min(len(o.Wrong), 20)], "\n")),
	}
	return r, nil
}
