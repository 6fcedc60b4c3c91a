package mcd_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// A backlog without a bound takes the memory of what waits, and not more than there is: it grows
// while it is used, and keeps the order.
func TestBacklogGrows(t *testing.T) {
	es := open(t, 2, 1, func(c *mcd.Config) { c.Backlog = math.MaxInt })
	p0, p1, sentinel := port(t, es[0], 1), port(t, es[1], 1), port(t, es[1], 2)
	sent, received := 0, 0
	for round := range 10 {
		for range 50 * (round + 1) {
			send(t, p0, p1.Addr(), fmt.Appendf(nil, "%d", sent))
			sent++
		}
		send(t, p0, sentinel.Addr(), nil)
		expect(t, sentinel, p0.Addr(), "")
		for range 30 * (round + 1) {
			expect(t, p1, p0.Addr(), fmt.Sprint(received))
			received++
		}
	}
	for ; received < sent; received++ {
		expect(t, p1, p0.Addr(), fmt.Sprint(received))
	}
}
