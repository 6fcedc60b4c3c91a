//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is a unit's line of the report.
type row struct {
	Layer      string            `json:"layer"`
	Unit       string            `json:"unit"`
	Counts     string            `json:"counts"`
	Goal       uint64            `json:"goal"`
	Reached    uint64            `json:"reached"`
	Complete   bool              `json:"complete"`
	Violations int               `json:"violations"`
	Seconds    float64           `json:"seconds"`
	Figures    map[string]uint64 `json:"figures"`
}

func (c *campaign) rows() (all []row) {
	for _, u := range c.units {
		d := c.state.of(u)
		goal, count := u.goals[c.profile], d.Figures[u.counts]
		all = append(all, row{
			Layer: u.layer, Unit: u.name, Counts: u.counts, Goal: goal, Reached: count, Complete: count >= goal,
			Violations: len(d.Violations), Seconds: d.Seconds, Figures: d.Figures,
		})
	}
	return all
}

// report prints the table, or a line of JSON for each unit.
func (c *campaign) report(w io.Writer, asJSON bool) error {
	if asJSON {
		lines := json.NewEncoder(w)
		for _, r := range c.rows() {
			if err := lines.Encode(r); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "\nlayer\tunit\treached\tgoal\t\tviolations\twall time\n")
	for _, r := range c.rows() {
		complete := ""
		if !r.Complete {
			complete = "not reached"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s %s\t%s\t%d\t%.0f s\n",
			r.Layer, r.Unit, count3(r.Reached), count3(r.Goal), r.Counts, complete, r.Violations, r.Seconds)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return c.reportFigures(w)
}

// reportFigures prints what the units have counted besides, all units together.
func (c *campaign) reportFigures(w io.Writer) error {
	sum := map[string]uint64{}
	for _, r := range c.rows() {
		addFigures(sum, r.Figures)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t)
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		_, _ = fmt.Fprintf(t, "%s\t  %s\t\n", count3(sum[name]), name)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// count3 writes a count with a comma at each thousand.
func count3(n uint64) string {
	s := fmt.Sprint(n)
	var parts []string
	for len(s) > 3 {
		parts = append(parts, s[len(s)-3:])
		s = s[:len(s)-3]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
