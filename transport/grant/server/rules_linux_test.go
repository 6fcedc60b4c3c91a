package server

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Names in the file are those of the machine's users and groups; messages name users so, too.
func TestRulesNameUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grants")
	read := func(text string) (*Rules, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadRules(file)
	}
	if userName(0) != "root" {
		t.Skip("user 0 is not root here")
	}
	if got := userName(4123456789); got != "4123456789" {
		t.Errorf("a user without a name is %q", got)
	}
	if got, err := userGroups(4123456789); len(got) != 0 || err != nil {
		t.Errorf("a user that nobody knows has the groups %v, %v", got, err)
	}
	if got, err := userGroups(0); !slices.Contains(got, 0) || err != nil {
		t.Errorf("root has the groups %v, %v", got, err)
	}
	r, err := read("allow user root " + onAny + "\n")
	if err != nil || !r.Names(rules.Peer{UID: 0}) || r.Names(rules.Peer{UID: 1}) {
		t.Errorf("root by name: %v, %v", r, err)
	}
	r, err = read("allow group root " + onAny + "\n")
	if err != nil || !r.Names(rules.Peer{UID: 7, Groups: []uint32{5, 0}}) || r.Names(rules.Peer{UID: 0, Groups: []uint32{1}}) {
		t.Errorf("group root by name: %v, %v", r, err)
	}
	for kind, want := range map[string]string{"user": "no such user", "group": "no such group"} {
		if _, err := read("allow " + kind + " no-such-one-here " + onAny + "\n"); err == nil || !strings.HasSuffix(err.Error(), "no-such-one-here: "+want) {
			t.Errorf("an unknown %s: %v", kind, err)
		}
	}
}

// A file is read to its end, or refused: what is behind a bound may be the line that limits somebody.
func TestRulesAreReadToTheEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grants")
	for _, c := range []struct {
		length int
		want   string
	}{{rules.MaxFile, `"x": want allow or limit`}, {rules.MaxFile + 1, "longer than"}} {
		text := append(bytes.Repeat([]byte(" "), c.length-2), "\nx"...)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRules(file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes: %.200v, want %s", c.length, err, c.want)
		}
	}
}

// Whom the kernel does not tell of is nobody.
func TestCredentialsOfNothing(t *testing.T) {
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if who, err := socketCredentials(int(file.Fd())); who != nil || err == nil || !strings.HasPrefix(err.Error(), "credentials of the other end: ") {
		t.Errorf("%+v, %v", who, err)
	}
}
