package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mayBeEmpty is the annotation of flags for which an empty value means something.
const mayBeEmpty = "may be empty"

// MayBeEmpty lets a flag have an empty value. Others refuse it: it is mostly a variable of a script
// that is not set, and to take it for a flag that is not given would do without a key, for
// instance, where one was asked for.
func MayBeEmpty(f *pflag.FlagSet, flag string) {
	if err := f.SetAnnotation(flag, mayBeEmpty, nil); err != nil {
		panic(err) // a flag that is not there
	}
}

// refuseEmpty has a command and those below it refuse empty values.
func refuseEmpty(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		refuseEmpty(c)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := findEmpty(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// findEmpty returns a usage error for the first flag that was given an empty value.
func findEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, may := f.Annotations[mayBeEmpty]; err == nil && !may && isEmpty(f.Value) {
			err = Misuse("--%s: empty (want a value, or leave the flag out)", f.Name)
		}
	})
	return err
}

// isEmpty reports whether a value has nothing in it: a list's text has its brackets.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return len(list.GetSlice()) == 0
	}
	return v.String() == ""
}
