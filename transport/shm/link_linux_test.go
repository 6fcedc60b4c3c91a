package shm_test

import (
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/shm"
)

func mac(n int) transport.MAC { return transport.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

// open opens a link for as long as the test.
func open(t testing.TB, cfg shm.Config) *shm.Link {
	t.Helper()
	l, err := shm.Open("test", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := asProcess(role); err != nil {
			log.Fatal(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestLink(t *testing.T) {
	for _, mtu := range []int{0, 64, 1500, shm.MaxMTU} {
		linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
			dir := shm.Folder(t)
			return open(t, shm.Config{Dir: dir, MTU: mtu}), open(t, shm.Config{Dir: dir, MTU: mtu})
		})
	}
}

// wires returns links that all reach each other, for as long as the test.
func wires(t testing.TB, n int) []*fabric.Link {
	t.Helper()
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	links, err := f.AddSwitch("").Links(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		t.Cleanup(func() { _ = l.Close() })
	}
	return links
}

// With a wire the suite passes where both stations are on one host, and where each is on its own.
func TestLink_WithAWire(t *testing.T) {
	for _, together := range []bool{true, false} {
		linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
			w, dirA, dirB := wires(t, 2), shm.Folder(t), shm.Folder(t)
			if together {
				dirB = dirA
			}
			return open(t, shm.Config{Dir: dirA, Wire: w[0]}), open(t, shm.Config{Dir: dirB, Wire: w[1]})
		})
	}
}

// The path of a link's socket has 107 bytes at most, as the system has it.
func TestOpen_LongestPath(t *testing.T) {
	dir := shm.Folder(t)
	rest := 107 - len(shm.SegmentFolder(dir)) - len("/") - len("/020000000001")
	for more, fits := range []bool{true, false} {
		l, err := shm.Open("test", shm.Config{Dir: filepath.Join(dir, strings.Repeat("x", rest+more)), MAC: mac(1)})
		if err == nil {
			_ = l.Close()
		}
		if (err == nil) != fits || !fits && !strings.Contains(err.Error(), "1 bytes too long") {
			t.Errorf("%d bytes: %v", 107+more, err)
		}
	}
}

// An Open that fails leaves no folder of the segment behind.
func TestOpen_FailsAndLeavesNothing(t *testing.T) {
	dir := filepath.Join(shm.Folder(t), strings.Repeat("d", 100))
	if _, err := shm.Open("test", shm.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("%v, want that the path is too long", err)
	}
	if _, err := os.Stat(shm.SegmentFolder(dir)); !os.IsNotExist(err) {
		t.Errorf("the segment's folder: %v, want none", err)
	}
}
