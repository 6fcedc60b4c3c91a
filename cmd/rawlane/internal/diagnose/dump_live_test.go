package diagnose

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// live is a capture under way, which the verb reads.
type live struct {
	frames *pcapgo.Writer
	end    func() error // of the capture
	out    bytes.Buffer
	ended  chan error // of the verb
}

// openLive starts the verb on a capture that has no frame yet.
func openLive(ctx context.Context, t *testing.T) *live {
	t.Helper()
	in, w := io.Pipe()
	l := &live{frames: pcapgo.NewWriter(w), end: w.Close, ended: make(chan error, 1)}
	cmd := NewDumpCommand()
	cmd.SetArgs([]string{"-", "--all"})
	cmd.SetIn(in)
	cmd.SetOut(&l.out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	go func() { l.ended <- cmd.ExecuteContext(ctx) }() // until the capture ends, or ctx
	if err := l.frames.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return l
}

// frame captures one.
func (l *live) frame(t *testing.T) {
	t.Helper()
	b := make([]byte, 60)
	if err := l.frames.WritePacket(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b); err != nil {
		t.Fatal(err)
	}
}

// An interrupt ends the verb, though the capture does not end; what comes a little later is
// printed.
func TestDump_Interrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		l := openLive(ctx, t)
		l.frame(t)
		interrupt()
		l.frame(t)
		if err := <-l.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it was interrupted", err)
		}
		if !strings.HasSuffix(l.out.String(), "0 messages, 0 of them faulty; 2 other frames\n") {
			t.Errorf("printed %q", l.out.String())
		}
		_ = l.end()
	})
}

// A capture that ends with the interrupt, as tcpdump's does, has come to its end.
func TestDump_InterruptOfBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		l := openLive(ctx, t)
		interrupt()
		l.frame(t)
		_ = l.end()
		if err := <-l.ended; err != nil || !strings.HasSuffix(l.out.String(), "; 1 other frames\n") {
			t.Errorf("%v, printed %q", err, l.out.String())
		}
	})
}

// What has come is printed before the verb waits for more.
func TestDump_PrintsWhatHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLive(t.Context(), t)
		for n := 1; n <= 3; n++ {
			l.frame(t)
			synctest.Wait()
			if got := strings.Count(l.out.String(), "\n"); got != n {
				t.Errorf("%d lines of %d frames: %q", got, n, l.out.String())
			}
		}
		if err := errors.Join(l.end(), <-l.ended); err != nil {
			t.Error(err)
		}
	})
}
