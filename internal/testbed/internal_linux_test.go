package testbed

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// A namespace that cannot be made whole, for lack of descriptors, leaves none open.
func TestNewNode_LackOfDescriptors(t *testing.T) {
	Need(t)
	count := func() int {
		t.Helper()
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := count()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }()
	free, err := unix.Dup(0) // the first free number
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(free)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free) + 1, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	_, err = newNode(0) // its namespace takes the only one
	if again := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); again != nil {
		t.Fatal(again)
	}
	if err == nil {
		t.Fatal("a namespace without a descriptor")
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, and were %d before: %v", after, before, err)
	}
}

// A bed may be closed while somebody waits for a node that is busy, and who comes later is told, too.
func TestBed_CloseWhileSomebodyWaits(t *testing.T) {
	b := ForTest(t, Config{})
	n, all := b.Node(0), b.Nodes()
	busy, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 3)
	go func() { ended <- n.Do(func() error { close(busy); <-free; return nil }) }()
	<-busy
	waited := make(chan error)
	go func() { waited <- n.Do(func() error { return nil }) }()
	go func() { ended <- b.Close() }()
	if err := <-waited; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("who waited: %v", err)
	}
	close(free)
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
	if err := b.Node(0).Do(func() error { return nil }); !errors.Is(err, transport.ErrClosed) || b.Nodes() != all {
		t.Errorf("who comes later: %v, %d nodes of %d", err, b.Nodes(), all)
	}
}

// A bed that is closed changes nothing: neither its own interfaces nor those of the same name where
// its caller is.
func TestBed_ChangesNothingOnceItIsClosed(t *testing.T) {
	outer := ForTest(t, Config{Nodes: 1})
	err := outer.Node(0).Do(func() error {
		b, err := New(Config{Bridge: true})
		if err != nil {
			return err
		}
		_ = b.Close()
		n := b.Node(0)
		for what, err := range map[string]error{
			"SetUp": n.SetUp(0, false), "SetMTU": n.SetMTU(0, 1000), "Move": n.Move(0, b.Node(1)), "Remove": n.Remove(0),
			"SetLearning": b.SetLearning(0, 0, true), "SumBeforePort": b.SumBeforePort(0, 0),
			"SetLine": b.SetLine(0, 0, Line{BitsPerSecond: 1e9, Queue: 1e6}),
		} {
			if !errors.Is(err, transport.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
