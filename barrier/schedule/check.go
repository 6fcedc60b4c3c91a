package schedule

import (
	"errors"
	"fmt"
)

// ErrWrong is the class of all errors of Check.
var ErrWrong = errors.New("wrong schedule")

// message is one that a rank sends.
type message struct {
	from, to int
	label    uint8
}

func (m message) String() string {
	return fmt.Sprintf("rank %d's message %d to rank %d", m.from, m.label, m.to)
}

// Check proves that the algorithm is right for a size, or returns an ErrWrong with the fault. In
// a right schedule each message that is sent is awaited once, each that is awaited is sent, no
// rank waits for ever, and each exit causally follows the entry of every rank. Check takes memory
// for size squared bits.
func (a Algorithm) Check(size int) error {
	steps := make([][]Step, size)
	for rank := range steps {
		steps[rank] = a.For(size).Steps(rank, size)
	}
	if err := check(steps); err != nil {
		return fmt.Errorf("%v for %d ranks: %w: %w", a, size, ErrWrong, err)
	}
	return nil
}

func check(steps [][]Step) error {
	awaited, err := checkAwaited(steps)
	if err != nil {
		return err
	}
	if err := checkSent(steps, awaited); err != nil {
		return err
	}
	return follow(steps)
}

// checkAwaited returns all messages that are awaited.
func checkAwaited(steps [][]Step) (map[message]bool, error) {
	awaited := map[message]bool{}
	for rank, own := range steps {
		for _, s := range own {
			for _, r := range s.Await {
				m := message{r.From, rank, r.Label}
				switch {
				case r.From < 0 || r.From >= len(steps):
					return nil, fmt.Errorf("rank %d awaits rank %d", rank, r.From)
				case r.From == rank:
					return nil, fmt.Errorf("rank %d awaits itself", rank)
				case awaited[m]:
					return nil, fmt.Errorf("%v is awaited twice", m)
				}
				awaited[m] = true
			}
		}
	}
	return awaited, nil
}

// checkSent checks that the messages awaited are those sent. Copies may be sent over several
// networks.
func checkSent(steps [][]Step, awaited map[message]bool) error {
	type copied struct {
		message
		nic int
	}
	sent := map[copied]bool{}
	left := len(awaited)
	for rank, own := range steps {
		for _, s := range own {
			for _, t := range s.Notify {
				if t.To != All && (t.To < 0 || t.To >= len(steps)) {
					return fmt.Errorf("rank %d notifies rank %d", rank, t.To)
				}
				if t.NIC < 0 || t.NIC >= MaxNICs {
					return fmt.Errorf("rank %d notifies over network %d", rank, t.NIC)
				}
				for _, to := range audience(rank, t.To, len(steps)) {
					m := message{rank, to, t.Label}
					first, known := awaited[m]
					switch {
					case !known:
						return fmt.Errorf("no rank awaits %v", m)
					case sent[copied{m, t.NIC}]:
						return fmt.Errorf("%v is sent twice", m)
					case first:
						awaited[m] = false
						left--
					}
					sent[copied{m, t.NIC}] = true
				}
			}
		}
	}
	for m, missing := range awaited {
		if left > 0 && missing {
			return fmt.Errorf("%v is awaited, and never sent", m)
		}
	}
	return nil
}

// audience returns the ranks that get a message.
func audience(from, to, size int) []int {
	if to != All {
		return []int{to}
	}
	all := make([]int, 0, size-1)
	for r := range size {
		if r != from {
			all = append(all, r)
		}
	}
	return all
}

// follow runs the schedules. Every message carries the set of entries that its sender knows of.
func follow(steps [][]Step) error {
	size := len(steps)
	known := make([]set, size)
	at := make([]int, size)     // the step of each rank
	told := map[message]set{}   // messages on their way, and the knowledge in them
	waits := map[message]bool{} // messages that a rank needs to go on
	var ready []int             // ranks to look at
	for rank := range size {
		known[rank] = newSet(size)
		known[rank].add(rank)
		ready = append(ready, rank)
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for at[rank] < len(steps[rank]) {
			s := &steps[rank][at[rank]]
			if !takeAll(s, rank, known[rank], told, waits) {
				break
			}
			for _, t := range s.Notify {
				knowledge := known[rank].clone() // one for all the audience
				for _, to := range audience(rank, t.To, size) {
					m := message{rank, to, t.Label}
					told[m] = knowledge
					if waits[m] {
						delete(waits, m)
						ready = append(ready, to)
					}
				}
			}
			at[rank]++
		}
	}
	return verdict(steps, at, known)
}

// takeAll adds the knowledge in all messages that a step awaits, or returns false and notes a
// message that is not there yet.
func takeAll(s *Step, rank int, known set, told map[message]set, waits map[message]bool) bool {
	for _, r := range s.Await {
		m := message{r.From, rank, r.Label}
		if _, here := told[m]; !here {
			waits[m] = true
			return false
		}
	}
	for _, r := range s.Await {
		m := message{r.From, rank, r.Label}
		known.unite(told[m])
		delete(told, m)
	}
	return true
}

func verdict(steps [][]Step, at []int, known []set) error {
	for rank := range steps {
		if at[rank] < len(steps[rank]) {
			return fmt.Errorf("rank %d waits for ever, at step %d of %d", rank, at[rank]+1, len(steps[rank]))
		}
		if other := known[rank].missing(len(steps)); other >= 0 {
			return fmt.Errorf("rank %d may leave before rank %d has entered", rank, other)
		}
	}
	return nil
}

// set is a set of ranks.
type set []uint64

func newSet(size int) set { return make(set, (size+63)/64) }

func (s set) add(rank int) { s[rank/64] |= 1 << (rank % 64) }

func (s set) clone() set { return append(set(nil), s...) }

func (s set) unite(other set) {
	for i, w := range other {
		s[i] |= w
	}
}

// missing returns the lowest rank below size that is not in s, or -1.
func (s set) missing(size int) int {
	for rank := range size {
		if s[rank/64]&(1<<(rank%64)) == 0 {
			return rank
		}
	}
	return -1
}
