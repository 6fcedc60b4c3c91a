package schedule

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// unknownHosts is what Shape.String says where it does not know where ranks run.
const unknownHosts = "unknown hosts"

// hostsOfAKind are hosts as Shape.String says them, and spreadOverHosts how ranks are spread over
// them.
var (
	hostsOfAKind = regexp.MustCompile(
		`^(?:(1) host|([0-9]+) hosts): (?:(1) rank|([0-9]+) ranks) on (?:a core each|1 core|[0-9]+ cores)$`)
	spreadOverHosts = regexp.MustCompile(`^(?:in turn|spread [0-9a-f]{8})$`)
)

// checkWhere returns an error unless a Shape of so many ranks could say where: a row for ranks of
// other words, such as those that were cut, would be for none. "" is anywhere.
func checkWhere(ranks int, where string) error {
	if where == "" || where == unknownHosts {
		return nil
	}
	kinds := strings.Split(where, "; ")
	if last := len(kinds) - 1; last > 0 && spreadOverHosts.MatchString(kinds[last]) {
		kinds = kinds[:last]
	}
	sum := 0
	for _, kind := range kinds {
		found := hostsOfAKind.FindStringSubmatch(kind)
		if found == nil {
			return fmt.Errorf("%q: want where ranks run, such as \"1 host: 4 ranks on 2 cores\", "+
				"or nothing for anywhere", where)
		}
		hosts, err1 := strconv.Atoi(found[1] + found[2])
		each, err2 := strconv.Atoi(found[3] + found[4])
		if err1 != nil || err2 != nil || hosts > maxNumber || each > maxNumber {
			return fmt.Errorf("%q: want no more than %d hosts, and ranks on each", where, maxNumber)
		}
		sum += hosts * each
	}
	if sum != ranks {
		return fmt.Errorf("%q: want where %d ranks run (these are %d)", where, ranks, sum)
	}
	return nil
}
