package udp_test

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/udp"
)

// pair opens two links of this host that know each other.
func pair(t testing.TB, listen string, cfg udp.Config) (links [2]*udp.Link) {
	t.Helper()
	for k := range links {
		c := cfg
		c.MAC = transport.MAC{2, 0, 0, 0, 0, byte(k + 1)}
		l, err := udp.Open(listen, c)
		if err != nil {
			t.Fatal(err)
		}
		links[k] = l
	}
	for k, l := range links {
		if err := l.AddStation(udp.Station{Addr: links[1-k].Addr().String(), MAC: links[1-k].MAC()}); err != nil {
			t.Fatal(err)
		}
	}
	return links
}

func TestLink(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(listen, func(t *testing.T) {
			linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
				l := pair(t, listen, udp.Config{})
				return l[0], l[1]
			})
		})
	}
}
