//go:build linux

package main

import "context"

// profile is how much is run.
type profile int

const (
	commit profile = iota
	nightly
	release
)

var profileNames = [...]string{"commit", "nightly", "release"}

func (p profile) String() string { return profileNames[p] }

// unit is a part of a layer that works by itself, in pieces.
type unit struct {
	layer, name string
	counts      string    // the figure that the goal counts
	goals       [3]uint64 // by profile; 0: nothing is run
	// pieces is how much one piece does, in steps of the cursor: a few seconds with --commit,
	// about half a minute else.
	pieces [2]uint64
	// work does a piece: size steps from the cursor on.
	work       func(ctx context.Context, w *workshop, cursor, size uint64) (result, error)
	namespaces bool // it needs network namespaces
	// pkg, if set, is the package whose tests are all that the unit runs: what is done counts at
	// another commit, too, if its tests are the same there, to the byte.
	pkg string
	// check, if set, judges the figures when the goal is reached: what it returns is a violation.
	check func(figures map[string]uint64, p profile) error
}

func (u *unit) pieceSize(p profile) uint64 {
	if p == commit {
		return u.pieces[0]
	}
	return u.pieces[1]
}

func (u *unit) key() string { return u.layer + " " + u.name }

// result is what a piece has come to.
type result struct {
	figures   map[string]uint64 // added up; those that end in "max" are not, the largest counts
	violation *violation
}

// violation is a promise that was broken.
type violation struct {
	Unit   string `json:"unit"`
	Commit string `json:"commit"`
	Repeat string `json:"repeat"` // the command that shows it again
	Output string `json:"output"` // the end of what was printed
}
