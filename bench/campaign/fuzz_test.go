//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCoverage(t *testing.T) {
	all, err := parseCoverage("# x\na/b 50 file.Parse\n")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, c := range []struct{ functions, want string }{
		{"m/a/b/file.go:9:\tParse\t100.0%\ntotal:\t(statements)\t50.0%\n", ""},
		{"m/a/b/file.go:9:\tParse\t99.9%\ntotal:\t(statements)\t50.0%\n", "99.9 % of file.Parse"},
		{"m/a/b/other.go:9:\tParse\t100.0%\ntotal:\t(statements)\t50.0%\n", "there: false"},
		{"m/a/b/file.go:9:\tParse\t100.0%\ntotal:\t(statements)\t49.9%\n", "49.9 % of all"},
	} {
		_, err := all[0].check(c.functions)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.functions, err, c.want)
		}
	}
	for _, text := range []string{"a\n", "a b\n"} {
		if _, err := parseCoverage(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestFuzzTargets(t *testing.T) {
	all, err := fuzzTargets(absolute(t, treeRoot))
	if err != nil || !slices.Contains(all, fuzzTarget{"mcd/internal/wire", "FuzzParse"}) {
		t.Errorf("%v, %v; want that of the wire format among them", all, err)
	}
}

func TestProfileOf(t *testing.T) {
	const profile = "mode: set\nx.org/m/a/b/f.go:1.2,3.4 1 1\nx.org/m/a/b/c/f.go:1.2,3.4 1 0\nx.org/m/b/f.go:1.2,3.4 2 1\n"
	if got, want := profileOf(profile, "a/b"), "mode: set\nx.org/m/a/b/f.go:1.2,3.4 1 1\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFuzzed(t *testing.T) {
	const before = "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\n" +
		"fuzz: elapsed: 57s, gathering baseline coverage: 9/9 completed, now fuzzing with 1 workers\n"
	const out = before + "fuzz: elapsed: 1m0s, execs: 21 (7/sec), new interesting: 0 (total: 9)\n" +
		"fuzz: elapsed: 5m0s, execs: 1234567 (20/sec), new interesting: 0 (total: 9)\nPASS\n"
	for _, c := range []struct {
		out             string
		seconds, inputs uint64
	}{
		{out, 243, 1234567}, {before, 0, 0}, {"", 0, 0},
	} {
		if seconds, inputs := fuzzed(c.out); seconds != c.seconds || inputs != c.inputs {
			t.Errorf("%d s, %d inputs; want %d and %d", seconds, inputs, c.seconds, c.inputs)
		}
	}
}
