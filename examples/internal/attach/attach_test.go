package attach

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
)

// The key file is the environment's, else the host file's; with neither there is none.
func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("0 a\nkey-file key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, hosts, want string }{
		{"", "", ""},
		{"/x", "", "/x"},
		{"/x", hosts, "/x"},
		{"", hosts, filepath.Join(dir, "key")},
	} {
		t.Setenv(envKeyFile, c.key)
		t.Setenv(envHostfile, c.hosts)
		if got, err := keyFile(); got != c.want || err != nil {
			t.Errorf("key %q, host file %q: %q, %v; want %q", c.key, c.hosts, got, err, c.want)
		}
	}
	if err := keyring.New().WriteFile(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envNode, "")
	ctx := t.Context()
	nodes, closeAll, err := open(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if n := nodes[0].HeaderLen(); n != mcd.AuthHeaderLen {
		t.Errorf("headers of %d bytes (want %d): the keys are not used", n, mcd.AuthHeaderLen)
	}
	t.Setenv(envHostfile, filepath.Join(dir, "nowhere"))
	if _, _, err := open(ctx, 2); err == nil {
		t.Error("a host file that does not exist is taken")
	}
}
