package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/trace"
)

// text logs to w without the time.
func text(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// pair is two links on a switch, traced by one logger.
func pair(t testing.TB, logger *slog.Logger, cfg trace.Config) (a, b *trace.Link) {
	t.Helper()
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	a, b = trace.New(links[0], logger, cfg), trace.New(links[1], logger, cfg)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestLink(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (transport.Link, transport.Link) {
		a, b := pair(t, text(io.Discard, slog.LevelInfo), trace.Config{})
		return a, b
	})
}

func TestFramesAreLogged(t *testing.T) {
	var log bytes.Buffer
	a, b := pair(t, text(&log, slog.LevelDebug), trace.Config{Payload: 2})
	frame := transport.Frame{Dst: b.MAC(), EtherType: 0x88b5, Tagged: true, Tag: transport.Tag{VID: 101, PCP: 1, DEI: true}, Payload: bytes.Repeat([]byte{0xab}, 60)}
	if _, err := a.Send([]transport.Frame{frame}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Poll(make([]transport.Frame, 4)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	about := " src=" + a.MAC().String() + " dst=" + b.MAC().String() + " ethertype=0x88b5 vid=101 pcp=1 dei=true bytes=60 payload=abab\n"
	want := "level=DEBUG msg=sent link=" + transport.Name(a) + about + "level=DEBUG msg=received link=" + transport.Name(b) + about
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", &log, want)
	}
}

// broken is a link that fails.
type broken struct{ transport.Link }

var errBroken = errors.New("broken")

func (broken) Send([]transport.Frame) (int, error) { return 0, errBroken }
func (broken) Poll([]transport.Frame) (int, error) { return 0, errBroken }
func (broken) Wait(context.Context) error          { return errBroken }

func TestFailuresAreWarnings(t *testing.T) {
	var log bytes.Buffer
	a, _ := pair(t, text(io.Discard, slog.LevelInfo), trace.Config{})
	l := trace.New(broken{a.Link}, text(&log, slog.LevelWarn), trace.Config{})
	_, sendErr := l.Send(make([]transport.Frame, 1))
	_, pollErr := l.Poll(make([]transport.Frame, 1))
	waitErr := l.Wait(context.Background())
	for what, err := range map[string]error{"send": sendErr, "poll": pollErr, "wait": waitErr} {
		if !errors.Is(err, errBroken) || !strings.Contains(log.String(), `level=WARN msg="`+what+` failed"`) {
			t.Errorf("%s: %v, log\n%s", what, err, &log)
		}
	}
}

func TestDisabledAllocatesNothing(t *testing.T) {
	a, b := pair(t, text(io.Discard, slog.LevelInfo), trace.Config{})
	frames := []transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5, Payload: make([]byte, 60)}}
	in := make([]transport.Frame, 1)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Send(frames); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Poll(in); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func Example() {
	links, _ := fabric.Links(2)
	link := trace.New(links[0], text(os.Stdout, slog.LevelDebug), trace.Config{Payload: 5})
	_, _ = link.Send([]transport.Frame{{Dst: transport.Broadcast, EtherType: 0x88b5, Payload: []byte("hello")}})
	// The output has the link's name, which differs from run to run: level=DEBUG msg=sent link=fabric0/0 ...
}
