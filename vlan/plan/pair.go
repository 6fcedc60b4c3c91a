package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Pair is two nodes by number, the lower one first. Routes belong to pairs, since both directions
// must use one VID: see the package's comment.
//
// Source: VFREC §2.3.
type Pair struct{ A, B int }

// PairOf returns the pair of two nodes, in either order.
func PairOf(a, b int) Pair { return Pair{min(a, b), max(a, b)} }

// ParsePair reads a pair as String writes it, in either order: 2-8 or 8-2. It does not ask whether
// there are such nodes.
func ParsePair(text string) (Pair, error) {
	left, right, _ := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(left, 10, 31)
	b, errB := strconv.ParseUint(right, 10, 31)
	if errA != nil || errB != nil {
		return Pair{}, fmt.Errorf("pair %.80q: want the numbers of two nodes, such as 2-8", text)
	}
	return PairOf(int(a), int(b)), nil
}

// String formats p as 2-8.
func (p Pair) String() string { return fmt.Sprintf("%d-%d", p.A, p.B) }

// Compare orders pairs by their lower node, then by the other.
func (p Pair) Compare(o Pair) int { return cmp.Or(cmp.Compare(p.A, o.A), cmp.Compare(p.B, o.B)) }
