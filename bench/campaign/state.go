//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/filelock"
	"github.com/rawlane/rawlane/internal/outfile"
)

// state is what is done, as the file has it.
type state struct {
	Profile string           `json:"profile"`
	Units   map[string]*done `json:"units"`

	path   string
	commit string // at which it is worked
}

// done is what is done of a unit.
type done struct {
	Code       string            `json:"code"`   // a digest of what the unit runs, or the commit
	Cursor     uint64            `json:"cursor"` // where the next piece begins
	Seconds    float64           `json:"seconds"`
	Figures    map[string]uint64 `json:"figures"`
	Violations []violation       `json:"violations,omitempty"`
}

// lockState has this process alone work on a state file, until it closes the lock or ends: of two
// that did, each would write over what the other has found.
func lockState(path string) (*filelock.Lock, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	l, err := filelock.Try(path + ".lock")
	if errors.Is(err, filelock.ErrHeld) {
		err = fmt.Errorf("%s: another campaign works on it (await that one, or give this one another --state)", path)
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return l, nil
}

// openState reads the file, or begins a new one.
func openState(path, commit string, p profile) (*state, error) {
	s := &state{Profile: p.String(), Units: map[string]*done{}, path: path, commit: commit}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	read := &state{path: path, commit: commit, Units: map[string]*done{}}
	if err := json.Unmarshal(b, read); err != nil {
		return nil, fmt.Errorf("state %s: %w (remove it to begin anew)", path, err)
	}
	if read.Profile != p.String() {
		return nil, fmt.Errorf("state %s is of --%s (give another --state with --%v)", path, read.Profile, p)
	}
	return read, nil
}

// begin makes what is done of a unit that of some code: what was done with other code is dropped,
// which begin reports.
func (s *state) begin(u *unit, code string) (dropped bool) {
	d := s.of(u)
	dropped = d.Code != "" && d.Code != code
	if dropped {
		delete(s.Units, u.key())
	}
	s.of(u).Code = code
	return dropped
}

// of returns what is done of a unit.
func (s *state) of(u *unit) *done {
	d := s.Units[u.key()]
	if d == nil {
		d = &done{Figures: map[string]uint64{}}
		s.Units[u.key()] = d
	}
	return d
}

// add adds a piece and writes the file.
func (s *state) add(u *unit, size uint64, r result, took time.Duration) error {
	d := s.of(u)
	d.Cursor += size
	d.Seconds += took.Seconds()
	addFigures(d.Figures, r.figures)
	if r.violation != nil {
		r.violation.Unit, r.violation.Commit = u.key(), s.commit
		d.Violations = append(d.Violations, *r.violation)
	}
	return s.write()
}

func addFigures(sum, more map[string]uint64) {
	for name, n := range more {
		if strings.HasSuffix(name, "max") {
			sum[name] = max(sum[name], n)
		} else {
			sum[name] += n
		}
	}
}

// write replaces the file at once: a run that is killed leaves the old one or the new one.
func (s *state) write() error {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	err = os.MkdirAll(filepath.Dir(s.path), 0o755)
	if err == nil {
		err = outfile.Replace(s.path, b)
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// violations are those of all units.
func (s *state) violations() (all []violation) {
	for _, key := range slices.Sorted(maps.Keys(s.Units)) {
		all = append(all, s.Units[key].Violations...)
	}
	return all
}
