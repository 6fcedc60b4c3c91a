//go:build linux

package netpair

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
)

// sent returns how many bytes a node's interface has sent.
func sent(t *testing.T, bed *testbed.Bed, node int) float64 {
	t.Helper()
	link, err := testbed.In(bed.Node(node), func() (netlink.Link, error) { return netlink.LinkByName(Interface) })
	if err != nil {
		t.Fatal(err)
	}
	return float64(link.Attrs().Statistics.TxBytes)
}

// Streams of each kind send a tenth more than what counts, and ten batches at least, before they look
// at the clock: those of rawlane, with which they are compared, are as warm. The other end counts no
// more than what counts. Heads of frames are less than a twentieth.
func TestRunC_StreamsWarmUp(t *testing.T) {
	p, program := withC(t)
	const size, count, batch = 1400, 4000, 32
	for _, c := range []struct {
		sink, send, where string
		each              float64 // what the sink prints of each message
	}{
		{"tcp-sink", "tcp-send", p.IP(1), 0},
		{"tcp-sink-polled", "tcp-send", p.IP(1), 0},
		{"tcp-sink", "tcp-send-nagle", p.IP(1), 0},
		{"tcp-sink", "tcp-send-gathered", p.IP(1), 0},
		{"ring-sink", "ring-send", Interface, 1},
		{"ring-sink", "ring-txring", Interface, 1},
		{"xsk-sink", "xsk-send", Interface, 1},
		{"gso-sink", "gso-send", p.IP(1), size},
		{"sum-gso-sink", "sum-gso-send", p.IP(1), size},
	} {
		if strings.HasPrefix(c.sink, "xsk-") && p.XDP() != nil {
			continue
		}
		for counted := false; !counted && t.Context().Err() == nil; { // on a busy machine all may come too late
			before := sent(t, p.bed, 0)
			came, ns, err := p.RunC(t.Context(), program, c.sink, c.send, c.where, size, count, batch)
			if err != nil {
				t.Fatalf("%s: %v", c.send, err)
			}
			ratio := (sent(t, p.bed, 0) - before) / (size * count)
			if ratio < 1.1 || ratio > 1.2 || ns[0] <= 0 {
				t.Errorf("%s: sends %.3f times what counts, in %v ns; want 1.1 times", c.send, ratio, ns)
			}
			if counted = c.each == 0 || came[0] > 0; c.each > 0 && came[0] > c.each*count {
				t.Errorf("%s: %v count, want %v at most", c.sink, came[0], c.each*count)
			}
		}
	}
}

// Frames both ways warm up for a tenth of the time; on a busy machine another program may have that.
func TestRunC_BothWaysWarmUp(t *testing.T) {
	p, program := withC(t)
	const size, ms, batch, ethernet, tries = 1400, 100, 32, 14, 20
	most := 0.0
	for try := 0; try < tries && most < 1.05; try++ {
		before := sent(t, p.bed, 0)
		_, asked, err := p.RunC(t.Context(), program, "ring-both", "ring-both", Interface, size, ms, batch)
		if err != nil {
			t.Fatal(err)
		}
		most = (sent(t, p.bed, 0) - before) / (size + ethernet) / asked[0]
	}
	if most < 1.05 {
		t.Errorf("%.3f times what counts is sent, want 1.1 times", most)
	}
}
