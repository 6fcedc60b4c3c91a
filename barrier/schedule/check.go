package schedule

import (
	"errors"
	"fmt"
	"iter"
	"math/big"
)

// ErrWrong is the class of all errors of Check.
var ErrWrong = errors.New("wrong schedule")

// messageID tells the messages of a barrier apart.
type messageID struct {
	from, to int
	label    uint8
}

func (id messageID) String() string {
	return fmt.Sprintf("rank %d's message %d to rank %d", id.from, id.label, id.to)
}

// message is one that a rank awaits.
type message struct {
	networks  uint64   // a bit for each network that it is sent over
	needed    bool     // its receiver waits for it
	knowledge *big.Int // the entries that its sender knows of, a bit for each rank; nil until it is sent
}

// Check proves that the algorithm is right for a size, or returns an ErrWrong with the fault. In
// a right schedule each message that is sent is awaited once, each that is awaited is sent, no
// rank waits for ever, and each exit causally follows the entry of every rank. There are 256
// labels, which levels within levels share. Check takes memory for size squared bits.
func (a Algorithm) Check(size int) (err error) {
	defer func() {
		if why := recover(); why != nil {
			e, is := why.(wrong)
			if !is {
				panic(why)
			}
			err = fmt.Errorf("%v for %d ranks: %w: %w", a, size, ErrWrong, e)
		}
	}()
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
	c := checker{steps, map[messageID]*message{}}
	if err := c.collect(); err != nil {
		return err
	}
	if err := c.match(); err != nil {
		return err
	}
	return c.follow()
}

// checker has the schedules of all ranks, and the messages that these await.
type checker struct {
	steps    [][]Step
	messages map[messageID]*message
}

// awaits yields the messages that ranks 0, 1, … await.
func (c *checker) awaits() iter.Seq[messageID] {
	return func(yield func(messageID) bool) {
		for rank, own := range c.steps {
			for _, s := range own {
				for _, r := range s.Await {
					if !yield(messageID{r.From, rank, r.Label}) {
						return
					}
				}
			}
		}
	}
}

// collect collects all messages that are awaited.
func (c *checker) collect() error {
	for id := range c.awaits() {
		switch {
		case id.from < 0 || id.from >= len(c.steps):
			return fmt.Errorf("rank %d awaits rank %d", id.to, id.from)
		case id.from == id.to:
			return fmt.Errorf("rank %d awaits itself", id.to)
		case c.messages[id] != nil:
			return fmt.Errorf("%v is awaited twice", id)
		}
		c.messages[id] = new(message)
	}
	return nil
}

// match checks that the messages awaited are those sent. Copies may be sent over several networks.
func (c *checker) match() error {
	for rank, own := range c.steps {
		for _, s := range own {
			for _, t := range s.Notify {
				if err := c.matchSend(rank, t); err != nil {
					return err
				}
			}
		}
	}
	for id := range c.awaits() {
		if c.messages[id].networks == 0 {
			return fmt.Errorf("%v is awaited, and never sent", id)
		}
	}
	return nil
}

func (c *checker) matchSend(rank int, t Send) error {
	switch {
	case t.To != All && (t.To < 0 || t.To >= len(c.steps)):
		return fmt.Errorf("rank %d notifies rank %d", rank, t.To)
	case t.NIC < 0 || t.NIC >= MaxNICs:
		return fmt.Errorf("rank %d notifies over network %d", rank, t.NIC)
	}
	for to := range audience(rank, t.To, len(c.steps)) {
		id := messageID{rank, to, t.Label}
		m := c.messages[id]
		switch {
		case m == nil:
			return fmt.Errorf("no rank awaits %v", id)
		case m.networks>>t.NIC&1 == 1:
			return fmt.Errorf("%v is sent twice", id)
		}
		m.networks |= 1 << t.NIC
	}
	return nil
}

// audience yields the ranks that get a message.
func audience(from, to, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if to != All {
			yield(to)
			return
		}
		for r := range size {
			if r != from && !yield(r) {
				return
			}
		}
	}
}

// follower is a rank that follows its schedule.
type follower struct {
	at    int     // the step in which it waits
	known big.Int // the entries that it knows of
}

// follow runs the schedules. Every message carries the set of entries that its sender knows of.
func (c *checker) follow() error {
	ranks, ready := make([]follower, len(c.steps)), make([]int, len(c.steps))
	for rank := range ranks {
		ready[rank] = rank
		ranks[rank].known.SetBit(&ranks[rank].known, rank, 1)
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		r := &ranks[rank]
		for r.at < len(c.steps[rank]) && c.receive(rank, r) {
			for _, t := range c.steps[rank][r.at].Notify {
				ready = c.send(rank, t, &r.known, ready)
			}
			r.at++
		}
	}
	return c.verdict(ranks)
}

// receive adds the knowledge in the messages that a rank's step awaits, or returns false and notes
// one that was not sent yet.
func (c *checker) receive(rank int, r *follower) bool {
	awaits := c.steps[rank][r.at].Await
	for _, a := range awaits {
		if m := c.messages[messageID{a.From, rank, a.Label}]; m.knowledge == nil {
			m.needed = true
			return false
		}
	}
	for _, a := range awaits {
		r.known.Or(&r.known, c.messages[messageID{a.From, rank, a.Label}].knowledge)
	}
	return true
}

// send sends a message, and adds the ranks that waited for it to those that are ready.
func (c *checker) send(rank int, t Send, known *big.Int, ready []int) []int {
	knowledge := new(big.Int).Set(known) // one for all the audience
	for to := range audience(rank, t.To, len(c.steps)) {
		m := c.messages[messageID{rank, to, t.Label}]
		if m.knowledge == nil { // the first of several copies
			m.knowledge = knowledge
		}
		if m.needed {
			m.needed = false
			ready = append(ready, to)
		}
	}
	return ready
}

func (c *checker) verdict(ranks []follower) error {
	for rank, r := range ranks {
		if all := len(c.steps[rank]); r.at < all {
			return fmt.Errorf("rank %d waits for ever, at step %d of %d", rank, r.at+1, all)
		}
		// The lowest zero of known.
		if other := new(big.Int).Not(&r.known).TrailingZeroBits(); other < uint(len(ranks)) {
			return fmt.Errorf("rank %d may leave before rank %d has entered", rank, other)
		}
	}
	return nil
}
