package matching

import "testing"

// What is looked at for offers, as a receive is posted or completes, does not depend on how many there
// are: nothing for short ones.
func TestPost_CostsNoMoreBehindThousands(t *testing.T) {
	const short, long, posted, most = 8, 64, 5000, (MaxOffers + maxEarlier) * (maxEarlier + 1)
	for name, c := range map[string]struct {
		capacity func(k int) int
		pattern  func(k int) Pattern
		most     int // steps of one
	}{
		"short":       {func(int) int { return short }, func(k int) Pattern { return Pattern{1, 0, int32(k)} }, 0},
		"long":        {func(int) int { return long }, func(k int) Pattern { return Pattern{1, 0, int32(k)} }, MaxOffers + 1},
		"in turn":     {func(k int) int { return short + k%2*(long-short) }, func(k int) Pattern { return Pattern{1, 0, int32(k)} }, most},
		"of one tag":  {func(k int) int { return short + k%2*(long-short) }, func(int) Pattern { return Pattern{1, 0, 7} }, most},
		"long behind": {func(k int) int { return short + k/(posted-100)*(long-short) }, func(k int) Pattern { return Pattern{1, 0, int32(k)} }, most},
		"of any source": {func(int) int { return long }, func(k int) Pattern {
			return Pattern{[]Rank{AnySource, 1}[k/(posted-100)], 0, int32(k)}
		}, most},
	} {
		e := New(Config{Size: 2, EagerLimit: 100, EagerBytes: 1 << 20, Headers: 2 * posted, OfferFrom: 50})
		receives, data := make([]Receive, posted), make([]byte, 8)
		var out []Output
		check := func(what string, k, before int) {
			if steps := e.steps - before; steps > c.most {
				t.Fatalf("%s: receive %d took %d steps %s, want %d at most", name, k, steps, what, c.most)
			}
		}
		for k := range receives {
			before := e.steps
			receives[k] = Receive{Pattern: c.pattern(k), Capacity: c.capacity(k)}
			out = e.Post(&receives[k], out[:0])
			check("when it was posted", k, before)
		}
		for k := range receives {
			before := e.steps
			r := eager(c.pattern(k).Tag, len(data))
			var err error
			if out, err = e.Handle(1, &r, data, out[:0]); err != nil {
				t.Fatal(err)
			}
			check("when its message came", k, before)
		}
	}
}
