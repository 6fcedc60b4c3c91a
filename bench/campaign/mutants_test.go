//go:build linux

package main

import (
	"flag"
	"strings"
	"testing"
	"time"
)

const treeRoot = "../.."

func mutants(t *testing.T) []mutant {
	t.Helper()
	all, err := parseMutants(mutantsText)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each mutant fits the code as it is.
func TestMutants_Fit(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants(t) {
		text, err := m.apply(treeRoot)
		if err != nil {
			t.Error(err)
		}
		if names[m.name] || !strings.Contains(text, m.new) || m.old == m.new {
			t.Errorf("mutant %q: want a name of its own, and a change", m.name)
		}
		names[m.name] = true
	}
	if len(names) != mutantCount {
		t.Errorf("%d mutants, mutantCount is %d", len(names), mutantCount)
	}
}

func TestParseMutants_Malformed(t *testing.T) {
	for _, text := range []string{"\n## a\nfile\n-x", "\n## a\nfile\n-x\n+y\n-z\n", "\n## a\nfile\nx\n+y\n"} {
		if _, err := parseMutants(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	m := mutant{name: "gone", file: "doc.go", old: "what no file has", new: "x"}
	if _, err := m.apply(treeRoot); err == nil || !strings.Contains(err.Error(), "stands 0 times") {
		t.Errorf("%v, want an error: the pattern does not match", err)
	}
}

var tryMutants = flag.String("mutants", "", "TestMutants_Try: those whose names contain this")

// For work on the list: go test ./bench/campaign -run Try -v -mutants "" -mutants tree.
func TestMutants_Try(t *testing.T) {
	w := &workshop{root: absolute(t, treeRoot), dir: t.TempDir(), built: map[string]string{}}
	for _, m := range mutants(t) {
		if *tryMutants == "" || !strings.Contains(m.name, *tryMutants) && *tryMutants != "all" {
			continue
		}
		is, seeds, err := m.caught(t.Context(), w, 1, mutantSeeds)
		t.Logf("%-60s %t %d %v", m.name, is, seeds, err)
	}
}

// A bug that makes the tests hang is found, and one that nothing shows survives all seeds, though
// they take longer than anybody waits for a test that hangs: some simulations take a second each.
func TestHunt(t *testing.T) {
	const aSeed = 2 * time.Second
	for _, c := range []struct {
		name        string
		found       uint64 // the seed that shows the bug; 0: none does
		each        time.Duration
		is          bool
		least, most uint64 // seeds
	}{
		{"at once", 1, aSeed, true, 1, 5},
		{"late", 700, aSeed, true, 700, 750},
		{"never", 0, aSeed, false, 1000, 1000},
		{"hangs", 0, time.Hour, true, 1, 5},
	} {
		is, seeds, err := hunt(t.Context(), 1000, func(done, n uint64, limit time.Duration) (r result, err error) {
			shows := c.found > done && c.found <= done+n
			if shows || time.Duration(n)*c.each > limit { // package testing ends it
				r.violation = &violation{}
			}
			return r, nil
		})
		if is != c.is || seeds < c.least || seeds > c.most || err != nil {
			t.Errorf("%s: %t after %d seeds, %v", c.name, is, seeds, err)
		}
	}
}

// One bug of each sixty may survive, and so one where fewer are tried; two may not.
func TestMutantsCaught(t *testing.T) {
	for _, k := range []struct {
		tried, caught uint64
		ok            bool
	}{{4, 4, true}, {4, 3, true}, {4, 2, false}, {67, 66, true}, {67, 65, false}, {120, 118, true}, {120, 117, false}} {
		err := mutantsCaught(map[string]uint64{"mutants": k.tried, "mutants caught": k.caught}, commit)
		if (err == nil) != k.ok {
			t.Errorf("%d of %d caught: %v", k.caught, k.tried, err)
		}
	}
}
