package mpi_test

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Each algorithm gives what the operation promises, for any length and any number of processes, and
// sends as many messages as it is known for.
func TestAlgorithms(t *testing.T) {
	type counts func(n, rank int) (sent int)
	power := func(n int) int { return 1 << (bits.Len(uint(n)) - 1) }
	// folded returns what a rank sends of an Allreduce in which a power of two takes part in so many
	// messages each.
	folded := func(n, rank, each int) int {
		switch extra := n - power(n); {
		case rank >= 2*extra:
			return each
		case rank%2 == 0:
			return 1
		default:
			return each + 1
		}
	}
	sent := map[string]counts{
		"allreduce, recursive doubling": func(n, rank int) int { return folded(n, rank, bits.Len(uint(n))-1) },
		"allreduce, halving and doubling": func(n, rank int) int {
			return folded(n, rank, 2*(bits.Len(uint(n))-1))
		},
		"allgather, dissemination":    func(n, _ int) int { return bits.Len(uint(n - 1)) },
		"allgather, ring":             func(n, _ int) int { return n - 1 },
		"alltoall, scattered":         func(n, _ int) int { return n - 1 },
		"alltoall, store and forward": func(n, _ int) int { return bits.Len(uint(n - 1)) },
		"bcast, binomial tree": func(n, rank int) int {
			children := 0
			for bit := 1; rank+bit < n && rank&bit == 0 && bit < n; bit *= 2 {
				children++
			}
			return children
		},
		"bcast, multicast":             func(n, _ int) int { return 0 },
		"allreduce, multicast":         func(_, rank int) int { return min(rank, 1) },
		"allreduce, multicast by each": func(n, _ int) int { return 0 },
		"allgather, multicast by each": func(n, _ int) int { return 0 },
		"allgather, multicast":         func(_, rank int) int { return min(rank, 1) },
	}
	others := map[string]string{ // for what does not fit a frame
		"bcast": "binomial tree", "allreduce": "recursive doubling", "allgather": "dissemination",
	}
	for _, a := range mpi.Algorithms() {
		name := a.Operation + ", " + a.Name
		for _, n := range sizes() {
			table := []mpi.Algorithm{{Operation: a.Operation, Name: a.Name}}
			bubble(t, n, fault.Config{}, mpi.Config{Algorithms: table}, func(t *testing.T, c *mpi.Comm) {
				for _, count := range []int{0, 1, 32, 33, 128, 5000} {
					before := c.World().Counters().Sent
					var got, want []int
					switch a.Operation {
					case "allreduce":
						got, want = make([]int, 2*count), combined(0, n-1, count)
						must(t, mpi.Allreduce(t.Context(), c, mapOf(c.Rank(), count), got, affine))
					case "allgather":
						got, want = make([]int, n*count), sequence(0, n*count)
						must(t, mpi.Allgather(t.Context(), c, sequence(c.Rank()*count, count), got))
					case "alltoall":
						mine := make([]int, 0, n*count)
						got = make([]int, n*count)
						for k := range n {
							mine = append(mine, sequence(100*c.Rank()+k, count)...)
							want = append(want, sequence(100*k+c.Rank(), count)...)
						}
						must(t, mpi.Alltoall(t.Context(), c, mine, got))
					case "bcast":
						got, want = make([]int, count), sequence(7, count)
						if c.Rank() == 0 {
							copy(got, want)
						}
						must(t, mpi.Bcast(t.Context(), c, got, 0))
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s of %d at %d of %d: wrong", name, count, c.Rank(), n)
					}
					by, frame := name, 8*len(got)
					if a.Name == "multicast by each" && a.Operation == "allgather" {
						frame = 8 * count
					}
					if strings.HasPrefix(a.Name, "multicast") && frame > 1024 {
						by = a.Operation + ", " + others[a.Operation]
					}
					if got, want := int(c.World().Counters().Sent-before), sent[by](n, c.Rank()); got != want {
						t.Errorf("%s of %d at %d of %d: %d messages, want %d", name, count, c.Rank(), n, got, want)
					}
				}
			})
		}
	}
}

// Without a table of the user's, long data goes another way than short data.
func TestAlgorithms_ByLength(t *testing.T) {
	bubble(t, 8, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		for _, b := range []struct {
			count int
			want  uint64
		}{{511, 3}, {512, 7}} {
			before := c.World().Counters().Sent
			must(t, mpi.Allgather(t.Context(), c, make([]int, b.count), make([]int, 8*b.count)))
			if got := c.World().Counters().Sent - before; got != b.want {
				t.Errorf("%d elements: %d messages, want %d", b.count, got, b.want)
			}
		}
	})
}

// Of short data an Alltoall among many has few messages.
func TestAlgorithms_Alltoall(t *testing.T) {
	for _, b := range []struct {
		n, count int
		want     uint64
	}{{7, 1, 6}, {8, 1, 3}, {8, 31, 3}, {8, 32, 7}} {
		bubble(t, b.n, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			must(t, mpi.Alltoall(t.Context(), c, make([]int, b.n*b.count), make([]int, b.n*b.count)))
			if got := c.World().Counters().Sent; got != b.want {
				t.Errorf("%d elements for each of %d: %d messages, want %d", b.count, b.n, got, b.want)
			}
		})
	}
}

// A Bcast is a multicast if it is short.
func TestAlgorithms_ByShape(t *testing.T) {
	for _, b := range []struct {
		n, bytes  int
		multicast bool
	}{{2, 8, true}, {2, 1024, true}, {2, 1025, false}, {5, 8, true}} {
		bubble(t, b.n, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			must(t, mpi.Bcast(t.Context(), c, make([]byte, b.bytes), 0))
			if got := c.World().Counters().Sent == 0; c.Rank() == 0 && got != b.multicast {
				t.Errorf("%d processes, %d bytes: a multicast: %v, want %v", b.n, b.bytes, got, b.multicast)
			}
		})
	}
}

// The table is that of the documents.
func TestAlgorithms_Documented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "docs", "message-passing.md"))
	must(t, err)
	for _, a := range mpi.Algorithms() {
		where := map[bool]string{false: "anywhere", true: "in a crowd"}[a.Crowded]
		line := fmt.Sprintf("| %s | %d | %d | %s | %s | %s |\n", a.Operation, a.Processes, a.From, where, a.Name, a.Source)
		if !strings.Contains(string(doc), line) {
			t.Errorf("docs/message-passing.md lacks %s", line)
		}
	}
}

func TestAlgorithms_Misuse(t *testing.T) {
	ep := mcdtest.Open(t, 1, mcdtest.Config{})[0]
	for _, a := range []mpi.Algorithm{{Operation: "allreduce", Name: "ring"}, {Operation: "barrier", Name: "ring"}, {}} {
		_, err := mpi.Open(ep, mpi.Config{Algorithms: []mpi.Algorithm{a}})
		if err == nil || !strings.Contains(err.Error(), "Config.Algorithms: "+a.Operation+" has no algorithm") {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// An Op is called with some elements, and not with none, where a process has nothing to combine: it
// may look at the first group of them without a look at how many there are.
func TestOp_HasElements(t *testing.T) {
	halving := mpi.Config{Algorithms: []mpi.Algorithm{{Operation: "allreduce", Name: "halving and doubling"}}}
	for n := 1; n <= 5; n++ {
		bubble(t, n, fault.Config{}, halving, func(t *testing.T, c *mpi.Comm) {
			pair := func(into, with []int) {
				if len(into) == 0 || len(with) == 0 {
					t.Errorf("of %d: called with %d and %d elements", n, len(into), len(with))
					return
				}
				into[0], into[1] = into[0]+with[0], into[1]+with[1]
			}
			counts := make([]int, n)
			counts[n-1] = 2
			part, got := make([]int, counts[c.Rank()]), make([]int, 2)
			must(t, mpi.ReduceScatter(t.Context(), c, []int{1, 2}, part, counts, pair))
			must(t, mpi.Allreduce(t.Context(), c, []int{1, 2}, got, pair))
			if got[0] != n || got[1] != 2*n || len(part) > 0 && !slices.Equal(part, got) {
				t.Errorf("of %d: %v and %v", n, part, got)
			}
			must(t, mpi.Reduce(t.Context(), c, nil, nil, pair, 0))
			must(t, mpi.Scan(t.Context(), c, nil, nil, pair))
		})
	}
}
