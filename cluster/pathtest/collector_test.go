package pathtest

import (
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// Answers to probes that were never sent are not kept, nor more than maxAnswers to one.
func TestCollector_ForgedAnswers(t *testing.T) {
	es := mcdtest.Open(t, 2, mcdtest.Config{})
	c := collect(es[0], Options{})
	defer c.stop()
	number, err := c.ask(mcd.Path{Node: 1}, mcd.ProbeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(100_000) {
		c.hear(&mcd.Probe{Reply: true, Number: number + 1 + i, From: 1})
		c.hear(&mcd.Probe{Reply: true, Number: number, From: 1})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) != 1 || len(c.got[number]) != maxAnswers {
		t.Errorf("%d probes with answers, %d to the one that was sent; want 1 and %d", len(c.got), len(c.got[number]), maxAnswers)
	}
}
