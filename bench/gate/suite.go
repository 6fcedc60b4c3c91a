//go:build linux

package main

import (
	"fmt"
	"regexp"
)

// benchmarks are those of a package.
type benchmarks struct{ dir, names string }

// suite is the hot paths, each in one goroutine and so the same from run to run: links, messages,
// remote memory, barriers. Those of several goroutines depend on which cores are free.
var suite = []benchmarks{
	{"transport/fabric", "SendPoll_1$|SendPoll_16$|PollEmpty"},
	{"transport/ring", "SendAndPoll|EmptyPoll"},
	{"transport/udp", "SendAndPoll/64B"},
	{"mcd", "Rate"},
	{"mcd/internal/wire", "PutParse"},
	{"vlan", "Table/^Route$/4096|Table/^Set$/4096"},
	{"memfifo", "^BenchmarkPut$/one|SmallPut"},
	{"memfifo/internal/reliable", "Conn"},
	{"barrier/internal/engine", "Barrier"},
}

// choose returns the packages that match.
func choose(all []benchmarks, only string) (chosen []benchmarks, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only %q: %w", only, err)
	}
	for _, b := range all {
		if match.MatchString(b.dir) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %q: matches no package (there are: %v)", only, all)
	}
	return chosen, nil
}
