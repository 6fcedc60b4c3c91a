package capture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
)

// bufferBytes is how much is written at once: some hundred small frames, or forty of 1,500 bytes, a system call.
const bufferBytes = 64 << 10

// File is a pcapng file, or another writer, that the frames of one or several links go to. Its methods may be
// called from any goroutine.
type File struct {
	// SnapLen is how many bytes of each frame are recorded, from its destination on; the file says of each how
	// long it was. Zero or less is all. Set it before the first Wrap.
	SnapLen int

	mu       sync.Mutex // guards what follows
	out      *bufio.Writer
	pcap     *pcapgo.NgWriter // nil until the first link
	frame    []byte           // being written; kept for its memory
	counts   Counts
	err      error // the first one of the writer's
	finished bool
}

// Counts of a File, in frames.
type Counts struct {
	Captured uint64 `json:"captured"` // taken down; if the writer fails, the last of them did not get through
	Lost     uint64 `json:"lost"`     // passed when the writer had failed, or the File was closed
}

// NewFile makes a File that writes to w, buffered. w stays the caller's to close, after the File.
func NewFile(w io.Writer) *File { return &File{out: bufio.NewWriterSize(w, bufferBytes)} }

// Wrap returns a link whose frames are recorded: an interface of the file, by inner's name and address.
// Errors: the writer's; a File that was closed.
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
		id, f.err = f.pcap.AddInterface(i)
		return id, f.err
	}
	f.pcap, f.err = pcapgo.NewNgWriterInterface(f.out, i, pcapgo.NgWriterOptions{
		SectionInfo: pcapgo.NgSectionInfo{Application: "rawlane"},
	})
	return 0, f.err
}

// record takes down frames that passed l. Those that were sent without a source address came from l's.
func (f *File) record(l *Link, frames []transport.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now() // under the lock, so that time does not run back from a frame to the next
	for i := range frames {
		if f.err != nil || f.finished {
			f.counts.Lost += uint64(len(frames) - i)
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
	f.err = f.pcap.WritePacket(gopacket.CaptureInfo{
		Timestamp: now, CaptureLength: len(f.frame), Length: length, InterfaceIndex: l.id,
	}, f.frame)
	if f.err != nil {
		f.counts.Lost++
		return
	}
	f.counts.Captured++
}

// Counts returns how many frames were recorded, and how many not.
func (f *File) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Flush writes out what is buffered, and returns the writer's first error.
func (f *File) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush()
}

func (f *File) flush() error {
	if f.err == nil && f.pcap != nil {
		f.err = f.pcap.Flush()
	}
	if f.err != nil {
		return fmt.Errorf("capture: write: %w (%d frames taken down, %d not)", f.err, f.counts.Captured, f.counts.Lost)
	}
	return nil
}

// Close ends the recording, writes out what is buffered, and returns the writer's first error, each time it is
// called. The links go on without it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
	return f.flush()
}
