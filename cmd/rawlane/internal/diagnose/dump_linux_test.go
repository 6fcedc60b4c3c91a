package diagnose

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An interrupt ends the verb also where its capture is a FIFO to which nobody writes.
func TestDump_InterruptBeforeAFIFOOpens(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "capture")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	cmd := NewDumpCommand()
	cmd.SetArgs([]string{fifo})
	cmd.SetOut(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }() // until it is interrupted, or below
	interrupt()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it was interrupted", err)
		}
	case <-time.After(20 * time.Second): // longer than a core may be away
		t.Error("it waits for a program that writes")
	}
	if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil { // ends what still waits
		_ = f.Close()
	}
}
