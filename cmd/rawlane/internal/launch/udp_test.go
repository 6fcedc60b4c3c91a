package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where udp links listen is told once: by the addresses of a host file, or by an interface.
func TestValidateUDP_InterfaceBesideAddresses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	addresses, names := file("addresses", "0 10.0.0.1\n1 10.0.0.2\n"), file("names", "0 a\n1 b\n")
	for _, c := range []struct {
		file, ifname, link string
		ok                 bool
	}{
		{addresses, "", "", true},
		{addresses, "eth0", "", false},
		{addresses, "eth0", "udp", false},
		{addresses, "eth0", "ring", true}, // the addresses are not used, and the user says what is
		{names, "eth0", "udp", true},
	} {
		f := &ClusterFlags{Hostfile: c.file, ifname: c.ifname, Kind: c.link}
		f.explicit = func(name string) bool { return name == "link" && c.link != "" }
		err := f.validateUDP()
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "want one of the two") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A host file of which some lines have addresses is refused, whatever the link: udp links would forget
// these and look for each other by multicast, and others are not what its author means.
func TestHostfile_SomeAddresses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("# two\n0 10.0.0.1\n1 beta eth0\n2 10.0.0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []ClusterFlags{{}, {Kind: "udp"}, {Kind: "ring"}, {Kind: "ring", ifname: "eth0"}, {seeds: "10.0.0.1"}} {
		f := &c
		f.Hostfile, f.explicit = path, func(name string) bool { return name == "link" && c.Kind != "" }
		err := f.validateUDP()
		if want := path + ":3: node 1 has no IP address, and others have"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %q: %v, want %q", f.Kind, f.ifname, err, want)
		}
	}
}

// IP addresses do not tell links that are not UDP's whom to look for, nor on which interface.
func TestHostfile_AddressesOfAnotherLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("0 10.0.0.1\n1 10.0.0.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"packet", "ring", "xdp"} {
		f := &ClusterFlags{Hostfile: path, Kind: link, explicit: func(name string) bool { return name == "link" }}
		want := "--link " + link + ": " + path + " lists IP addresses, which are for --link udp"
		if err := f.validateUDP(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", link, err, want)
		}
	}
}

// Who misses nodes over UDP hears what is in the way there: no switch, and no VLAN.
func TestUDPFailure(t *testing.T) {
	for _, c := range []struct {
		f    ClusterFlags
		want string // "": nothing
	}{
		{ClusterFlags{Kind: "ring", ifname: "eth0"}, ""},
		{ClusterFlags{Kind: "udp", ifname: "eth0"}, "by IP multicast"},
		{ClusterFlags{Kind: "udp", ifname: "eth0", seeds: "10.0.0.1"}, "do firewalls pass their UDP ports?"},
		{ClusterFlags{Kind: "udp", seeds: "10.0.0.1"}, "do firewalls pass their UDP ports?"},
	} {
		err := c.f.udpFailure(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}

// A udp link that is told where others listen, and no more, listens where these can be reached.
func TestEveryAddress(t *testing.T) {
	for seeds, want := range map[string]string{
		"10.0.0.1": "0.0.0.0", "10.0.0.1:27401,node2": "0.0.0.0", "srv:_rawlane._udp.example.org": "0.0.0.0",
		"node2.example.org:7401": "0.0.0.0", "fd00::1": "[::]", "[fd00::1]": "[::]", "[fd00::1]:7401,fd00::2": "[::]",
		"fe80::1%eth0": "[::]", "::ffff:10.0.0.1": "0.0.0.0", "[fd00::1],10.0.0.1": "0.0.0.0", "[fd00::1],node2": "0.0.0.0",
	} {
		if got := everyAddress(strings.Split(seeds, ",")); got != want {
			t.Errorf("%s: %s, want %s", seeds, got, want)
		}
	}
}
