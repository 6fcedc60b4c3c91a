package mcd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each way in which a key file can become another one is a change, alone and once; a file that is
// gone is none: the keys stay.
func TestKeyFile_Changed(t *testing.T) {
	f := &keyFile{path: filepath.Join(t.TempDir(), "key")}
	written := time.Unix(1_700_000_000, 0)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write(f.path, "old")
	for _, change := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"looked at first", func() error { return nil }, true},
		{"not changed", func() error { return nil }, false},
		{"longer", func() error { write(f.path, "longer"); return nil }, true},
		{"written at another time", func() error { return os.Chtimes(f.path, written, written.Add(time.Second)) }, true},
		{"of another mode", func() error { return os.Chmod(f.path, 0o400) }, true},
		{"gone", func() error { return os.Remove(f.path) }, false},
		{"there again, and longer", func() error { write(f.path, "longer than before"); return nil }, true},
		{"replaced by one that looks the same", func() error {
			write(f.path+".new", "longer than before")
			return os.Rename(f.path+".new", f.path)
		}, true},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if got := f.changed(); got != change.want {
			t.Errorf("%s: changed is %v", change.what, got)
		}
		if f.changed() {
			t.Errorf("%s: a change twice", change.what)
		}
	}
}
