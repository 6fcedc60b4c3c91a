package capture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
)

// bufferBytes is how much one system call writes: some hundred small frames, or forty of 1,500
// bytes.
const bufferBytes = 64 << 10

// File is a capture in pcapng form, of the frames of one or several links. Its methods may be
// called from any goroutine.
type File struct {
	// SnapLen is how many bytes of each frame are recorded, from its destination on; the capture
	// also has each frame's length. 0 or less means all. Set it before the first Wrap.
	SnapLen int

	captured, lost atomic.Uint64 // of Counts; changed under mu
	gaveUp         atomic.Bool   // Close has left a writer that does not return

	mu       sync.Mutex // guards what follows
	out      *bufio.Writer
	pcap     *pcapgo.NgWriter // nil until the first link
	frame    []byte           // being written; kept for its memory
	buffered uint64           // frames captured that are not in the file yet, or not wholly
	err      error            // the writer's first
	finished bool
}

// Counts of a File, in frames.
type Counts struct {
	Captured uint64 `json:"captured"` // recorded; if the writer has failed: what it had taken before
	Lost     uint64 `json:"lost"`     // passed in vain: the writer failed, or the File was closed
}

// NewFile makes a File that writes to w, buffered. The caller closes w after the File.
func NewFile(w io.Writer) *File { return &File{out: bufio.NewWriterSize(bounded(w), bufferBytes)} }

// Wrap returns a link around inner whose frames are recorded. It is an interface of the capture,
// under inner's name and address. Errors: the writer's first; os.ErrClosed after Close.
func (f *File) Wrap(inner transport.Link) (*Link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	snap := max(f.SnapLen, 0)
	id, err := f.addInterface(pcapgo.NgInterface{
		Name:                transport.Name(inner),
		Description:         inner.MAC().String(),
		OS:                  runtime.GOOS,
		LinkType:            layers.LinkTypeEthernet,
		SnapLength:          uint32(snap),
		TimestampResolution: 9, // nanoseconds
	})
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", transport.Name(inner), err)
	}
	return &Link{Link: inner, file: f, id: id, snap: snap}, nil
}

func (f *File) addInterface(i pcapgo.NgInterface) (id int, err error) {
	switch {
	case f.err != nil:
		return 0, f.err
	case f.finished:
		return 0, fmt.Errorf("file closed: %w", os.ErrClosed)
	case f.pcap != nil:
		if id, f.err = f.pcap.AddInterface(i); f.err != nil {
			f.loseBuffered()
		}
		return id, f.err
	}
	f.pcap, f.err = pcapgo.NewNgWriterInterface(f.out, i, pcapgo.NgWriterOptions{
		SectionInfo: pcapgo.NgSectionInfo{Application: "rawlane"},
	})
	return 0, f.err
}

// record writes frames that passed l. A frame sent without a source address has l's.
func (f *File) record(l *Link, frames []transport.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now() // under the lock, so that timestamps do not run backwards
	for i := range frames {
		if f.err != nil || f.finished {
			f.lost.Add(uint64(len(frames) - i))
			return
		}
		whole := frames[i]
		if whole.Src.IsZero() {
			whole.Src = l.Link.MAC()
		}
		f.write(now, l, &whole)
	}
}

func (f *File) write(now time.Time, l *Link, whole *transport.Frame) {
	f.frame = whole.AppendTo(f.frame[:0])
	length := len(f.frame)
	if l.snap > 0 && l.snap < length {
		f.frame = f.frame[:l.snap]
	}
	before := f.out.Buffered()
	f.err = f.pcap.WritePacket(gopacket.CaptureInfo{
		Timestamp: now, CaptureLength: len(f.frame), Length: length, InterfaceIndex: l.id,
	}, f.frame)
	if f.err != nil {
		f.lost.Add(1)
		f.loseBuffered()
		return
	}
	f.captured.Add(1)
	if f.out.Buffered()-before < len(f.frame) { // what was there before it is written
		f.buffered = 0
	}
	f.buffered++
}

// loseBuffered counts what the writer has not taken, now that it has failed.
func (f *File) loseBuffered() {
	f.captured.Add(-f.buffered)
	f.lost.Add(f.buffered)
	f.buffered = 0
}

// Counts returns how many frames were recorded and how many were not.
func (f *File) Counts() Counts { return Counts{Captured: f.captured.Load(), Lost: f.lost.Load()} }

// Flush writes out what is buffered and returns the writer's first error.
func (f *File) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush()
}

func (f *File) flush() error {
	if f.err == nil && f.pcap != nil {
		if f.err = f.pcap.Flush(); f.err != nil {
			f.loseBuffered()
		}
		f.buffered = 0
	}
	return f.failure(f.err)
}

func (f *File) failure(err error) error {
	if err == nil {
		return nil
	}
	c := f.Counts()
	return fmt.Errorf("capture: write: %w (%d frames recorded, %d not)", err, c.Captured, c.Lost)
}

// Close ends the recording and writes out what is buffered. Each call returns the writer's first
// error. The links stay open and pass frames as before. If the writer does not return for ten
// seconds, Close gives up, and says so (os.ErrDeadlineExceeded): links wait on until it does.
func (f *File) Close() error {
	if f.gaveUp.Load() {
		return f.failure(errNotWritten)
	}
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	for !f.mu.TryLock() { // a link may hold it, in the writer
		select {
		case <-timeout.C:
			f.gaveUp.Store(true)
			return f.failure(errNotWritten)
		case <-time.After(closePause):
		}
	}
	f.finished = true
	done := make(chan error, 1)
	go func() { // ends when the writer returns
		defer f.mu.Unlock()
		done <- f.flush()
	}()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		f.gaveUp.Store(true)
		return f.failure(errNotWritten)
	}
}
