package cli

import (
	"strconv"
	"strings"
)

// ParseSpan reads a number of at least least and at most most, or a span of them such as 2-5. ok is
// false if it is none.
func ParseSpan(text string, least, most uint16) (first, last uint16, ok bool) {
	begin, end, isSpan := strings.Cut(text, "-")
	if !isSpan {
		end = begin
	}
	from, err1 := strconv.ParseUint(begin, 10, 16)
	to, err2 := strconv.ParseUint(end, 10, 16)
	first, last = uint16(from), uint16(to)
	return first, last, err1 == nil && err2 == nil && least <= first && first <= last && last <= most
}
