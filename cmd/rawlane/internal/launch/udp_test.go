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
		{addresses, "eth0", "ring", true}, // the addresses are not used
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
