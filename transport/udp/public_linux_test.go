package udp

import (
	"net"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// A link that meets the others by a multicast group is reached by each address of its interface, as
// its socket is bound to none, and not by its own alone: it is public if one of them is. Where the
// system does not keep it to an interface, all of the host's count.
func TestPublicAddr_OfAGroupsMember(t *testing.T) {
	const public = "203.0.113.5"
	for _, c := range []struct {
		name string
		nic  int // that has the public address
		want string
	}{
		{"its own interface", 0, public},
		{"another interface", 1, map[bool]string{true: "", false: public}[onInterfaceAlone]},
	} {
		t.Run(c.name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{NICs: 2})
			if err := bed.Node(0).AddIP(c.nic, net.ParseIP(public).To4()); err != nil {
				t.Fatal(err)
			}
			got, err := testbed.In(bed.Node(0), func() (string, error) {
				l, err := OpenInterface(testbed.Interface(0), Config{})
				if err != nil {
					return "", err
				}
				defer l.Close()
				return l.PublicAddr(), nil
			})
			if err != nil || got != c.want {
				t.Errorf("public %q, want %q (%v)", got, c.want, err)
			}
		})
	}
}
