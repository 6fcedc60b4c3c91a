package shm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/shm"
)

// What cannot be opened is refused, with what to do about it.
func TestOpen_Refuses(t *testing.T) {
	a, _ := linktest.Pipe()
	for name, c := range map[string]struct {
		segment string
		cfg     shm.Config
		want    string
	}{
		"no name":               {"", shm.Config{}, "not a name for a segment"},
		"a path":                {"../test", shm.Config{}, "not a name for a segment"},
		"a hidden file":         {".test", shm.Config{}, "not a name for a segment"},
		"a long name":           {strings.Repeat("a", 33), shm.Config{}, "up to 32"},
		"a group's address":     {"test", shm.Config{MAC: transport.Broadcast}, "want one with an even first byte"},
		"an MTU too large":      {"test", shm.Config{MTU: shm.MaxMTU + 1}, "want 1 to 65535"},
		"a negative MTU":        {"test", shm.Config{MTU: -1}, "want 1 to 65535"},
		"a ring too large":      {"test", shm.Config{RingBytes: shm.MaxRingBytes + 1}, "Config.RingBytes"},
		"a negative ring":       {"test", shm.Config{RingBytes: -1}, "Config.RingBytes"},
		"a wire and an address": {"test", shm.Config{Wire: a, MAC: mac(1)}, "are the wire's"},
		"a wire and an MTU":     {"test", shm.Config{Wire: a, MTU: 100}, "are the wire's"},
	} {
		c.cfg.Dir = shm.Folder(t)
		_, err := shm.Open(c.segment, c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "shm "+c.segment+": open: ") {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

// Only a folder of this user alone will do: another user could take part, or listen.
func TestOpen_FolderOfOthers(t *testing.T) {
	dir := shm.Folder(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open755 := filepath.Join(dir, "readable")
	if err := os.Mkdir(open755, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open755, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{file, open755, link, filepath.Join(dir, "missing", "missing")} {
		_, err := shm.Open("test", shm.Config{Dir: d})
		if err == nil || !strings.Contains(err.Error(), "RAWLANE_SHM_DIR") {
			t.Errorf("%s: %v, want what to set", d, err)
		}
	}
	if os.Geteuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := os.Mkdir(theirs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := shm.Open("test", shm.Config{Dir: theirs}); err == nil {
			t.Error("another user's folder is taken")
		}
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	if _, err := shm.Open("test", shm.Config{Dir: long}); err == nil || !strings.Contains(err.Error(), "too long for a socket") {
		t.Errorf("a long path: %v", err)
	}
	info, err := os.Stat(folderOf(t, dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a link's folder has mode %v, %v", info.Mode(), err)
	}
}

// folderOf opens a link, and returns the folder that it made.
func folderOf(t *testing.T, dir string) string {
	open(t, shm.Config{Dir: filepath.Join(dir, "own")})
	return shm.SegmentFolder(filepath.Join(dir, "own"))
}

// Without Config.Dir the environment says where the links of a user meet.
func TestOpen_WhereLinksMeet(t *testing.T) {
	for _, variable := range []string{"RAWLANE_SHM_DIR", "XDG_RUNTIME_DIR", "TMPDIR"} {
		dir := shm.Folder(t)
		t.Setenv("RAWLANE_SHM_DIR", "")
		t.Setenv("XDG_RUNTIME_DIR", "")
		t.Setenv(variable, dir)
		a, b := open(t, shm.Config{MAC: mac(1)}), open(t, shm.Config{MAC: mac(2)})
		exchange(t, a, b)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: in it are %v, %v", variable, entries, err)
		}
		for _, l := range []*shm.Link{a, b} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The folder of another user's login, which su passes on, is left alone: what root makes there would
// keep that user's own links out until the login ends.
func TestOpen_InAnothersLogin(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's folder")
	}
	theirs, own := t.TempDir(), shm.Folder(t)
	if err := os.Chown(theirs, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RAWLANE_SHM_DIR", "")
	t.Setenv("XDG_RUNTIME_DIR", theirs)
	t.Setenv("TMPDIR", own)
	l := open(t, shm.Config{})
	if entries, err := os.ReadDir(theirs); err != nil || len(entries) != 0 || !strings.HasPrefix(l.Folder(), own) {
		t.Errorf("it is in %s, and in the other user's folder are %v, %v", l.Folder(), entries, err)
	}
}

// Segments are apart: also two clusters of one user that have the same addresses.
func TestSegmentsAreApart(t *testing.T) {
	dir := shm.Folder(t)
	var links []*shm.Link
	for _, segment := range []string{"one", "two"} {
		for n := range 2 {
			l, err := shm.Open(segment, shm.Config{Dir: dir, MAC: mac(n + 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			links = append(links, l)
		}
	}
	for _, l := range links {
		until(t, l, none, func() bool { return len(l.Stations()) > 0 })
		if n := len(l.Stations()); n != 1 {
			t.Errorf("%s reaches %d stations, want 1", l.Name(), n)
		}
	}
	if _, err := links[0].Send([]transport.Frame{{Dst: mac(2), Payload: []byte("for one")}}); err != nil {
		t.Fatal(err)
	}
	if n, err := links[3].Poll(make([]transport.Frame, 1)); n != 0 || err != nil {
		t.Errorf("the other segment's station receives %d frames, %v", n, err)
	}
	exchange(t, links[2], links[3])
	if err := links[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := links[0].Poll(nil); !errors.Is(err, transport.ErrClosed) {
		t.Error(err)
	}
	exchange(t, links[3], links[2])
}

// A link's folder stays where it was, wherever the program goes: its socket is taken away there.
func TestFolder_OfAProgramThatMoves(t *testing.T) {
	dir := shm.Folder(t)
	t.Chdir(dir)
	l := open(t, shm.Config{Dir: "links"})
	t.Chdir(t.TempDir())
	if want := shm.SegmentFolder(filepath.Join(dir, "links")); l.Folder() != want {
		t.Errorf("the folder is %s, want %s", l.Folder(), want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "links")); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
