package launch

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// A node on links over shared memory has its addresses by its number: one that begins anew is known
// to the others, and one that runs already is refused, with its process and what to give instead.
func TestOpenSegments_OfTheSameNode(t *testing.T) {
	dir, err := SegmentDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := ClusterFlags{Kind: OverSHM, NICs: 2, cluster: 1}
	open := func(node int) []transport.Link {
		t.Helper()
		links, err := c.openSegments(node, dir)
		if err != nil {
			t.Fatal(err)
		}
		return links
	}
	macs := func(links []transport.Link) string { return fmt.Sprint(links[0].MAC(), links[1].MAC()) }
	end := func(links []transport.Link) { _ = closeLinks([][]transport.Link{links}) }
	first := open(3)
	want := macs(first)
	defer end(open(4))
	c.cluster = 2
	defer end(open(3))
	c.cluster = 1
	again, err := c.openSegments(3, dir)
	end(again)
	for _, part := range []string{"node 3 of cluster 1 runs on this host already", fmt.Sprintf("of process %d ", os.Getpid()),
		"another --node, --cluster or --segment"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q in it", err, part)
		}
	}
	end(first)
	second := open(3)
	defer end(second)
	if got := macs(second); got != want {
		t.Errorf("node 3 begins anew at %s, and was at %s", got, want)
	}
}
