package optimize_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"
	"github.com/rawlane/rawlane/vlan/optimize"
)

// One way, at most ⌈n/k⌉ of the n edges that leave a vertex have one colour, and of those that
// arrive (König). Both ways, at most 2⌈n/2k⌉ of all n.
func TestColourKeepsItsBounds(t *testing.T) {
	for _, seed := range vlantest.Seeds(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		vertices, colours := 2+r.IntN(12), 1+r.IntN(9)
		edges := make([][2]int, r.IntN(200))
		for i := range edges {
			a := r.IntN(vertices)
			edges[i] = [2]int{a, (a + 1 + r.IntN(vertices-1)) % vertices}
		}
		degree := func(sides ...int) (n []int) {
			n = make([]int, vertices)
			for _, e := range edges {
				for _, side := range sides {
					n[e[side]]++
				}
			}
			return n
		}
		check := func(name string, of []int, most func(n int) int, sides ...int) {
			met := make(map[[2]int]int) // by vertex and colour
			n := degree(sides...)
			for i, e := range edges {
				if of[i] < 0 || of[i] >= colours {
					t.Fatalf("seed %d: colour %d of %d", seed, of[i], colours)
				}
				for _, side := range sides {
					v := e[side]
					if met[[2]int{v, of[i]}]++; met[[2]int{v, of[i]}] > most(n[v]) {
						t.Fatalf("seed %d, %s, %d colours: more than %d of %d edges at vertex %d have one", seed, name, colours, most(n[v]), n[v], v)
					}
				}
			}
		}
		oneWay := optimize.Colour(edges, vertices, colours, false)
		even := func(n int) int { return (n + colours - 1) / colours }
		check("leaving", oneWay, even, 0)
		check("arriving", oneWay, even, 1)
		check("both ways", optimize.Colour(edges, vertices, colours, true), func(n int) int { return 2 * ((n + 2*colours - 1) / (2 * colours)) }, 0, 1)
	}
}
