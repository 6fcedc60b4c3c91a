//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/procgroup"
)

// endTimeout is how long a benchmark may take to end its own programs.
const endTimeout = 30 * time.Second

// program returns a command of a document as a program: of this repository alone, and without a
// shell. It is a group of processes: "go run" passes no signals on to what it runs.
func program(ctx context.Context, command string, more ...string) (*exec.Cmd, error) {
	words := strings.Fields(command)
	switch {
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasPrefix(words[2], "./"):
		if _, err := os.Stat(words[2]); err != nil {
			return nil, err
		}
	case len(words) > 0 && words[0] == "rawlane":
		words = append([]string{"go", "run", "./cmd/rawlane"}, words[1:]...)
	default:
		return nil, fmt.Errorf("%q: want go run ./FOLDER or rawlane VERB", command)
	}
	words = append(words, more...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	procgroup.Own(cmd)
	cmd.Cancel = func() error { procgroup.End(cmd, false); return nil }
	cmd.WaitDelay = endTimeout
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// outputOf runs a program until ctx ends, and then leaves none of its processes.
func outputOf(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if ctx.Err() != nil {
		procgroup.End(cmd, true)
	}
	return out, err
}

// output runs a command. A benchmark that does not meet its limits has an output and an error.
func output(ctx context.Context, command string) (string, error) {
	cmd, err := program(ctx, command)
	if err != nil {
		return "", err
	}
	out, err := outputOf(ctx, cmd)
	return string(out), err
}

// isBench matches the commands that know their rows without measuring.
var isBench = regexp.MustCompile(`^go run \./bench/[a-z]+`)

// checkAll compares the tables of all documents with the rows of their commands.
func checkAll(ctx context.Context, documents []*document) error {
	var faults []error
	rowsOf := make(map[string][]string)
	for _, doc := range documents {
		for _, b := range doc.blocks() {
			rows, known := rowsOf[b.command]
			if !known {
				var err error
				if rows, err = askRows(ctx, b.command); err != nil {
					faults = append(faults, fmt.Errorf("%s: %s: %w", doc.name, b.command, err))
				}
				rowsOf[b.command] = rows
			}
			for _, fault := range b.compare(rows) {
				faults = append(faults, fmt.Errorf("%s: %s: %s (go run ./bench/tables measures it anew)",
					doc.name, b.command, fault))
			}
		}
	}
	return errors.Join(faults...)
}

// askRows returns the names of the rows that a benchmark prints; none of other commands, whose
// flags are checked.
func askRows(ctx context.Context, command string) (rows []string, err error) {
	more := "--help"
	if isBench.MatchString(command) {
		more = "-rows"
	}
	cmd, err := program(ctx, command, more)
	if err != nil {
		return nil, err
	}
	out, err := outputOf(ctx, cmd)
	if err != nil || more != "-rows" {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

var (
	// machineLine is what harness prints first.
	machineLine = regexp.MustCompile(`^\d+ cores.*, Linux [\d.]+, go[\d.]+; `)
	// rowLine is a line of a table: a name, a gap, and numbers.
	rowLine = regexp.MustCompile(`^(\S.*?)( = \S+)? {2,}-?[\d.]+`)
	// cores is the part of a row's name that differs from machine to machine.
	cores = regexp.MustCompile(`auto:\d+`)
	// verdict is a line about a limit, and missed about one that is not met.
	verdict = regexp.MustCompile(` (NOT )?met  +\(`)
	missed  = regexp.MustCompile(` NOT met  +\(`)
)

// compare tells how the block differs from what the command prints: in its first line, in rows that
// the command does not have, and in rows that the block lacks.
func (b *block) compare(rows []string) (faults []string) {
	if len(rows) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(b.content), "\n")
	if !machineLine.MatchString(lines[0]) {
		faults = append(faults, "the first line does not describe a machine")
	}
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = cores.ReplaceAllString(rows[i], "auto:N")
	}
	seen := make(map[string]bool)
	inSummary := false
	for _, line := range lines {
		inSummary = inSummary && line != "" || strings.HasPrefix(line, "Means of")
		if inSummary || verdict.MatchString(line) {
			continue // of rows that the tables have
		}
		if m := rowLine.FindStringSubmatch(line); m != nil {
			name := cores.ReplaceAllString(m[1], "auto:N")
			seen[name] = true
			if !slices.Contains(rows, name) {
				faults = append(faults, fmt.Sprintf("the command has no row %q", name))
			}
		}
	}
	if len(b.only) > 0 {
		return faults
	}
	for _, row := range rows {
		if !seen[row] {
			faults = append(faults, fmt.Sprintf("row %q is missing", row))
		}
	}
	return faults
}
