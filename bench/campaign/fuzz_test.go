//go:build linux

package main

import (
	"os"
	"path/filepath"
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
	if all, err := parseCoverage("a/b - file.Parse\n"); err != nil || len(all) != 1 || all[0].floor != 0 {
		t.Errorf("%v, %v; want a package of which parsers count, and no percentage", all, err)
	}
	for _, text := range []string{"a\n", "a b\n", "a -\n"} {
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

// A worker that was given up is a violation where its input fails by itself, and there alone.
func TestFuzz_AWorkerThatIsGivenUp(t *testing.T) {
	const out = "--- FAIL: FuzzIt (285.01s)\n" +
		"    fuzzing process hung or terminated unexpectedly while minimizing: EOF\n" +
		"    Failing input written to testdata/fuzz/FuzzIt/639d\n"
	input, is := givenUp(out)
	if input != "testdata/fuzz/FuzzIt/639d" || !is {
		t.Errorf("%q, %t", input, is)
	}
	const fails = "--- FAIL: FuzzIt (0.00s)\n    x_test.go:1: wrong\n    \n    Failing input written to testdata/fuzz/FuzzIt/7\n"
	if input, is := givenUp(fails); is {
		t.Errorf("an input that fails is taken for one of a worker that was given up: %q", input)
	}

	const seed = "failure while testing seed corpus entry: FuzzIt/seed#2\n" +
		"fuzz: elapsed: 1m55s, gathering baseline coverage: 214/301 completed\n--- FAIL: FuzzIt (114.93s)\n"
	if input, is := givenUp(seed + "    fuzzing process hung or terminated unexpectedly: exit status 2\n"); input != "FuzzIt/seed#2" {
		t.Errorf("%q, %t", input, is)
	}
	if input, is := givenUp(seed + "    x_test.go:1: wrong\n"); is {
		t.Errorf("a seed that fails is taken for one of a worker that was given up: %q", input)
	}

	root := t.TempDir()
	folder := filepath.Join(root, "testdata/fuzz/FuzzIt")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module x\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc FuzzIt(f *testing.F) {\nf.Add(byte(0))\nf.Add(byte(1))\n" +
			"f.Fuzz(func(t *testing.T, b byte) {\nif b == 1 {\nt.Fatal()\n}\n})\n}\n",
		"testdata/fuzz/FuzzIt/good": "go test fuzz v1\nbyte('\\x00')\n",
		"testdata/fuzz/FuzzIt/bad":  "go test fuzz v1\nbyte('\\x01')\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &workshop{root: root}
	target := fuzzTarget{pkg: ".", name: "FuzzIt"}
	if !w.passes(t.Context(), target, "testdata/fuzz/FuzzIt/good") || w.passes(t.Context(), target, "testdata/fuzz/FuzzIt/bad") {
		t.Error("want the good one to pass, and the bad one to fail")
	}
	if !w.passes(t.Context(), target, "FuzzIt/seed#0") || w.passes(t.Context(), target, "FuzzIt/seed#1") {
		t.Error("of the seeds, want the first one to pass, and the second one to fail")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 || left[0].Name() != "bad" {
		t.Errorf("%v, %v, want the bad one alone", left, err)
	}
}

// A piece that has only gone through what was found before has more time, and one that never gets
// further ends.
func TestFuzz_GetsTimeBeyondItsCorpus(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for enough, want := range map[string]uint64{"600s": 60, "2400s": 0} {
		program := "#!/bin/sh\necho 'fuzz: elapsed: 4m0s, gathering baseline coverage: 8/9 completed'\n" +
			"case \"$*\" in *" + enough + ") echo 'fuzz: elapsed: 5m0s, execs: 21 (7/sec), new';; esac\n"
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := fuzzTarget{".", "FuzzIt"}.work(t.Context(), &workshop{root: dir}, 0, 1)
		if err != nil || r.violation != nil || r.figures["seconds of fuzzing"] != want {
			t.Errorf("%s would do: %v, %+v, want %d seconds", enough, err, r, want)
		}
	}
}

// A seed that fails is a violation, whatever it says; the end of the fuzzer's time is none, and what
// does not run an error.
func TestFuzz_WhatItPrints(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	const fuzzing = "fuzz: elapsed: 5m0s, execs: 21 (7/sec), new interesting: 0\n"
	for _, c := range []struct {
		name, out        string
		violation, fails bool
	}{
		{"the end", fuzzing + "--- FAIL: FuzzIt (300.05s)\n    context deadline exceeded\nFAIL\n", false, false},
		{"an input", fuzzing + "--- FAIL: FuzzIt (3.0s)\n    x_test.go:1: wrong\n    \n    Failing input written to testdata/fuzz/FuzzIt/7\n", true, false},
		{"a seed", "failure while testing seed corpus entry: FuzzIt/seed#1\n--- FAIL: FuzzIt (0.02s)\n    --- FAIL: FuzzIt (0.00s)\n" +
			"        x_test.go:10: wait: context deadline exceeded\n", true, false},
		{"no build", "x_test.go:1: undefined\nFAIL\tx [build failed]\n", false, true},
		{"a panic that says so", "panic: context deadline exceeded\n", false, true},
	} {
		program := "#!/bin/sh\ncat <<'END'\n" + c.out + "END\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := fuzzTarget{".", "FuzzIt"}.fuzz(t.Context(), &workshop{root: dir}, 300)
		if (r.violation != nil) != c.violation || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v; want a violation: %t, an error: %t", c.name, r.violation, err, c.violation, c.fails)
		}
	}
}
