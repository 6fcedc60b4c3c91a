package traffic

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	// Patterns lists the names that Pattern takes.
	Patterns = "cg16, cg, shift:K, all, random:SEED, bisection"

	// maxNodes bounds the nodes of a pattern: a topology has no more hosts.
	maxNodes = 1 << 20
	// maxFlows bounds the flows of a pattern: all to all among 2,048 nodes.
	maxFlows = 1 << 22
)

// Pattern returns the traffic of n nodes in one of the patterns that networks are measured with.
// Each node that sends, sends 1 Gbit/s in all:
//
//	cg          the main exchanges of NPB CG: each process with its mirror in the matrix, if
//	            that is not itself. n is a square r*r, and node r*i+j exchanges with r*j+i; or
//	            n is 2*r*r: then pairs of neighbours are one place of the matrix, and the first
//	            of each exchanges with the first (VFREC §2.4)
//	cg16        cg of 16 nodes: 1-4, 2-8, 3-12, 6-9, 7-13 and 11-14, both ways (VFREC figure 4)
//	shift:K     nodes 0 to n-1-K send to the one K above. shift:8 of 16 is 0>8 to 7>15, one way
//	            (VFREC §5.2)
//	all         each sends the same to every other one
//	random:SEED each sends to one other and receives from one other, by the seed
//	bisection   each of the lower half and its counterpart in the upper half, both ways: i and
//	            i+n/2; n is even
//
// The error is ErrInvalid.
func Pattern(name string, n int) (Matrix, error) {
	m, err := pattern(name, n)
	if err != nil {
		return nil, fmt.Errorf("%w: pattern %q for %d nodes: %w (there are: %s)", ErrInvalid, name, n, err, Patterns)
	}
	return m, nil
}

var errNoPattern = errors.New("there is no such pattern")

func pattern(name string, n int) (Matrix, error) {
	if n < 1 || n > maxNodes {
		return nil, fmt.Errorf("want 1 to %d nodes", maxNodes)
	}
	kind, argument, found := strings.Cut(name, ":")
	number, err := strconv.ParseUint(argument, 10, 64)
	switch numbered := kind == "shift" || kind == "random"; {
	case numbered && err != nil:
		return nil, fmt.Errorf("want a number behind the colon, as %s:8", kind)
	case found && !numbered:
		return nil, errNoPattern
	}
	switch kind {
	case "cg":
		return patternCG(n)
	case "cg16":
		if n != 16 {
			return nil, fmt.Errorf("want 16 nodes (or the pattern cg)")
		}
		return patternCG(n)
	case "shift":
		if number < 1 || number >= uint64(n) {
			return nil, fmt.Errorf("want to shift by 1 to %d", n-1)
		}
		return partners(n, func(i int) int { return i + int(number) }), nil
	case "all":
		return patternAll(n)
	case "random":
		return patternRandom(n, number), nil
	case "bisection":
		if n%2 != 0 {
			return nil, fmt.Errorf("want an even number of nodes")
		}
		return partners(n, func(i int) int { return (i + n/2) % n }), nil
	}
	return nil, errNoPattern
}

// partners returns the traffic in which each node sends to one other, if there is such a node.
func partners(n int, of func(int) int) (m Matrix) {
	for i := range n {
		if to := of(i); to >= 0 && to < n && to != i {
			m = append(m, Flow{i, to, topology.Gbps})
		}
	}
	return m
}

// patternCG is NPB 3's exch_proc.
func patternCG(n int) (Matrix, error) {
	for rows := 1; rows*rows <= n; rows++ {
		mirror := func(i int) int { return i%rows*rows + i/rows }
		switch n {
		case rows * rows:
			return partners(n, mirror), nil
		case 2 * rows * rows:
			return partners(n, func(i int) int { return 2*mirror(i/2) + i%2 }), nil
		}
	}
	return nil, fmt.Errorf("want a square of nodes, or twice a square")
}

func patternAll(n int) (m Matrix, err error) {
	if n*n > maxFlows {
		return nil, fmt.Errorf("too many flows (want 2048 nodes at most)")
	}
	for i := range n {
		for j := range n {
			if i != j {
				m = append(m, Flow{i, j, topology.Gbps / topology.Rate(n-1)})
			}
		}
	}
	return m, nil
}

// patternRandom is Sattolo's shuffle: a permutation of one cycle, so that no node sends to itself.
func patternRandom(n int, seed uint64) Matrix {
	c := prng.Source(seed)
	to := make([]int, n)
	for i := range to {
		to[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := c.Below(i)
		to[i], to[j] = to[j], to[i]
	}
	return partners(n, func(i int) int { return to[i] })
}
