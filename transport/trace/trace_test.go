package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/trace"
)

// text returns a logger to w without timestamps.
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
	frame := transport.Frame{Dst: b.MAC(), EtherType: 0x88b5, OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 1, DEI: true}), Payload: bytes.Repeat([]byte{0xab}, 60)}
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

// Only frames that passed are logged: not the refused half of a batch, nor the rest of Poll's slice.
func TestWhatDidNotPassIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	a, b := pair(t, text(&log, slog.LevelDebug), trace.Config{})
	frame := transport.Frame{Dst: b.MAC(), EtherType: 0x88b5}
	large := frame
	large.Payload = make([]byte, a.MTU()+1)
	if n, err := a.Send([]transport.Frame{frame, large, frame}); n != 1 || !errors.Is(err, transport.ErrTooLarge) {
		t.Fatal(n, err)
	}
	if n, err := b.Poll(make([]transport.Frame, 8)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	sent, received := strings.Count(log.String(), "msg=sent"), strings.Count(log.String(), "msg=received")
	if sent != 1 || received != 1 || strings.Count(log.String(), `level=WARN msg="send failed"`) != 1 {
		t.Errorf("want a frame sent, a warning, a frame received; log\n%s", &log)
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

// The counters are logged once, however often the link is closed.
func TestCloseIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	a, b := pair(t, text(&log, slog.LevelInfo), trace.Config{})
	if _, err := a.Send([]transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = a.Send(make([]transport.Frame, 1))
	_, _ = a.Poll(make([]transport.Frame, 1))
	want := "level=INFO msg=closed link=" + transport.Name(a) + " tx_frames=1 rx_frames=0 rx_dropped=0\n"
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", &log, want)
	}
}

// The end of a context and a full queue are no failures.
func TestNoWarningWhereNothingFailed(t *testing.T) {
	var log bytes.Buffer
	a, b := pair(t, text(&log, slog.LevelWarn), trace.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	err := error(nil)
	for range 1 << 20 {
		if _, err = a.Send([]transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5}}); err != nil {
			break
		}
	}
	if !errors.Is(err, transport.ErrBusy) || log.Len() > 0 {
		t.Errorf("%v; log\n%s", err, &log)
	}
}

// A *slog.LevelVar switches the records on and off.
func TestLevelChangesWhileTheLinkRuns(t *testing.T) {
	var log bytes.Buffer
	var level slog.LevelVar
	level.Set(slog.LevelDebug)
	a, b := pair(t, text(&log, slog.LevelInfo), trace.Config{Level: &level})
	frame := []transport.Frame{{Dst: b.MAC(), EtherType: 0x88b5}}
	for _, c := range []struct {
		level slog.Level
		lines int
	}{{slog.LevelDebug, 0}, {slog.LevelInfo, 1}, {slog.LevelDebug, 1}} {
		level.Set(c.level)
		if _, err := a.Send(frame); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\n"); n != c.lines {
			t.Errorf("%v: %d records, want %d", c.level, n, c.lines)
		}
	}
}

func Example() {
	links, _ := fabric.Links(2)
	// The time and the link's name, fabric0/0, differ from run to run.
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "link" {
				return slog.Attr{}
			}
			return a
		},
	}))
	link := trace.New(links[0], logger, trace.Config{Payload: 5})
	_, _ = link.Send([]transport.Frame{{
		Dst: transport.Broadcast, Src: transport.MAC{2, 0, 0, 0, 0, 1}, EtherType: 0x88b5,
		OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 1}), Payload: []byte("hello, all"),
	}})
	// Output: level=DEBUG msg=sent src=02:00:00:00:00:01 dst=ff:ff:ff:ff:ff:ff ethertype=0x88b5 vid=101 pcp=1 bytes=10 payload=68656c6c6f
}

// down is a link whose Wait fails as it is told.
type down struct {
	transport.Link
	err error
}

func (d *down) Wait(context.Context) error { return d.err }

// A failure of Wait that comes again and again is logged when it is another one than the last, once
// a minute with how often it came since, and with that at the end.
func TestWait_FailsAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, err := fabric.Links(1)
		if err != nil {
			t.Fatal(err)
		}
		inner, ctx := &down{Link: links[0]}, t.Context()
		var log bytes.Buffer
		l := trace.New(inner, text(&log, slog.LevelWarn), trace.Config{})
		wait := func(err error, times int) {
			for range times {
				inner.err = err
				_ = l.Wait(ctx)
				time.Sleep(10 * time.Millisecond) // virtual
			}
		}
		wait(transport.ErrInterfaceDown, 6001) // a minute, and the one that ends it
		wait(transport.ErrInterfaceDown, 2)
		wait(transport.ErrNoInterface, 1)
		wait(nil, 2)
		wait(transport.ErrBusy, 2)
		wait(transport.ErrNoInterface, 3)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(log.String()) {
			got = append(got, strings.TrimSpace(strings.Replace(line, " link="+transport.Name(l), "", 1)))
		}
		want := []string{
			`level=WARN msg="wait failed" err="interface is down"`,
			`level=WARN msg="wait failed again" err="interface is down" times=6000`,
			`level=WARN msg="wait failed again" err="interface is down" times=2`,
			`level=WARN msg="wait failed" err="no such interface"`,
			`level=WARN msg="wait failed again" err="no such interface" times=3`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
