//go:build linux

package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/coverage.txt
var coverageText string

// covered is what the corpus of a package's fuzz targets has to reach.
type covered struct {
	pkg     string
	parsers []string // functions of which each line is reached
	floor   float64  // percent of the package's statements, or 0 for one that does much beside reading
}

// parseCoverage reads the list: a package, the percentage, and parsers.
func parseCoverage(text string) (all []covered, err error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("coverage: line %q (want a package, percent or -, and parsers)", line)
		}
		var floor float64
		if fields[1] != "-" {
			if floor, err = strconv.ParseFloat(fields[1], 64); err != nil {
				return nil, fmt.Errorf("coverage: line %q: %w", line, err)
			}
		}
		if floor == 0 && len(fields) == 2 {
			return nil, fmt.Errorf("coverage: line %q demands nothing (want percent, or parsers)", line)
		}
		all = append(all, covered{fields[0], fields[2:], floor})
	}
	return all, nil
}

var coverLine = regexp.MustCompile(`^(\S+):\d+:\s+(\S+)\s+([\d.]+)%$`)

// check says what of a package's corpus is too little, given "go tool cover -func".
func (c *covered) check(functions string) (total float64, err error) {
	reached := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(functions))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "total:" {
			total, err = strconv.ParseFloat(strings.TrimSuffix(f[2], "%"), 64)
			if err != nil {
				return 0, fmt.Errorf("coverage: line %q: %w", lines.Text(), err)
			}
		}
		if m := coverLine.FindStringSubmatch(lines.Text()); m != nil {
			percent, _ := strconv.ParseFloat(m[3], 64) // the expression lets numbers pass alone
			name := strings.TrimSuffix(filepath.Base(m[1]), ".go") + "." + m[2]
			reached[name] = percent
		}
	}
	var errs []error
	for _, name := range c.parsers {
		percent, is := reached[name]
		if !is || percent < 100 {
			errs = append(errs, fmt.Errorf("%s: the corpus reaches %.1f %% of %s (want 100 %%; there: %t)",
				c.pkg, percent, name, is))
		}
	}
	if total < c.floor {
		errs = append(errs, fmt.Errorf("%s: the corpus reaches %.1f %% of all statements (want %.1f %%)",
			c.pkg, total, c.floor))
	}
	return total, errors.Join(errs...)
}

// profileOf are a package's lines of a coverage profile, and its first line.
func profileOf(profile, pkg string) string {
	var own strings.Builder
	for line := range strings.Lines(profile) {
		file, _, _ := strings.Cut(line, ":")
		if own.Len() == 0 || strings.HasSuffix(path.Dir(file), "/"+pkg) {
			own.WriteString(line)
		}
	}
	return own.String()
}

// workCorpus measures what the corpora reach: a fuzz target that is broken, or that no longer gets
// anywhere, shows here.
func workCorpus(ctx context.Context, w *workshop, _, _ uint64) (r result, err error) {
	all, err := parseCoverage(coverageText)
	if err != nil {
		return r, err
	}
	r.figures = map[string]uint64{}
	profile := filepath.Join(w.dir, "cover.out")
	args := []string{"test", "-vet=off", "-run", "^Fuzz", "-count=1", "-coverprofile", profile}
	for i := range all {
		args = append(args, "./"+all[i].pkg)
	}
	if out, err := w.command(ctx, "go", args...).CombinedOutput(); err != nil {
		return r, fmt.Errorf("corpora: %w\n%s", err, out)
	}
	lines, err := os.ReadFile(profile)
	if err != nil {
		return r, fmt.Errorf("coverage: %w", err)
	}
	var errs []error
	for i := range all {
		c := &all[i]
		if err := os.WriteFile(profile, []byte(profileOf(string(lines), c.pkg)), 0o600); err != nil {
			return r, fmt.Errorf("coverage: %w", err)
		}
		functions, err := w.command(ctx, "go", "tool", "cover", "-func", profile).Output()
		if err != nil {
			return r, fmt.Errorf("coverage of %s: %w", c.pkg, err)
		}
		total, err := c.check(string(functions))
		errs = append(errs, err)
		r.figures["corpora"]++
		r.figures["parsers reached by their corpus"] += uint64(len(c.parsers))
		r.figures["corpus percent max: "+c.pkg] = uint64(math.Round(total))
	}
	if err := errors.Join(errs...); err != nil {
		r.violation = &violation{Repeat: `go run ./bench/campaign --commit --layer "L4 corpus"`, Output: err.Error()}
	}
	return r, nil
}

// fuzzTarget is one that fuzzing runs.
type fuzzTarget struct{ pkg, name string }

var fuzzFunc = regexp.MustCompile(`\nfunc (Fuzz\w+)`) // begins with a literal, which is quick to find

// fuzzTargets finds those of the tree, in the order of their packages and names.
func fuzzTargets(root string) (all []fuzzTarget, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		for _, found := range fuzzFunc.FindAllSubmatch(text, -1) {
			all = append(all, fuzzTarget{path.Dir(file), string(found[1])})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find fuzz targets: %w", err)
	}
	slices.SortFunc(all, func(a, b fuzzTarget) int { return strings.Compare(a.pkg+a.name, b.pkg+b.name) })
	return all, nil
}

// fuzzSeconds is how long a piece is. What was found stays in Go's cache, and is gone through again
// at the beginning of each piece: on a crowded machine that takes minutes, and a piece that has got
// no further is done again with twice the time, up to maxFuzzSeconds.
const (
	fuzzSeconds    = 300
	maxFuzzSeconds = 4 * fuzzSeconds
)

// fuzzLine is a line of Go's fuzzer: how long it has run, and how many inputs it has made, or how
// many of those that it had before it has gone through.
var fuzzLine = regexp.MustCompile(`(?m)^fuzz: elapsed: (\S+), (?:execs: (\d+) |gathering)`)

// fuzzed is how long a run has fuzzed, and how many inputs it has made.
func fuzzed(out string) (seconds, inputs uint64) {
	var began, now time.Duration
	for _, line := range fuzzLine.FindAllStringSubmatch(out, -1) {
		now, _ = time.ParseDuration(line[1]) // Go's own
		if line[2] == "" {
			began = now
		}
		inputs, _ = strconv.ParseUint(line[2], 10, 64) // digits, or nothing
	}
	return uint64((now - began).Seconds()), inputs
}

// unit is the unit that fuzzes the target.
func (t fuzzTarget) unit() *unit {
	return &unit{
		layer: "L4", name: strings.TrimPrefix(t.name, "Fuzz") + " of " + t.pkg, counts: "seconds of fuzzing",
		goals: [3]uint64{0, 300, 1200}, pieces: [2]uint64{1, 1}, work: t.work, pkg: t.pkg,
	}
}

func (t fuzzTarget) work(ctx context.Context, w *workshop, _, _ uint64) (r result, err error) {
	for seconds := fuzzSeconds; ; seconds *= 2 {
		r, err = t.fuzz(ctx, w, seconds)
		done := err != nil || r.violation != nil || r.figures["seconds of fuzzing"] > 0
		if done || seconds >= maxFuzzSeconds || ctx.Err() != nil {
			return r, err
		}
	}
}

// fuzz runs Go's fuzzer for so many seconds.
func (t fuzzTarget) fuzz(ctx context.Context, w *workshop, seconds int) (r result, err error) {
	args := []string{"test", "./" + t.pkg, "-run", "^$", "-fuzz", "^" + t.name + "$", "-parallel", "1",
		"-fuzztime", fmt.Sprintf("%ds", seconds)}
	out, err := w.command(ctx, "go", args...).CombinedOutput()
	fuzzedFor, inputs := fuzzed(string(out))
	r.figures = map[string]uint64{"seconds of fuzzing": fuzzedFor, "inputs of fuzzing": inputs}
	text := string(out)
	if input, hung := givenUp(text); err != nil && hung && w.passes(ctx, t, input) {
		r.figures["workers that were given up"] = 1
		return r, nil
	}
	switch {
	case err != nil && fails.MatchString(text):
		r.violation = &violation{Repeat: "go " + strings.Join(args, " "), Output: tail(text, 4000)}
	case err != nil && !ranOut.MatchString(text):
		return r, fmt.Errorf("fuzz %s of %s: %w\n%s", t.name, t.pkg, err, out)
	}
	return r, nil
}

var (
	// fails is an input that does: a new one, or a seed.
	fails = regexp.MustCompile(`Failing input written to|failure while testing seed corpus entry`)
	// ranOut is the end of its time, which Go's fuzzer now and then reports as a failure.
	ranOut = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \(\S+\)\n    context deadline exceeded$`)
)

var (
	givenUpLines = regexp.MustCompile(
		`fuzzing process hung or terminated unexpectedly[^\n]*\n\s*Failing input written to (testdata/fuzz/\S+)`)
	givenUpSeed = regexp.MustCompile(`(?s)failure while testing seed corpus entry: (\S+)\n` +
		`.*fuzzing process hung or terminated unexpectedly`)
)

// givenUp returns the input at which Go's fuzzer gave its worker up, which has some seconds to
// answer, on a crowded machine too: the file that the fuzzer has made of it, or a seed, as
// TARGET/NAME.
func givenUp(out string) (input string, is bool) {
	for _, lines := range []*regexp.Regexp{givenUpLines, givenUpSeed} {
		if m := lines.FindStringSubmatch(out); m != nil {
			return m[1], true
		}
	}
	return "", false
}

// passes reports whether an input passes by itself, and then removes it where the fuzzer has made a
// file of it.
func (w *workshop) passes(ctx context.Context, t fuzzTarget, input string) bool {
	run := fmt.Sprintf("^%s$/^%s$", t.name, path.Base(input))
	if w.command(ctx, "go", "test", "./"+t.pkg, "-run", run, "-count=1").Run() != nil {
		return false
	}
	made := strings.HasPrefix(input, "testdata/fuzz/")
	return !made || os.Remove(filepath.Join(w.root, t.pkg, input)) == nil
}
