//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/bench/campaign/internal/grid"
	"github.com/rawlane/rawlane/internal/testbed"
)

// options are the flags.
type options struct {
	profiles [3]bool
	hours    float64
	layers   string
	state    string
	only     int64
	jobs     int
	asJSON   bool
	list     bool
}

func main() {
	if grid.Node() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// start parses the flags and runs. It returns the exit status.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("campaign", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.profiles[commit], "commit", false, "what runs with each commit: some minutes")
	flags.BoolVar(&o.profiles[nightly], "nightly", false, "what runs at night")
	flags.BoolVar(&o.profiles[release], "release", false, "what runs before a release: the full size")
	flags.Float64Var(&o.hours, "hours", 0, "begin nothing new after so many hours; 0: until all is done")
	flags.StringVar(&o.layers, "layer", "", "only these layers or units: L1,L3 or \"L1 barrier\"")
	flags.StringVar(&o.state, "state", "", "the file that keeps what is done (default .campaign/PROFILE.json)")
	flags.Int64Var(&o.only, "only", -1,
		"one piece alone, that with this number, without a state: what repeats a failure says it")
	flags.IntVar(&o.jobs, "jobs", 1, "work on so many units at once: for those that measure no times, as L1 and L4")
	flags.BoolVar(&o.asJSON, "json", false, "print the figures as JSON, a line for each unit")
	flags.BoolVar(&o.list, "list", false, "list the units and their goals, and run nothing")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/rawlane/rawlane")
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "campaign: find the tree (run this in the repository): %v\n", err)
		return 1
	}
	all, err := layers(root)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "campaign: %v\n", err)
		return 1
	}
	p, units, err := o.choose(all, flags.Args())
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "campaign: %v\n", err)
		flags.Usage()
		return 2
	}
	if o.list {
		list(stdout, units)
		return 0
	}
	if err := o.campaign(ctx, root, p, units, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "campaign: %v\n", err)
		return 1
	}
	return 0
}

// maxHours is longer than anybody waits.
const maxHours = 10_000

// choose returns the profile, and those of all units that are to run.
func (o *options) choose(all []*unit, rest []string) (p profile, units []*unit, err error) {
	if len(rest) > 0 {
		return 0, nil, fmt.Errorf("unexpected argument %q (want flags alone)", rest[0])
	}
	given := 0
	for i, is := range o.profiles {
		if is {
			p = profile(i)
			given++
		}
	}
	if given != 1 && !o.list {
		return 0, nil, errors.New("want one of --commit, --nightly and --release")
	}
	if !(o.hours >= 0 && o.hours <= maxHours) {
		return 0, nil, fmt.Errorf("--hours %v (want 0 to %d)", o.hours, maxHours)
	}
	if o.only >= 0 && o.state != "" {
		return 0, nil, errors.New("--only and --state: one piece alone keeps no state")
	}
	if o.jobs < 1 {
		return 0, nil, fmt.Errorf("--jobs %d (want 1 or more)", o.jobs)
	}
	units = all
	if o.layers != "" {
		units = nil
		for name := range strings.SplitSeq(o.layers, ",") {
			some := named(all, strings.TrimSpace(name))
			if some == nil {
				return 0, nil, fmt.Errorf("--layer %s: no such layer or unit (--list shows all)", name)
			}
			units = append(units, some...)
		}
	}
	if !o.list {
		units = slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return u.goals[p] == 0 })
	}
	if len(units) == 0 {
		return 0, nil, fmt.Errorf("--layer %s: nothing of it runs with --%v (--list shows all)", o.layers, p)
	}
	return p, units, nil
}

// named are the units of a layer, or the one of that name.
func named(all []*unit, name string) (some []*unit) {
	for _, u := range all {
		if u.layer == name || u.key() == name {
			some = append(some, u)
		}
	}
	return some
}

func list(w io.Writer, units []*unit) {
	for _, u := range units {
		_, _ = fmt.Fprintf(w, "%-52s", u.key())
		for _, goal := range u.goals {
			_, _ = fmt.Fprintf(w, " %14s", count3(goal))
		}
		_, _ = fmt.Fprintf(w, "  %s\n", u.counts)
	}
}

// campaign runs the units.
func (o *options) campaign(
	ctx context.Context, root string, p profile, units []*unit, stdout, stderr io.Writer,
) error {
	if slices.ContainsFunc(units, func(u *unit) bool { return u.namespaces }) {
		if err := testbed.Reexec(); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "campaign")
	if err != nil {
		return fmt.Errorf("make a folder for programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	switch {
	case o.state == "" && p == commit || o.only >= 0:
		o.state = filepath.Join(dir, "state.json") // each commit is checked anew, and so is one piece
	case o.state == "":
		o.state = filepath.Join(root, ".campaign", p.String()+".json")
	}
	lock, err := lockState(o.state)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written to it
	s, err := openState(o.state, version(root), p)
	if err != nil {
		return err
	}
	c := &campaign{profile: p, units: units, state: s, out: stderr, jobs: o.jobs, now: time.Now,
		shop: &workshop{root: root, dir: dir, profile: p, soak: longestSoak, built: map[string]string{}}}
	if p == commit { // another few of the mutants with each commit
		_, _ = fmt.Sscanf(s.commit[:min(len(s.commit), 4)], "%x", &c.shop.mutantsFrom)
	}
	if o.hours > 0 {
		c.shop.soak = min(longestSoak, time.Duration(o.hours*float64(time.Hour)))
		c.until = c.now().Add(time.Duration(o.hours * float64(time.Hour)))
	}
	if o.only >= 0 {
		c.only(uint64(o.only))
	}
	err = c.run(ctx)
	return errors.Join(err, c.report(stdout, o.asJSON), c.verdict())
}

// version is the tree's commit, with "+" if the tree differs from it.
func version(root string) string {
	head, err := output("git", "-C", root, "rev-parse", "HEAD")
	if err != nil {
		return "unknown"
	}
	changed, err := output("git", "-C", root, "status", "--porcelain", "--untracked-files=no")
	if err != nil || changed != "" {
		head += "+"
	}
	return head
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
