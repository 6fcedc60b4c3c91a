package pathtest

import (
	"context"
	"slices"

	"github.com/rawlane/rawlane/mcd"
)

// narrow is a path that does not carry full frames. Its largest size is at least passes and below
// fails.
type narrow struct {
	path          *checked
	passes, fails int
}

// fullSize looks for paths that carry short frames and not full ones, and finds the largest size
// that they carry, by bisection.
func (c *checker) fullSize(ctx context.Context) error {
	full := c.ep.MaxPayload()
	var paths []*narrow
	for _, p := range c.paths {
		if p.alive {
			paths = append(paths, &narrow{p, mcd.MinProbe, full})
		}
	}
	atFull := func(*narrow) int { return full }
	_, tight, err := c.pass(ctx, paths, atFull)
	for unsettled := tight; err == nil; {
		unsettled = slices.DeleteFunc(slices.Clone(unsettled), func(n *narrow) bool { return n.passes+1 >= n.fails })
		if len(unsettled) == 0 {
			break
		}
		middle := func(n *narrow) int { return (n.passes + n.fails) / 2 }
		var passed, failed []*narrow
		passed, failed, err = c.pass(ctx, unsettled, middle)
		for _, n := range passed {
			n.passes = middle(n)
		}
		for _, n := range failed {
			n.fails = middle(n)
		}
	}
	if err != nil {
		return err
	}
	// A node that stood still for a while answered probes of no size: full ones are asked again.
	if _, tight, err = c.pass(ctx, tight, atFull); err != nil {
		return err
	}
	for _, n := range tight {
		c.found(Fault{Kind: MTU, To: n.path.Node, By: n.path.OptionalTag,
			Bytes: n.passes + c.ep.HeaderLen(), Want: full + c.ep.HeaderLen()})
	}
	return nil
}

// pass tells the paths on which a probe of its size is answered from the others.
func (c *checker) pass(
	ctx context.Context, paths []*narrow, size func(*narrow) int,
) (passed, failed []*narrow, err error) {
	var probes []probe
	for _, n := range paths {
		probes = append(probes, probe{n.path.Path, mcd.ProbeOptions{Size: size(n)}})
	}
	answered, err := c.answered(ctx, probes)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range paths {
		if answered[i] {
			passed = append(passed, n)
		} else {
			failed = append(failed, n)
		}
	}
	return passed, failed, nil
}
