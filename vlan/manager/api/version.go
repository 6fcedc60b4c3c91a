package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Version numbers the routes of a manager. It grows with each change of them or of what programs
// ask for, and across restarts: the upper 24 bits count the manager's starts, the lower 40 the
// changes since the start. Its text is START.CHANGES, as in 3.17.
type Version uint64

// changeBits is the width of the count of changes: at 10,000 changes a second it lasts for three
// years.
const changeBits = 40

// FirstVersion returns the version at the beginning of a manager's start, the first start being 1.
func FirstVersion(start uint64) Version { return Version(start << changeBits) }

// Start returns the number of the manager's start.
func (v Version) Start() uint64 { return uint64(v >> changeBits) }

// String formats v as START.CHANGES.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d", v.Start(), uint64(v)&(1<<changeBits-1))
}

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Version) UnmarshalText(text []byte) error {
	start, changes, ok := strings.Cut(string(text), ".")
	s, err1 := strconv.ParseUint(start, 10, 64-changeBits)
	c, err2 := strconv.ParseUint(changes, 10, changeBits)
	if !ok || err1 != nil || err2 != nil {
		return badRequest("version %q (want START.CHANGES, as in 3.17)", text)
	}
	*v = FirstVersion(s) + Version(c)
	return nil
}
