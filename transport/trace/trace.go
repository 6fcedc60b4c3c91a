package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Config of a Link. The zero value logs no payload, at slog.LevelDebug.
type Config struct {
	// Level of the records of frames. nil means slog.LevelDebug. It is read at each call, so a
	// *slog.LevelVar changes it while the link runs.
	Level slog.Leveler
	// Payload is how many bytes of each payload are logged, in hexadecimal. 0 or less means none.
	Payload int
}

// Link is a link whose frames are logged. What it does not do itself the inner link does.
type Link struct {
	transport.Link
	log     *slog.Logger
	level   slog.Leveler
	payload int
	closed  atomic.Bool

	mu    sync.Mutex // guards waits
	waits repeated
}

// waitsEvery is how often a failure of Wait is logged that stays the same: while an interface is
// down, a node tries again a hundred times a second.
const waitsEvery = time.Minute

// repeated is a failure that comes again and again.
type repeated struct {
	text  string
	said  time.Time // last
	times int       // since then
}

var (
	_ transport.Link    = (*Link)(nil)
	_ transport.Wrapper = (*Link)(nil)
)

// New returns a link around inner whose frames are logged to logger, under inner's name.
func New(inner transport.Link, logger *slog.Logger, cfg Config) *Link {
	if cfg.Level == nil {
		cfg.Level = slog.LevelDebug
	}
	logger = logger.With("link", transport.Name(inner))
	return &Link{Link: inner, log: logger, level: cfg.Level, payload: max(cfg.Payload, 0)}
}

// Unwrap implements transport.Wrapper.
func (l *Link) Unwrap() transport.Link { return l.Link }

// Send sends frames by the inner link and logs those that it took.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	l.frames("sent", frames[:n])
	l.failure("send", err)
	return n, err
}

// Poll polls the inner link and logs the frames that it returned.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	l.frames("received", frames[:n])
	l.failure("poll", err)
	return n, err
}

// Wait waits for the inner link and logs if that fails: not as it did the last time, or once a
// minute, with how often it has.
func (l *Link) Wait(ctx context.Context) error {
	err := l.Link.Wait(ctx)
	if ctx.Err() == nil && isFailure(err) {
		l.waitFailed(err)
	}
	return err
}

func (l *Link) waitFailed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, now := &l.waits, time.Now()
	if text := err.Error(); text != w.text {
		l.sayWaits()
		*w = repeated{text, now, 0}
		l.failure("wait", err)
		return
	}
	if w.times++; now.Sub(w.said) >= waitsEvery {
		l.sayWaits()
		w.said = now
	}
}

// sayWaits logs the failures of Wait that were not logged. The caller holds mu.
func (l *Link) sayWaits() {
	if w := &l.waits; w.times > 0 {
		l.log.Warn("wait failed again", "err", w.text, "times", w.times)
		w.times = 0
	}
}

// Close closes the inner link and, the first time, logs its counters at slog.LevelInfo.
func (l *Link) Close() error {
	err := l.Link.Close()
	if l.closed.Swap(true) {
		return err
	}
	l.mu.Lock()
	l.sayWaits()
	l.mu.Unlock()
	c := l.Counters()
	l.log.Info("closed", "tx_frames", c.TxFrames, "rx_frames", c.RxFrames, "rx_dropped", c.RxDropped)
	l.failure("close", err)
	return err
}

func (l *Link) failure(what string, err error) {
	if isFailure(err) {
		l.log.Warn(what+" failed", "err", err)
	}
}

// isFailure reports whether an error is one that is logged.
func isFailure(err error) bool {
	return err != nil && !errors.Is(err, transport.ErrBusy) && !errors.Is(err, transport.ErrClosed)
}

func (l *Link) frames(what string, frames []transport.Frame) {
	level := l.level.Level()
	if len(frames) == 0 || !l.log.Enabled(context.Background(), level) {
		return
	}
	for i := range frames {
		l.log.LogAttrs(context.Background(), level, what, l.attributes(&frames[i])...)
	}
}

func (l *Link) attributes(f *transport.Frame) []slog.Attr {
	src := f.Src
	if src.IsZero() {
		src = l.MAC()
	}
	list := []slog.Attr{
		slog.String("src", src.String()),
		slog.String("dst", f.Dst.String()),
		slog.String("ethertype", f.EtherType.String()),
	}
	if f.Tagged {
		list = append(list, slog.Int("vid", int(f.Tag.VID)), slog.Int("pcp", int(f.Tag.PCP)))
		if f.Tag.DEI {
			list = append(list, slog.Bool("dei", true))
		}
	}
	list = append(list, slog.Int("bytes", len(f.Payload)))
	if l.payload > 0 {
		list = append(list, slog.String("payload", fmt.Sprintf("%x", f.Payload[:min(len(f.Payload), l.payload)])))
	}
	return list
}
