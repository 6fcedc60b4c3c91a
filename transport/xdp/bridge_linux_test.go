package xdp_test

import (
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/xdp"
)

// A bridge takes the tag out of a frame's bytes. On a bed with one it is there again at the other
// end, where the program looks for it.
func TestTags_ThroughABridge(t *testing.T) {
	need(t)
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		t.Run(mode.String(), func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{Bridge: true})
			from, err := testbed.In(bed.Node(0), func() (*ring.Link, error) { return ring.Open("eth0", ring.Config{}) })
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			to, err := testbed.In(bed.Node(1), func() (*xdp.Link, error) { return opener(mode)("eth0") })
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			tags := []transport.OptionalTag{
				transport.Untagged, transport.Tagged(transport.Tag{VID: 5, PCP: 3}), transport.Tagged(transport.Tag{PCP: 7}),
			}
			for _, tag := range tags {
				f := frameTo(to, "across")
				f.OptionalTag = tag
				send(t, from, f)
				if got := testbed.Receive(t, to, 1)[0]; got.OptionalTag != tag {
					t.Errorf("sent with %+v, arrived with %+v", tag, got.OptionalTag)
				}
			}
		})
	}
}
