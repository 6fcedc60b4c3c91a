package barrier

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// arrows writes messages for people, and groups them: "0 <-> 1" is one each way, "1, 2 -> 0" to one
// receiver, "0 -> 1, 2" from one sender, "0 => all" a multicast.
func arrows(messages []notification) (texts []string) {
	type pair struct{ from, to int }
	there := map[pair]bool{}
	senders, receivers := map[int][]int{}, map[int][]int{} // of a receiver, of a sender; without pairs
	for _, m := range messages {
		there[pair{m.from, m.to}] = true
	}
	paired := func(m notification) bool { return there[pair{m.to, m.from}] }
	for _, m := range messages {
		if m.to != schedule.All && !paired(m) {
			senders[m.to] = append(senders[m.to], m.from)
			receivers[m.from] = append(receivers[m.from], m.to)
		}
	}
	written := map[pair]bool{}
	for _, m := range messages {
		switch {
		case written[pair{m.from, m.to}]:
		case m.to == schedule.All:
			texts = append(texts, fmt.Sprintf("%d => all", m.from))
		case paired(m):
			texts = append(texts, fmt.Sprintf("%d <-> %d", m.from, m.to))
			written[pair{m.to, m.from}] = true
		case len(senders[m.to]) > 1 || len(receivers[m.from]) == 1:
			texts = append(texts, fmt.Sprintf("%s -> %d", ranks(senders[m.to]), m.to))
			for _, from := range senders[m.to] {
				written[pair{from, m.to}] = true
			}
		default:
			var alone []int
			for _, to := range receivers[m.from] {
				if len(senders[to]) == 1 {
					alone = append(alone, to)
					written[pair{m.from, to}] = true
				}
			}
			texts = append(texts, fmt.Sprintf("%d -> %s", m.from, ranks(alone)))
		}
	}
	return texts
}

// maxPieces bounds the numbers and runs of numbers in a list of ranks.
const maxPieces = 16

// ranks writes a list of ranks, in its order: runs as "3-8", and of equal distances as "3, 6 ...
// 99".
func ranks(list []int) string {
	var pieces []string
	for i := 0; i < len(list); {
		if len(pieces) == maxPieces {
			pieces = append(pieces, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		text, n := rankRun(list[i:])
		pieces = append(pieces, text)
		i += n
	}
	return strings.Join(pieces, ", ")
}

// rankRun writes the first run of a list, and returns the number of ranks in it.
func rankRun(list []int) (text string, n int) {
	first := strconv.Itoa(list[0])
	if len(list) < 3 {
		return first, 1
	}
	distance := list[1] - list[0]
	for n = 2; n < len(list) && list[n]-list[n-1] == distance; n++ {
	}
	switch last := list[n-1]; {
	case distance == 1 && n >= 3:
		return fmt.Sprintf("%d-%d", list[0], last), n
	case distance > 1 && n >= 5:
		return fmt.Sprintf("%d, %d ... %d", list[0], list[1], last), n
	}
	return first, 1
}
