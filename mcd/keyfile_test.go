package mcd

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport/linktest"
)

// Each way in which a key file can become another one is a change, alone and once; a file that is
// gone is none: the keys stay.
func TestKeyFile_Changed(t *testing.T) {
	f := &keyFile{path: filepath.Join(t.TempDir(), "key"), stat: os.Stat}
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
	edit := func() error {
		for begun := time.Now(); time.Since(begun) < time.Second; { // until the file system's clock has gone on
			write(f.path, "edited")
			if now, err := os.Stat(f.path); err != nil || !ctime(now).Equal(ctime(f.seen)) {
				return err
			}
		}
		return nil
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
		{"edited in place, of the size and the time of before", edit, runtime.GOOS == "linux" || runtime.GOOS == "darwin"},
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

// The key file is looked at once a second, neither more often nor more rarely where the loop that
// does so has other work: frames of strangers make it some.
func TestKeyFile_LooksAreRare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	written := time.Unix(1_700_000_000, 0)
	good := (&keyring.Ring{Keys: []keyring.Key{{1}}}).Append(nil)
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		e := openWithKeyFile(t, path)
		defer e.Close()
		write(bytes.Repeat([]byte("?"), len(good)+1))
		workUntil := func(at time.Duration) {
			t.Helper()
			for time.Since(begun) < at {
				time.Sleep(min(300*time.Millisecond, at-time.Since(begun)))
				e.auth.wakeLoop()
				synctest.Wait()
			}
		}
		for k, step := range []struct {
			at                time.Duration
			reloads, failures uint64
		}{
			{1999 * time.Millisecond, 0, 0}, // the first look finds it changed in place
			{2000 * time.Millisecond, 0, 1},
			{3999 * time.Millisecond, 0, 1}, // it could not be read, and can be now
			{4000 * time.Millisecond, 1, 1},
		} {
			workUntil(step.at)
			if c := e.Counters(); c.KeyReloads != step.reloads || c.KeyReloadFailures != step.failures {
				t.Errorf("after %v: %d reloads and %d failures, want %d and %d", step.at,
					c.KeyReloads, c.KeyReloadFailures, step.reloads, step.failures)
			}
			if k == 1 {
				write(append([]byte("#"), good...))
			}
		}
	})
}

// A key file that is written in place is read once it stays as it is: what a look finds of it
// meanwhile may be a good one, with keys missing.
func TestKeyFile_WrittenInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	text := (&keyring.Ring{Keys: []keyring.Key{{1}, {2}}}).Append(nil)
	half := text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1]
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text[:len(half)-1])
	synctest.Test(t, func(t *testing.T) {
		e := openWithKeyFile(t, path)
		defer e.Close()
		time.Sleep(keyFileInterval / 2) // so that writes are between two looks
		for k, written := range [][]byte{half, text, nil, nil} {
			if written != nil {
				write(written)
			}
			time.Sleep(keyFileInterval)
			synctest.Wait()
			c, want := e.Counters(), uint64(0)
			if k >= 2 {
				want = 1
			}
			if c.KeyReloads != want || c.KeyReloadFailures != 0 {
				t.Errorf("look %d: %d reloads, %d failures, want %d and none", k+1, c.KeyReloads, c.KeyReloadFailures, want)
			}
		}
	})
}

// A key file that is gone counts as a failure, once, and its keys stay.
func TestKeyFile_Gone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := (&keyring.Ring{Keys: []keyring.Key{{1}}}).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := openWithKeyFile(t, path)
		defer e.Close()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		for look, want := range []uint64{0, 1, 1, 1} {
			time.Sleep(keyFileInterval)
			synctest.Wait()
			if c := e.Counters(); c.KeyReloadFailures != want || c.KeyReloads != 0 {
				t.Errorf("look %d: %d failures, want %d; %d reloads", look+1, c.KeyReloadFailures, want, c.KeyReloads)
			}
		}
	})
}

// A key file that is removed before its change in place was read counts as one failure, and is read
// once it is there again.
func TestKeyFile_GoneWhilePending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	good := (&keyring.Ring{Keys: []keyring.Key{{1}}}).Append(nil)
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := openWithKeyFile(t, path)
		defer e.Close()
		time.Sleep(keyFileInterval / 2) // so that changes are between two looks
		for _, step := range []struct {
			what              string
			do                func() error
			looks             time.Duration // behind it
			reloads, failures uint64
		}{
			{"written in place", func() error { return os.WriteFile(path, append(good, '#'), 0o600) }, 1, 0, 0},
			{"removed", func() error { return os.Rename(path, path+".aside") }, 1, 0, 0},
			{"gone", func() error { return nil }, 1, 0, 1},
			{"gone still", func() error { return nil }, 2, 0, 1},
			{"there again", func() error { return os.Rename(path+".aside", path) }, 3, 1, 1},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(step.looks * keyFileInterval)
			synctest.Wait()
			if c := e.Counters(); c.KeyReloads != step.reloads || c.KeyReloadFailures != step.failures {
				t.Errorf("%s: %d reloads and %d failures, want %d and %d", step.what,
					c.KeyReloads, c.KeyReloadFailures, step.reloads, step.failures)
			}
		}
	})
}

// A key file is read again from where it was, though the program has gone to another folder.
func TestKeyFile_OfAnotherFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(dir string, n byte) {
		t.Helper()
		if err := (&keyring.Ring{Keys: []keyring.Key{{n}}}).WriteFile(filepath.Join(dir, "fresh")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "fresh"), filepath.Join(dir, "key")); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, 1)
	t.Chdir(dir)
	synctest.Test(t, func(t *testing.T) {
		x, _ := linktest.Pipe()
		e, err := Open(Config{Spin: -1, KeyFile: "key"}, x)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		reloads := func(want uint64, when string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if c := e.Counters(); c.KeyReloads != want || c.KeyReloadFailures != 0 {
				t.Errorf("%s: %d reloads and %d failures, want %d", when, c.KeyReloads, c.KeyReloadFailures, want)
			}
		}
		other := filepath.Join(dir, "other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		write(other, 3)
		if err := os.Chdir(other); err != nil {
			t.Fatal(err)
		}
		reloads(0, "where another file has that name")
		write(dir, 2)
		reloads(1, "when it has changed")
	})
}

// openWithKeyFile opens an endpoint whose waits sleep, on a link that leads to nobody.
func openWithKeyFile(t *testing.T, path string) *Endpoint {
	t.Helper()
	x, _ := linktest.Pipe()
	e, err := Open(Config{Spin: -1, KeyFile: path}, x)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A key file on a file system that hangs holds up neither the loop that repeats challenges nor Close.
// It is looked at once more when the file system has answered.
func TestKeyFile_OnAFileSystemThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := (&keyring.Ring{Keys: []keyring.Key{{1}}}).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := openWithKeyFile(t, path)
		looks, answer := 0, make(chan struct{})
		e.auth.mu.Lock()
		e.auth.file.stat = func(path string) (os.FileInfo, error) {
			looks++ // under mu
			<-answer
			return os.Stat(path)
		}
		e.auth.mu.Unlock()
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			e.auth.wakeLoop()
			synctest.Wait()
			if len(e.auth.kick) > 0 {
				t.Errorf("the loop hangs after %v", d)
			}
			if looks != want {
				t.Errorf("%d looks after %v, want %d", looks, d, want)
			}
		}
		after(5*time.Second, 1)
		answer <- struct{}{}
		after(3*time.Second, 2)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		close(answer)
	})
}
