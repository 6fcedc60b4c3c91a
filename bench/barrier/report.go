//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// contestant is a way to do barriers: its mean of each round, in us.
type contestant struct {
	name   string
	chosen string // the algorithm, if it was auto's choice
	means  []float64
}

// field is the contestants with one number of processes.
type field struct {
	nodes int
	all   []*contestant
}

// add takes a round's mean of a contestant.
func (f *field) add(name string, mean float64) *contestant {
	c := f.find(name)
	if c == nil {
		c = &contestant{name: name}
		f.all = append(f.all, c)
	}
	c.means = append(c.means, mean)
	return c
}

func (f *field) find(name string) *contestant {
	for _, c := range f.all {
		if c.name == name {
			return c
		}
	}
	return nil
}

// median is the contestant's; 0 if it was left out.
func (c *contestant) median() float64 {
	if c == nil {
		return 0
	}
	return slices.Sorted(slices.Values(c.means))[len(c.means)/2]
}

// over returns how many times as long as another the contestant takes; 0 if that was left out.
func (c *contestant) over(other *contestant) float64 {
	if other == nil {
		return 0
	}
	return c.median() / other.median()
}

// best returns the fastest of those whose names begin so, but for one.
func (f *field) best(prefix, but string) (best *contestant) {
	for _, c := range f.all {
		if strings.HasPrefix(c.name, prefix) && c.name != but && (best == nil || c.median() < best.median()) {
			best = c
		}
	}
	return best
}

// faster returns the faster of two contestants, or the one that was not left out.
func (f *field) faster(a, b string) *contestant {
	x, y := f.find(a), f.find(b)
	if x == nil || y != nil && y.median() < x.median() {
		return y
	}
	return x
}

// columns are what every contestant is compared with.
var columns = []struct{ head, key, name string }{
	{"/ MPI", "ratio_to_mpi", openMPI},
	{"/ C block", "ratio_to_c_blocking", cBlocking},
	{"/ C spin", "ratio_to_c_spinning", cSpinning},
	{"/ C ring", "ratio_to_c_ring", cRing},
}

func (f *field) print(out io.Writer) {
	fmt.Fprintf(out, "Barrier among %d processes, us; median of %d rounds\n%-28s %9s %21s", f.nodes, len(f.all[0].means), "", "mean", "means of the rounds")
	for _, col := range columns {
		if f.find(col.name) != nil {
			fmt.Fprintf(out, " %9s", col.head)
		}
	}
	fmt.Fprintln(out)
	for _, c := range f.all {
		name := c.name
		if c.chosen != "" && ours+c.chosen != name {
			name += " = " + c.chosen
		}
		fmt.Fprintf(out, "%-28s %9.2f %9.2f - %9.2f", name, c.median(), slices.Min(c.means), slices.Max(c.means))
		for _, col := range columns {
			if other := f.find(col.name); other != nil {
				fmt.Fprintf(out, " %9.2f", c.over(other))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
}

func (f *field) printJSON(out io.Writer) error {
	lines := json.NewEncoder(out)
	for _, c := range f.all {
		line := map[string]any{"name": c.name, "nodes": f.nodes, "mean_us": c.median(), "rounds": len(c.means),
			"lowest_mean_us": slices.Min(c.means), "highest_mean_us": slices.Max(c.means)}
		if c.chosen != "" {
			line["chosen"] = c.chosen
		}
		for _, col := range columns {
			if other := f.find(col.name); other != nil {
				line[col.key] = c.over(other)
			}
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
