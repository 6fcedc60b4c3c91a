// Package keyring has the keys of a cluster whose frames are authenticated, and their file.
//
//	# keys of cluster 1; the first one seals, all of them open
//	1f8b…  64 hexadecimal digits
//	encrypt
//
// A file that others may read is refused, and one of another user's. Keys are rotated without a
// pause in three steps, each on all nodes before the next: the new key is added as the last line,
// moved to the first, and the old one removed. A program reads its file again about once a second,
// when it has changed.
//
// What the keys protect, and what they do not, is in docs/security.md.
package keyring

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	// KeyLen is the length of a key in bytes.
	KeyLen = 32
	// MaxKeys is how many keys may be valid at once: the present one, the next one, and a margin.
	MaxKeys = 4
)

// Errors to test for with errors.Is.
var (
	// ErrFormat: the text is no keyring, or the file no regular one.
	ErrFormat = errors.New("bad key file")
	// ErrReadable: others may read the key file, or it belongs to another user.
	ErrReadable = errors.New("others may read the key file")
)

// Key is a secret of a cluster: 32 random bytes. It shows nowhere but in a key file.
type Key [KeyLen]byte

// Generate returns a new random key.
func Generate() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// String hides the key, so that it does not get into logs.
func (k Key) String() string { return "key (hidden)" }

// Format hides the key, whatever the verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// MarshalText hides the key, so that it does not get into JSON, as logs are written, either: Append
// has its digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Ring is the keys of a cluster.
type Ring struct {
	// Keys are those that are valid, 1 to MaxKeys. The first one seals what is sent; what is
	// received may be sealed with any.
	Keys []Key
	// Encrypt has payloads encrypted, besides being authenticated.
	Encrypt bool
}

// New returns a ring of one new random key.
func New() *Ring { return &Ring{Keys: []Key{Generate()}} }

// Validate reports what is wrong with a ring: no keys, too many, one that is zero or occurs twice.
// A nil ring has no keys.
func (r *Ring) Validate() error {
	if r == nil {
		r = new(Ring)
	}
	if len(r.Keys) == 0 {
		return fmt.Errorf("%w: 0 keys (want 1 to %d: rawlane key makes one)", ErrFormat, MaxKeys)
	}
	if len(r.Keys) > MaxKeys {
		return fmt.Errorf("%w: %d keys (want 1 to %d)", ErrFormat, len(r.Keys), MaxKeys)
	}
	for i, k := range r.Keys {
		if k == (Key{}) {
			return fmt.Errorf("%w: key %d is zero (want random bytes: rawlane key makes one)", ErrFormat, i+1)
		}
		if slices.Contains(r.Keys[:i], k) {
			return fmt.Errorf("%w: key %d occurs twice (want each once)", ErrFormat, i+1)
		}
	}
	return nil
}

// ReadFile reads a key file. Errors: those of os.Open; ErrReadable if others than this program's
// user, or root, may read it; ErrFormat with the line, or if it is no regular file: another one
// might hold the program up.
func ReadFile(path string) (*Ring, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe opens at once, too
	if err != nil {
		return nil, openError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("key file %s: %w: its type is %s (want a regular file)", path, ErrFormat,
			info.Mode().Type())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("key file %s: mode %#o: %w (run: chmod 600 %s)", path, mode, ErrReadable, path)
	}
	if user, known := owner(info); known && !mayOwn(user, os.Geteuid(), os.Getenv("SUDO_UID")) {
		return nil, fmt.Errorf("key file %s: it belongs to user %d, and this program runs as %d: %w (run: chown %d %s)",
			path, user, os.Geteuid(), ErrReadable, os.Geteuid(), path)
	}
	return Parse(path, f)
}

// openError says what to do about a key file that cannot be opened.
func openError(path string, err error) error {
	cure := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		cure = fmt.Sprintf(" (copy that of another node here, or make one: rawlane key %s)", path)
	case errors.Is(err, fs.ErrPermission):
		cure = " (want a file of this user's, mode 0600)"
	}
	return fmt.Errorf("key file: %w%s", err, cure)
}

// mayOwn reports whether the key file of a program may belong to a user: the one that the program
// runs as, root, or, for root's program, the caller of sudo. A file's owner can change the key.
func mayOwn(user, program int, sudo string) bool {
	return user == program || user == 0 || program == 0 && sudo == strconv.Itoa(user)
}

const (
	// maxSize bounds a key file, in bytes.
	maxSize = 1 << 16
	// byteOrderMark is what some editors write before the first line.
	byteOrderMark = "\ufeff"
)

// Parse reads the text of a key file: one key of 64 hexadecimal digits a line, the word encrypt on
// a line of its own, comments from # on. The name is for messages.
func Parse(name string, r io.Reader) (*Ring, error) {
	var ring Ring
	text, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("%s: %w: it is longer than %d bytes (want %d keys at most)",
			name, ErrFormat, maxSize, MaxKeys)
	}
	for i, line := range strings.Split(strings.TrimPrefix(string(text), byteOrderMark), "\n") {
		text, _, _ := strings.Cut(line, "#")
		switch text = strings.TrimSpace(text); {
		case text == "":
		case text == "encrypt":
			ring.Encrypt = true
		default: // the text may be a secret, and is not shown
			b, err := hex.DecodeString(text)
			if err != nil || len(b) != KeyLen {
				return nil, fmt.Errorf("%s:%d: %w: %d characters (want %d hexadecimal digits, or the word encrypt)",
					name, i+1, ErrFormat, len(text), 2*KeyLen)
			}
			ring.Keys = append(ring.Keys, Key(b))
		}
	}
	if err := ring.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &ring, nil
}

// Append appends the text of the ring's key file to b.
func (r *Ring) Append(b []byte) []byte {
	b = append(b, "# Keys of a rawlane cluster: the first one seals, all of them open. Keep them secret.\n"...)
	if r.Encrypt { // first: what is read of half a file keeps the payloads secret
		b = append(b, "encrypt\n"...)
	}
	for _, k := range r.Keys {
		b = append(hex.AppendEncode(b, k[:]), '\n')
	}
	return b
}

// WriteFile writes a new key file, which its owner alone may read. A file that exists is not
// overwritten: fs.ErrExist.
func (r *Ring) WriteFile(path string) error {
	if err := r.Validate(); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	_, err = io.Copy(f, bytes.NewReader(r.Append(nil)))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("key file: %w", err), os.Remove(path))
	}
	return nil
}
