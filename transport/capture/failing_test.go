package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/fabric"
)

// full is a disk with room for so many bytes, and the file there.
type full struct {
	room int
	file bytes.Buffer
}

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return f.file.Write(b)
}

// frames counts those that are whole in the file.
func (f *full) frames(t *testing.T) (n uint64) {
	t.Helper()
	r, err := pcapgo.NewNgReader(&f.file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := r.ReadPacketData(); err != nil {
			return n
		}
		n++
	}
}

// A writer that fails does not disturb the traffic; each Close returns its error. What it had not
// taken of the frames before counts as lost.
func TestFailingWriter(t *testing.T) {
	disk := &full{room: 200_000}
	a, b, file := pair(t, disk)
	const rounds = 1000
	for range rounds {
		send(t, a, b)
	}
	for range 2 {
		if err := file.Close(); !errors.Is(err, errFull) {
			t.Errorf("Close: %v", err)
		}
	}
	c := file.Counts()
	if there := disk.frames(t); c.Captured != there || there == 0 {
		t.Errorf("%d frames are in the file, of %d captured", there, c.Captured)
	}
	if c.Lost == 0 || c.Captured+c.Lost != uint64(2*rounds*len(sample)) {
		t.Errorf("%+v", c)
	}
	if _, err := file.Wrap(a); !errors.Is(err, errFull) {
		t.Errorf("Wrap: %v", err)
	}
}

// That buffered frames cannot be written is returned by Close, also by that of a link with its own File.
func TestFailingFlush(t *testing.T) {
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	defer links[1].Close()
	l, err := capture.New(links[0], &full{})
	if err != nil {
		t.Fatal(err)
	}
	send(t, l, links[1])
	if err := l.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	} else if !strings.Contains(err.Error(), fmt.Sprintf("(0 frames recorded, %d not)", len(sample))) {
		t.Errorf("Close: %v, and nothing is in the file", err)
	}
	if _, err := links[0].Poll(nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the link inside was left open: %v", err)
	}
}

// After the File is closed the links go on, and frames are counted as lost.
func TestLinksOutliveTheirFile(t *testing.T) {
	var out bytes.Buffer
	a, b, file := pair(t, &out)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	size := out.Len()
	send(t, a, b)
	if c := file.Counts(); c.Captured != 0 || c.Lost != uint64(2*len(sample)) {
		t.Errorf("%+v", c)
	}
	if err := file.Flush(); err != nil || out.Len() != size {
		t.Errorf("Flush: %v; %d bytes written after Close", err, out.Len()-size)
	}
	if _, err := file.Wrap(a); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Wrap: %v", err)
	}
}

// The reader of a pipe that stands still ends the recording after five seconds, and neither the
// traffic nor Close; a writer that never returns holds up Close for ten.
func TestClose_TheReaderStandsStill(t *testing.T) {
	for name, c := range map[string]struct {
		writer func() io.WriteCloser
		says   string
		passes bool // frames pass links afterwards
		at     time.Duration
	}{
		"with deadlines":    {func() io.WriteCloser { c, _ := net.Pipe(); return c }, "has not taken", true, 5 * time.Second},
		"without deadlines": {func() io.WriteCloser { _, w := io.Pipe(); return w }, "Close gives up", false, 10 * time.Second},
	} {
		for busy, what := range map[bool]string{true: "a link writes", false: "Close writes"} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := c.writer()
					links, err := fabric.Links(2)
					if err != nil {
						t.Fatal(err)
					}
					l, err := capture.New(links[0], w)
					if err != nil {
						t.Fatal(err)
					}
					sent := make(chan struct{})
					frames, rounds := []transport.Frame{{Dst: links[1].MAC(), Payload: make([]byte, 1400)}}, 1
					if busy { // more than the buffer holds
						rounds = 100
					}
					go func() {
						defer close(sent)
						for range rounds {
							if n, err := l.Send(frames); n != 1 || err != nil {
								t.Error(n, err)
							}
							_, _ = links[1].Poll(make([]transport.Frame, 8))
						}
					}()
					synctest.Wait() // it is in the writer, or done
					begun := time.Now()
					for range 2 {
						err := l.File().Close()
						if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), c.says) {
							t.Errorf("Close: %v", err)
						}
					}
					if after := time.Since(begun); after < c.at || after > c.at+time.Second {
						t.Errorf("Close took %v, want %v", after, c.at)
					}
					if c.passes {
						<-sent
					}
					if n := l.File().Counts(); c.passes && (n.Captured != 0 || n.Lost != uint64(rounds)) {
						t.Errorf("%+v, want all lost: nothing was taken", n)
					}
					if err := w.Close(); err != nil { // ends what is left
						t.Fatal(err)
					}
					<-sent
					if err := links[0].Close(); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}
