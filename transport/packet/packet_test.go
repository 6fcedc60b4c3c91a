//go:build linux

package packet_test

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/packet"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// pair opens both ends of a veth pair.
func pair(t testing.TB, bed testbed.Config, cfg packet.Config) (a, b *packet.Link) {
	t.Helper()
	testbed.Need(t)
	tb, err := testbed.New(bed)
	if err != nil {
		t.Fatal(err)
	}
	var links [2]*packet.Link
	for k := range links {
		if err := tb.Node(k).Do(func() (err error) { links[k], err = packet.Open("eth0", cfg); return err }); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, l := range links {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = tb.Close()
	})
	return links[0], links[1]
}

func TestLink(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) { return pair(t, testbed.Config{}, packet.Config{}) })
}

func TestLinkJumbo(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		return pair(t, testbed.Config{MTU: 9000}, packet.Config{})
	})
}
