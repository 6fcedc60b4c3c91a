//go:build unix && !solaris && !aix

package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A lock is one holder's at a time. Closed, it is free, and its file is where it was.
func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Try(path); second != nil || !errors.Is(err, ErrHeld) {
		t.Errorf("held twice, or another error: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner alone", info, err)
	}
	second, err := Try(path)
	if err != nil {
		t.Fatalf("a lock that is free: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// Each error is the system's: of a lock that nobody has, none is ErrHeld.
func TestTry_Errors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Try(filepath.Join(dir, "none", "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Try(link); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("by a link, which somebody else may have put there: %v", err)
	}
	var none *Lock
	if err := none.Close(); err != nil {
		t.Errorf("of no lock: %v", err)
	}
}

// Whoever opened the file before its holder removed it has the lock of nothing.
func TestIsAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	f := open()
	if !isAt(f, path) {
		t.Error("the file at its path counts for nothing")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isAt(f, path) {
		t.Error("a file that was removed counts")
	}
	open()
	if isAt(f, path) {
		t.Error("a file that was removed counts for the next one")
	}
}

// Of many that take a lock, and remove it, one has it at a time, and the last leaves nothing.
func TestTake_Many(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var wg sync.WaitGroup
	var held sync.Mutex
	for range 16 {
		wg.Go(func() {
			for range 20 {
				l, err := Take(path, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if !held.TryLock() {
					t.Error("two have it")
					return
				}
				runtime.Gosched()
				held.Unlock()
				if err := l.Remove(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stays: %v", err)
	}
}

// A wait for a lock that nobody gives free ends.
func TestTake_Held(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const wait = time.Second
		for _, wait := range []time.Duration{0, wait} {
			begun := time.Now()
			if _, err := Take(path, wait); !errors.Is(err, ErrHeld) {
				t.Errorf("held: %v", err)
			}
			if took := time.Since(begun); took != wait {
				t.Errorf("waited for %v, want %v", took, wait)
			}
		}
		time.AfterFunc(wait, func() { _ = first.Close() })
		l, err := Take(path, 2*wait)
		if err != nil {
			t.Fatalf("given free meanwhile: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
