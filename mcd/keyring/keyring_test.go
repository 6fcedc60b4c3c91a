package keyring_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rawlane/rawlane/mcd/keyring"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	r := keyring.New()
	r.Keys = append(r.Keys, keyring.Generate())
	r.Encrypt = true
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if err := keyring.New().WriteFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwritten: %v", err)
	}
	got, err := keyring.ReadFile(path)
	if err != nil || len(got.Keys) != 2 || got.Keys[0] != r.Keys[0] || got.Keys[1] != r.Keys[1] || !got.Encrypt {
		t.Errorf("read %v, %v", got, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.ReadFile(path); !errors.Is(err, keyring.ErrReadable) || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	_, err = keyring.ReadFile(path + "x")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "copy that of another node here, or make one: rawlane key") {
		t.Errorf("no file: %v", err)
	}
}

// maxSize is the longest key file.
const maxSize = 1 << 16

// sized is the text of a key file with comments before it, so that it has so many bytes.
func sized(text string, size int) string {
	const line = "# sixteen bytes\n"
	size -= len(text) + 1
	return strings.Repeat("\n", size%len(line)) + strings.Repeat(line, size/len(line)) + text + "\n"
}

func TestParse(t *testing.T) {
	key := func(n byte) string { return strings.Repeat(fmt.Sprintf("%02x", n), 32) }
	for _, c := range []struct{ text, want string }{
		{key(1), ""},
		{"# a comment\n\n  " + key(1) + "  # the first\r\n" + key(2) + "\nencrypt\n", ""},
		{"\ufeff" + key(1) + "\r\nencrypt\r\n", ""},
		{"\ufeff# a comment\n" + key(1), ""},
		{key(1) + "\n\ufeff" + key(2), "k:2: bad key file: 67 characters"},
		{"", "0 keys (want 1 to 4: rawlane key makes one)"},
		{key(0), "is zero"},
		{key(1) + "\n" + key(1), "occurs twice"},
		{key(1)[1:], "k:1: bad key file: 63 characters"},
		{"\n" + key(1) + "00", "k:2: bad key file: 66 characters"},
		{strings.Replace(key(1), "0", "g", 1), "want 64 hexadecimal digits"},
		{key(1) + "\n" + key(2) + "\n" + key(3) + "\n" + key(4) + "\n" + key(5), "5 keys (want 1 to 4)"},
		{key(1) + "\nencrypted", "k:2"},
		{sized(key(1)+"\nencrypt", maxSize), ""},
		{sized(key(1), maxSize+1), "longer than 65536 bytes"},
		{sized(key(1), maxSize) + key(2) + "\n", "longer than 65536 bytes"},
		{key(1) + "\n# " + strings.Repeat("x", maxSize), "longer than 65536 bytes"},
	} {
		r, err := keyring.Parse("k", strings.NewReader(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.100q: %v", c.text, err)
		case c.want == "" && r.Encrypt != strings.Contains(c.text, "encrypt"):
			t.Errorf("%.100q: encrypt is %v", c.text, r.Encrypt)
		case c.want != "" && (!errors.Is(err, keyring.ErrFormat) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.100q: %v, want %q", c.text, err, c.want)
		case err != nil && strings.Contains(err.Error(), key(1)[:20]):
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// A key that is printed by mistake is not shown.
func TestKey_IsHidden(t *testing.T) {
	k := keyring.Generate()
	r := &keyring.Ring{Keys: []keyring.Key{k}}
	shown := []string{fmt.Sprint(k), k.String()}
	for _, verb := range "vsqdbocxXU" {
		shown = append(shown, fmt.Sprintf("%"+string(verb), k), fmt.Sprintf("%+"+string(verb), r), fmt.Sprintf("%#"+string(verb), r))
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opens", "config", struct{ Keys *keyring.Ring }{r})
	slog.New(slog.NewTextHandler(&log, nil)).Info("opens", "key", k)
	for _, s := range append(shown, strings.Split(strings.TrimSpace(log.String()), "\n")...) {
		if !strings.Contains(s, "hidden") {
			t.Errorf("shows %s", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	line := func(n byte) string { return strings.Repeat(fmt.Sprintf("%02x", n), keyring.KeyLen) + "\n" }
	for _, text := range []string{
		"encrypt\n" + line(0x0f), "# two\n" + line(1) + " \t\n" + line(2), line(1) + line(1), line(0), "", "encrypted",
		line(1) + line(2) + line(3) + line(4) + line(5), line(1) + "0", sized(line(1), maxSize+1),
		"# " + strings.Repeat("x", maxSize-2),
	} {
		f.Add([]byte(text))
	}
	if _, err := keyring.Parse("k", iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		f.Errorf("of a file that cannot be read: %v", err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := keyring.Parse("fuzz", strings.NewReader(string(b)))
		if err != nil {
			return
		}
		again, err := keyring.Parse("again", strings.NewReader(string(r.Append(nil))))
		if err != nil || len(again.Keys) != len(r.Keys) || again.Encrypt != r.Encrypt {
			t.Fatalf("%q reads as %v, and its text as %v, %v", b, r, again, err)
		}
	})
}

// The text of a key file, to the byte, says what it is; one that is not valid is not written.
func TestAppend_Text(t *testing.T) {
	r := &keyring.Ring{Keys: []keyring.Key{{0x0f, 31: 0xf0}}, Encrypt: true}
	want := "# Keys of a rawlane cluster: the first one seals, all of them open. Keep them secret.\nencrypt\n0f" +
		strings.Repeat("00", 30) + "f0\n"
	if got := string(r.Append(nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n := range want {
		half, err := keyring.Parse("half", strings.NewReader(want[:n]))
		if err == nil && !half.Encrypt {
			t.Errorf("of %d bytes: payloads would be sent in plain", n)
		}
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := (&keyring.Ring{}).WriteFile(path); !errors.Is(err, keyring.ErrFormat) {
		t.Errorf("a ring without keys: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
}
