package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/cluster"
)

// slots is a host, and how many programs it is for.
type slots struct {
	host  string // as the remote shell takes it: a name, an alias, user@name
	count int
}

// byteOrderMark is what some editors write before the first line.
const byteOrderMark = "\ufeff"

// inBrackets matches an IPv6 address in brackets, with a user or slots, it may be: a remote shell
// takes it without them.
var inBrackets = regexp.MustCompile(`^([^\[\]]*@)?\[([^\[\]]+)\](:.*)?$`)

// parseHosts reads a list of hosts, as mpirun has it: a line for each, with how many programs it is
// for. Lines of one host add up.
//
//	node1            one
//	node2:4          as MPICH has it
//	node3 slots=4    as Open MPI has it
func parseHosts(name string, r io.Reader) (all []slots, err error) {
	lines, number := bufio.NewScanner(r), 1
	for ; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if number == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		s, count := slots{host: words[0]}, "1"
		if m := inBrackets.FindStringSubmatch(words[0]); m != nil && m[3] != "" {
			s.host, count = m[1]+m[2], m[3][1:]
		} else if host, after, ok := strings.Cut(words[0], ":"); ok && !strings.Contains(after, ":") { // else IPv6
			s.host, count = host, after
		} else if len(words) == 2 {
			count, _ = strings.CutPrefix(words[1], "slots=")
			words = words[:1]
		}
		s.host = inBrackets.ReplaceAllString(s.host, "$1$2")
		s.count, err = strconv.Atoi(count)
		if err == nil && s.count > cluster.MaxNodes {
			return nil, fmt.Errorf("%s:%d: %d slots (want 1 to %d)", name, number, s.count, cluster.MaxNodes)
		}
		if err != nil || s.count < 1 || len(words) > 1 || s.host == "" || s.host[0] == '-' {
			return nil, fmt.Errorf("%s:%d: %q (want NAME, NAME:SLOTS or NAME slots=SLOTS)",
				name, number, strings.TrimSpace(text))
		}
		if k := slices.IndexFunc(all, func(o slots) bool { return o.host == s.host }); k >= 0 {
			all[k].count += s.count
		} else {
			all = append(all, s)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s:%d: longer than %d bytes (want NAME, NAME:SLOTS or NAME slots=SLOTS)",
			name, number, bufio.MaxScanTokenSize)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no hosts (want lines of NAME, NAME:SLOTS or NAME slots=SLOTS)", name)
	}
	return all, nil
}

// spread gives n programs to hosts, as many to each as it has slots, in the order of the list.
func spread(all []slots, n int) (hosts []string) {
	for _, s := range all {
		for range s.count {
			if len(hosts) < n {
				hosts = append(hosts, s.host)
			}
		}
	}
	return hosts
}
