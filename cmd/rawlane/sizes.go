package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizes is a flag: numbers of bytes, separated by commas.
type sizes []int

// Set parses the flag.
func (s *sizes) Set(text string) error {
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
func (s *sizes) String() string {
	var fields []string
	for _, n := range *s {
		fields = append(fields, strconv.Itoa(n))
	}
	return strings.Join(fields, ",")
}

// Type names the value in the help.
func (s *sizes) Type() string { return "BYTES,..." }
