package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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

// several marks values that Choice completes one by one.
func (l list[T]) several() {}

// AlgorithmsFlag defines a flag for names of barrier algorithms.
func AlgorithmsFlag(cmd *cobra.Command, to *[]string, name, usage string) {
	ListFlag(cmd.Flags(), to, name, "ALGO,...", usage, func(field string) (string, error) {
		_, err := schedule.Parse(field)
		if err != nil {
			word, _, _ := strings.Cut(field, ":")
			err = fmt.Errorf("%w%s", err, didYouMean(word, "", algorithms))
		}
		return field, err
	})
	AlgorithmChoice(cmd, name)
}

// algorithms are names of barrier algorithms.
var algorithms = []string{
	"shuffle", "tree:2", "tree:3", "tree:4", "tree:8", "concurrent", "star", "offload", "chassis", "auto",
	"auto:2",
}

// AlgorithmChoice completes a flag with the names of barrier algorithms.
func AlgorithmChoice(cmd *cobra.Command, name string) { Choice(cmd, name, algorithms...) }
