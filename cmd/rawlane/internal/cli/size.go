package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// units are the multiples of bytes that may stand behind a number.
var units = map[byte]int64{'k': 1 << 10, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// parseBytes reads a number of bytes: 1400, 64k (65536), 1M.
func parseBytes(text string) (int64, error) {
	digits, unit := text, int64(1)
	if text != "" {
		if u, ok := units[text[len(text)-1]]; ok {
			digits, unit = text[:len(text)-1], u
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a number of bytes (want for example 1400, 64k or 1M)", text)
	}
	return n * unit, nil
}

// sizes are the value of a flag: numbers of bytes and ranges of them, separated by commas.
type sizes struct{ list[int] }

// Set parses the flag. A range 1:1M is 1, 2, 4 and so on, and its end.
func (s sizes) Set(text string) error {
	var values []int
	for field := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(field), ":")
		from, err := parseBytes(first)
		to := from
		if err == nil && isRange {
			to, err = parseBytes(last)
		}
		if err != nil {
			return err
		}
		if isRange && (from < 1 || from > to) || to > math.MaxInt32 {
			return fmt.Errorf("%q: want FIRST:LAST of 1 to %d bytes, which doubles", field, math.MaxInt32)
		}
		for n := from; n < to; n *= 2 {
			values = append(values, int(n))
		}
		values = append(values, int(to))
	}
	*s.to = values
	return nil
}

// SizesFlag defines a flag for numbers of bytes, with a letter unless that is "".
func SizesFlag(f *pflag.FlagSet, to *[]int, name, letter, usage string) {
	f.VarP(sizes{list[int]{to: to, kind: "BYTES,..."}}, name, letter, usage+": 64,1k, or 1:1M, which doubles")
}

// size is the value of a flag: a number of bytes.
type size struct{ to *int64 }

// Set parses the flag.
func (s size) Set(text string) (err error) {
	*s.to, err = parseBytes(text)
	return err
}

// String formats the flag as Set parses it.
func (s size) String() string { return strconv.FormatInt(*s.to, 10) }

// Type names the value in the help.
func (s size) Type() string { return "BYTES" }

// SizeFlag defines a flag for a number of bytes.
func SizeFlag(f *pflag.FlagSet, to *int64, name, usage string) { f.Var(size{to}, name, usage) }
