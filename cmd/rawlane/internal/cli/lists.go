package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// Sizes is a flag: numbers of bytes, separated by commas.
type Sizes []int

// Set parses the flag.
func (s *Sizes) Set(text string) error {
	*s = nil
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of bytes (want for example 4,64,1400)", field)
		}
		*s = append(*s, n)
	}
	return nil
}

// String formats the flag as Set parses it.
func (s *Sizes) String() string {
	var fields []string
	for _, n := range *s {
		fields = append(fields, strconv.Itoa(n))
	}
	return strings.Join(fields, ",")
}

// Type names the value in the help.
func (s *Sizes) Type() string { return "BYTES,..." }

// Algorithms is a flag: names of barrier algorithms, separated by commas.
type Algorithms []string

// Set parses the flag.
func (a *Algorithms) Set(text string) error {
	*a = nil
	for _, name := range strings.Split(text, ",") {
		if _, err := schedule.Parse(name); err != nil {
			return err
		}
		*a = append(*a, name)
	}
	return nil
}

// String formats the flag as Set parses it.
func (a *Algorithms) String() string { return strings.Join(*a, ",") }

// Type names the value in the help.
func (a *Algorithms) Type() string { return "ALGO,..." }
