package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Nearest returns those of some words that a mistyped one may be meant to be: to which the fewest
// typing errors lead, or that begin like it; none if all are too far.
func Nearest(typed string, words []string) (nearest []string) {
	least := max(1, (len(typed)+2)/4) // typing errors that a word of this length may have
	for _, w := range words {
		errs := typingErrors(strings.ToLower(typed), strings.ToLower(w))
		if len(typed) > 1 && strings.HasPrefix(w, typed) {
			errs = 0
		}
		if errs < least {
			least, nearest = errs, nil
		}
		if errs == least {
			nearest = append(nearest, w)
		}
	}
	return nearest
}

// typingErrors is the least number of letters left out, put in, mistaken or swapped with the next
// one that make one word of another (the optimal string alignment distance).
func typingErrors(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			mistaken := 1
			if a[i-1] == b[j-1] {
				mistaken = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+mistaken)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// didYouMean is the end of an error about a word that is not among some: "; did you mean ...?", or
// "" without a near one.
func didYouMean(typed, before string, words []string) string {
	near := Nearest(typed, words)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + before + strings.Join(near, " or "+before) + "?"
}

// verbsOf lists the verbs that a command offers.
func verbsOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// unknownVerb is the usage error for a word in place of a verb.
func unknownVerb(cmd *cobra.Command, typed string) error {
	return Misuse("unknown verb %q%s", typed, didYouMean(typed, "", verbsOf(cmd)))
}

// flagError says what is wrong with a flag in this command's words, in place of package pflag's and
// strconv's.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	words := cmd.Flags().Args() // in front of the flag
	switch {
	case len(words) > 0 && cmd.HasAvailableSubCommands(): // the flag may be right, of a verb that is not
		return unknownVerb(cmd, words[0])
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &value):
		return badValue(value)
	case errors.As(err, &missing):
		f := missing.GetFlag()
		return Misuse("--%s: a value is missing%s", f.Name, missingValue(f))
	}
	return AsMisuse(err)
}

// missingValue says what a flag without its value wants, as far as there is a word for it: package
// pflag's kinds of texts are none.
func missingValue(f *pflag.Flag) string {
	what := wanted(f)
	switch what {
	case "", "string", "stringSlice": // the help has the word, where there is one
		if what, _ = pflag.UnquoteUsage(f); what == "string" || what == "strings" {
			return ""
		}
	}
	return " (want " + what + ")"
}

func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		if _, isNumber := strconv.Atoi(letters); isNumber == nil {
			return Misuse("unknown flag: -%s (an argument that begins with - goes behind --)", letters)
		}
		return Misuse("unknown flag: -%s%s", name, didYouMean(letters, "--", flagNames(cmd)))
	}
	for _, verb := range cmd.Commands() {
		if verb.Flags().Lookup(name) != nil {
			return Misuse("unknown flag: --%s (which verb? Flags of a verb go behind it)", name)
		}
	}
	return Misuse("unknown flag: --%s%s", name, didYouMean(name, "--", flagNames(cmd)))
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// badValue names the flag, the value, and what is wanted. Values of our own kinds say that
// themselves.
func badValue(err *pflag.InvalidValueError) error {
	f, value := err.GetFlag(), err.GetValue()
	what := wanted(f)
	if what == f.Value.Type() {
		return Misuse("--%s: %w", f.Name, err.Unwrap())
	}
	if errors.Is(err, strconv.ErrRange) {
		what = "one that is not so large"
	}
	return Misuse("--%s %q: want %s", f.Name, value, what)
}

// wanted says what values a flag has.
func wanted(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "int", "int64":
		return "a whole number"
	case "uint16", "uint32", "uint64", "uint":
		return "a whole number, 0 or more"
	case "float64":
		return "a number"
	case "duration":
		return "a time with its unit, such as 500ms, 2s or 1m"
	case "bool":
		return "true or false"
	default:
		return kind
	}
}

// Default says in words what a flag is by default, where that depends on others: as a DefValue they
// would read like a value to type.
func Default(f *pflag.FlagSet, flag, text string) { f.Lookup(flag).Usage += " (default: " + text + ")" }

// Choice defines what values a flag has: they are offered when the command line is completed. Flags
// with several values, separated by commas, are completed one by one.
func Choice(cmd *cobra.Command, flag string, values ...string) {
	complete := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before, directive := "", cobra.ShellCompDirectiveNoFileComp
		if _, several := cmd.Flag(flag).Value.(interface{ several() }); several {
			directive |= cobra.ShellCompDirectiveNoSpace
			before = typed[:strings.LastIndexByte(typed, ',')+1]
		}
		var all []string
		for _, v := range values {
			if v = before + v; strings.HasPrefix(v, typed) {
				all = append(all, v)
			}
		}
		return all, directive
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(fmt.Sprintf("%s: --%s: %v", cmd.Name(), flag, err)) // a flag that is not there, or twice
	}
}

// NotOneOf is the usage error for a value that is not among those of a flag.
func NotOneOf(flag, value string, values ...string) error {
	return Misuse("--%s %q: want one of %s%s", flag, value, strings.Join(values, ", "), didYouMean(value, "", values))
}
