package shm_test

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// hopeless is a wire whose Wait fails at once, and notes when.
type hopeless struct {
	transport.Link
	waits chan time.Time
}

func (h *hopeless) Wait(ctx context.Context) error {
	select {
	case h.waits <- time.Now():
	case <-ctx.Done():
	}
	return transport.ErrInterfaceDown
}

// A wire that fails to wait is left alone for 10 ms each time, and takes no processor meanwhile.
func TestWire_IsLeftAlone(t *testing.T) {
	wire := &hopeless{Link: wires(t, 1)[0], waits: make(chan time.Time, 100)}
	open(t, shm.Config{Dir: shm.Folder(t), Wire: wire})
	last := <-wire.waits
	for range 3 {
		now := <-wire.waits
		if pause := now.Sub(last); pause < 10*time.Millisecond {
			t.Errorf("tried again after %v", pause)
		}
		last = now
	}
}

// While one station is reached through memory, a wire that fails to wait ends no wait of the link's.
func TestWire_FailsBesideOneStation(t *testing.T) {
	w, dir := wires(t, 2), shm.Folder(t)
	wire := &hopeless{Link: w[0], waits: make(chan time.Time, 1000)}
	a, b := open(t, shm.Config{Dir: dir, Wire: wire}), open(t, shm.Config{Dir: dir, Wire: w[1]})
	exchange(t, b, a)
	for range 5 {
		<-wire.waits
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := a.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want none of the wire's", err)
		}
		cancel()
		if _, err := a.Poll(make([]transport.Frame, 1)); err != nil {
			t.Error(err)
		}
	}
}

// The path of a link's socket has 107 bytes at most, as the system has it.
func TestOpen_LongestPath(t *testing.T) {
	dir := shm.Folder(t)
	rest := 107 - len(dir) - len("/") - len("/test/020000000001")
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
