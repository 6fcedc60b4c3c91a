//go:build linux

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed testdata/mutants.txt
var mutantsText string

// mutant is a bug made by hand: old stands once in the file, and new in its place.
type mutant struct{ name, file, old, new string }

// parseMutants reads the list: "## name", the file, lines with "-" that are there, and lines with
// "+" that stand there instead.
func parseMutants(text string) (all []mutant, err error) {
	for _, paragraph := range strings.Split(text, "\n## ")[1:] {
		lines := strings.Split(strings.TrimRight(paragraph, "\n"), "\n")
		if len(lines) < 4 {
			return nil, fmt.Errorf("mutant %q: want a name, a file, and lines with - and +", lines[0])
		}
		m := mutant{name: lines[0], file: lines[1]}
		var was, is []string
		for _, line := range lines[2:] {
			switch {
			case strings.HasPrefix(line, "-") && is == nil:
				was = append(was, line[1:])
			case strings.HasPrefix(line, "+"):
				is = append(is, line[1:])
			case line != "":
				return nil, fmt.Errorf("mutant %q: line %q (want lines with -, and then lines with +)", m.name, line)
			}
		}
		m.old, m.new = strings.Join(was, "\n"), strings.Join(is, "\n")
		all = append(all, m)
	}
	return all, nil
}

// apply returns the file's text with the bug.
func (m *mutant) apply(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.name, err)
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return "", fmt.Errorf("mutant %q: what it changes stands %d times in %s, want once: "+
			"the code has changed, and testdata/mutants.txt has to follow", m.name, n, m.file)
	}
	return strings.Replace(string(b), m.old, m.new, 1), nil
}

// tests are the simulation that is to catch the mutant.
func (m *mutant) tests() seeded {
	switch {
	case strings.HasPrefix(m.file, "barrier/"):
		return simulation(enginePackage)
	case strings.HasPrefix(m.file, "memfifo/internal/"):
		return simulation(reliablePackage)
	}
	return modelTest
}

// overlay writes what "go test -overlay" reads: the tree itself is not touched.
func (m *mutant) overlay(w *workshop) (string, error) {
	text, err := m.apply(w.root)
	if err != nil {
		return "", err
	}
	source, list := filepath.Join(w.dir, "mutant.go.txt"), filepath.Join(w.dir, "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(w.root, m.file): source}})
	if err == nil {
		err = os.WriteFile(source, []byte(text), 0o600)
	}
	if err == nil {
		err = os.WriteFile(list, b, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.name, err)
	}
	return list, nil
}

// caught builds the tests with the bug, and runs more and more seeds: seeds is how many it took.
func (m *mutant) caught(ctx context.Context, w *workshop, first, most uint64) (is bool, seeds uint64, err error) {
	overlay, err := m.overlay(w)
	if err != nil {
		return false, 0, err
	}
	tests := m.tests()
	path := filepath.Join(w.dir, "mutant.test")
	out, err := w.command(ctx, "go", "test", "-c", "-o", path, "-overlay", overlay, "./"+tests.pkg).CombinedOutput()
	if err != nil {
		return false, 0, fmt.Errorf("mutant %q does not build: %w\n%s", m.name, err, out)
	}
	return hunt(ctx, most, func(done, n uint64, limit time.Duration) (result, error) {
		return tests.run(ctx, w, path, first+done, n, limit)
	})
}

const (
	// fewSeeds and manySeeds are how many a run has: at first, as most bugs are found at once, and
	// later.
	fewSeeds, manySeeds = 5, 40
	// seedLimit is far more than a seed takes, on a crowded machine too. A bug for which it is not
	// enough makes the test hang, and is found; a test that takes long has found nothing.
	seedLimit = 20 * time.Second
)

// hunt has run try seeds, a few and then more, until one of its runs has found something.
func hunt(
	ctx context.Context, most uint64, run func(done, n uint64, limit time.Duration) (result, error),
) (is bool, seeds uint64, err error) {
	for n := uint64(fewSeeds); seeds < most; n = min(2*n, manySeeds) {
		n = min(n, most-seeds)
		r, err := run(seeds, n, time.Duration(n)*seedLimit)
		if err != nil || ctx.Err() != nil {
			return false, seeds, err
		}
		seeds += n
		if r.violation != nil {
			return true, seeds, nil
		}
	}
	return false, seeds, nil
}

// mutantSeeds is within how many seeds a bug is to be found.
const mutantSeeds = 1000

// workMutants tries some mutants of the list, by their place in it.
func workMutants(ctx context.Context, w *workshop, cursor, size uint64) (r result, err error) {
	all, err := parseMutants(mutantsText)
	if err != nil {
		return r, err
	}
	r.figures = map[string]uint64{}
	for i := cursor; i < cursor+size; i++ {
		m := &all[(i+w.mutantsFrom)%uint64(len(all))]
		is, seeds, err := m.caught(ctx, w, 1, mutantSeeds)
		if err != nil {
			return r, err
		}
		r.figures["mutants"]++
		r.figures["seeds to find a mutant, max"] = max(r.figures["seeds to find a mutant, max"], seeds)
		if is {
			r.figures["mutants caught"]++
		} else {
			r.figures["survives: "+m.name]++
		}
	}
	return r, nil
}

// mutantsCaught judges the list: one of each sixty may survive, and so one of the few that are
// tried with a commit.
func mutantsCaught(figures map[string]uint64, _ profile) error {
	if lost := figures["mutants"] - figures["mutants caught"]; lost > max(1, figures["mutants"]/60) {
		return fmt.Errorf("%d of %d mutants survive %d seeds", lost, figures["mutants"], mutantSeeds)
	}
	return nil
}
