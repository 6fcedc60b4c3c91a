package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A plan is read until the context ends, also from a FIFO to which nobody writes, or not to its end.
func TestReadPlan_FIFO(t *testing.T) {
	for name, writes := range map[string]bool{"nobody writes": false, "without an end": true} {
		fifo := filepath.Join(t.TempDir(), "plan")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		var release []*os.File
		open := func() {
			f, err := os.OpenFile(fifo, os.O_RDWR, 0) // does not wait
			if err != nil {
				t.Fatal(err)
			}
			release = append(release, f)
		}
		if writes {
			open()
		}
		ctx, interrupt := context.WithCancel(t.Context())
		read := make(chan error, 1)
		go func() { // until it is interrupted, or below
			_, err := ReadPlan(ctx, fifo)
			read <- err
		}()
		interrupt()
		select {
		case err := <-read:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want that it was interrupted", name, err)
			}
		case <-time.After(20 * time.Second): // longer than a core may be away
			t.Errorf("%s: it waits all the same", name)
		}
		open() // ends what still waits
		for _, f := range release {
			_ = f.Close()
		}
	}
}
