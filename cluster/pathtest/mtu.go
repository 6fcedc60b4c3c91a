package pathtest

import (
	"context"

	"github.com/rawlane/rawlane/mcd"
)

// fullSize looks for paths that carry short frames and not full ones, and finds the largest size
// that they carry, by bisection.
func (c *checker) fullSize(ctx context.Context) error {
	full := c.ep.MaxPayload()
	var tight []*narrow
	passed, err := c.pass(ctx, c.alive(), func(*checked) int { return full })
	if err != nil {
		return err
	}
	for _, p := range c.alive() {
		if !passed[p] {
			tight = append(tight, newNarrow(p, full))
		}
	}
	for {
		var asked []*checked
		size := make(map[*checked]int)
		for _, n := range tight {
			if n.passes+1 < n.fails {
				asked = append(asked, n.path)
				size[n.path] = (n.passes + n.fails) / 2
			}
		}
		if len(asked) == 0 {
			break
		}
		passed, err := c.pass(ctx, asked, func(p *checked) int { return size[p] })
		if err != nil {
			return err
		}
		for _, n := range tight {
			n.note(size[n.path], passed[n.path])
		}
	}
	// A node that stood still for a while answered probes of no size: full ones are asked again.
	var doubted []*checked
	for _, n := range tight {
		doubted = append(doubted, n.path)
	}
	if passed, err = c.pass(ctx, doubted, func(*checked) int { return full }); err != nil {
		return err
	}
	for _, n := range tight {
		if passed[n.path] {
			continue
		}
		c.found(Fault{Kind: MTU, To: n.path.Node, By: n.path.OptionalTag,
			Bytes: n.passes + mcd.HeaderLen, Want: full + mcd.HeaderLen})
	}
	return nil
}

// narrow is a path that does not carry full frames. Its largest size is at least passes and below
// fails.
type narrow struct {
	path          *checked
	passes, fails int
}

func newNarrow(p *checked, full int) *narrow {
	return &narrow{path: p, passes: mcd.MinProbe, fails: full}
}

// note records whether a probe of a size passed; size 0 means that none was sent.
func (n *narrow) note(size int, passed bool) {
	switch {
	case size == 0:
	case passed:
		n.passes = size
	default:
		n.fails = size
	}
}

func (c *checker) alive() (alive []*checked) {
	for _, p := range c.paths {
		if p.alive {
			alive = append(alive, p)
		}
	}
	return alive
}

// pass reports on which of the paths a probe of its size is answered.
func (c *checker) pass(ctx context.Context, paths []*checked, size func(*checked) int) (map[*checked]bool, error) {
	passed := make(map[*checked]bool)
	for range tries {
		numbers := make(map[*checked]uint32)
		var all []uint32
		for _, p := range paths {
			if passed[p] {
				continue
			}
			n, err := c.send(ctx, p.Path, mcd.ProbeOptions{Size: size(p)})
			if err != nil {
				return nil, err
			}
			numbers[p] = n
			all = append(all, n)
		}
		if err := c.await(ctx, c.o.Timeout, all...); err != nil {
			return nil, err
		}
		for p, n := range numbers {
			passed[p] = len(c.answers(n)) > 0
		}
	}
	return passed, nil
}
