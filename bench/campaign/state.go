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
)

// state is what is done, as the file has it.
type state struct {
	Commit  string           `json:"commit"`
	Profile string           `json:"profile"`
	Units   map[string]*done `json:"units"`

	path string
}

// done is what is done of a unit.
type done struct {
	Cursor     uint64            `json:"cursor"` // where the next piece begins
	Seconds    float64           `json:"seconds"`
	Figures    map[string]uint64 `json:"figures"`
	Violations []violation       `json:"violations,omitempty"`
}

// openState reads the file, or begins a new one. The figures of one file are those of one commit.
func openState(path, commit string, p profile) (*state, error) {
	s := &state{Commit: commit, Profile: p.String(), Units: map[string]*done{}, path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	read := &state{path: path, Units: map[string]*done{}}
	if err := json.Unmarshal(b, read); err != nil {
		return nil, fmt.Errorf("state %s: %w (remove it to begin anew)", path, err)
	}
	if read.Commit != commit || read.Profile != p.String() {
		return nil, fmt.Errorf("state %s is of commit %.12s, --%s; this is %.12s, --%v "+
			"(give another --state, or remove it)", path, read.Commit, read.Profile, commit, p)
	}
	return read, nil
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
		r.violation.Unit, r.violation.Commit = u.key(), s.Commit
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
		err = os.WriteFile(s.path+".new", b, 0o644)
	}
	if err == nil {
		err = os.Rename(s.path+".new", s.path)
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
