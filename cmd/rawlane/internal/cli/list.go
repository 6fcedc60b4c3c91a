package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// list is the value of a flag that takes several things, separated by commas.
type list[T any] struct {
	to    *[]T
	kind  string
	parse func(string) (T, error)
}

// ListFlag defines a flag whose value is a list with commas. kind names the value in the help.
func ListFlag[T any](
	f *pflag.FlagSet, to *[]T, name, kind, usage string, parse func(string) (T, error),
) {
	f.Var(list[T]{to, kind, parse}, name, usage)
}

// Set parses the flag.
func (l list[T]) Set(text string) error {
	var values []T
	for field := range strings.SplitSeq(text, ",") {
		v, err := l.parse(strings.TrimSpace(field))
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	*l.to = values
	return nil
}

// String formats the flag as Set parses it.
func (l list[T]) String() string {
	var fields []string
	for _, v := range *l.to {
		fields = append(fields, fmt.Sprint(v))
	}
	return strings.Join(fields, ",")
}

// Type names the value in the help.
func (l list[T]) Type() string { return l.kind }

// SizesFlag defines a flag for numbers of bytes.
func SizesFlag(f *pflag.FlagSet, to *[]int, name, usage string) {
	ListFlag(f, to, name, "BYTES,...", usage, func(field string) (int, error) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is not a number of bytes (want for example 4,64,1400)", field)
		}
		return n, nil
	})
}

// AlgorithmsFlag defines a flag for names of barrier algorithms.
func AlgorithmsFlag(f *pflag.FlagSet, to *[]string, name, usage string) {
	ListFlag(f, to, name, "ALGO,...", usage, func(field string) (string, error) {
		_, err := schedule.Parse(field)
		return field, err
	})
}
