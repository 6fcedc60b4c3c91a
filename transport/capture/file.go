package capture

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
)

// File is a pcapng file, or another writer, that the frames of one or several links go to.
type File struct {
	mu       sync.Mutex // guards what follows
	out      io.Writer
	pcap     *pcapgo.NgWriter // nil until the first link
	frame    []byte           // being written; kept for its memory
	counts   Counts
	err      error // the first one of the writer's
	finished bool
}

// Counts of a File, in frames.
type Counts struct {
	Captured uint64 `json:"captured"`
	Lost     uint64 `json:"lost"` // not recorded: the writer had failed
}

// NewFile makes a File that writes to w, buffered. w stays the caller's to close, after the File.
func NewFile(w io.Writer) *File { return &File{out: w} }

// Wrap returns a link whose frames are recorded. Its name in the file is inner's.
func (f *File) Wrap(inner transport.Link) (*Link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, err := f.addInterface(pcapgo.NgInterface{
		Name:                transport.Name(inner),
		Description:         inner.MAC().String(),
		OS:                  runtime.GOOS,
		LinkType:            layers.LinkTypeEthernet,
		TimestampResolution: 9, // nanoseconds
	})
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", transport.Name(inner), err)
	}
	return &Link{Link: inner, file: f, id: id}, nil
}

func (f *File) addInterface(i pcapgo.NgInterface) (id int, err error) {
	if f.err != nil {
		return 0, f.err
	}
	if f.pcap != nil {
		return f.pcap.AddInterface(i)
	}
	f.pcap, err = pcapgo.NewNgWriterInterface(f.out, i, pcapgo.NgWriterOptions{
		SectionInfo: pcapgo.NgSectionInfo{Application: "rawlane"},
	})
	return 0, err
}

// record writes frames of interface id. Those that were sent without a source address came from src.
func (f *File) record(id int, src transport.MAC, frames []transport.Frame) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range frames {
		if f.err != nil || f.finished {
			f.counts.Lost += uint64(len(frames) - i)
			return
		}
		whole := frames[i]
		if whole.Src.IsZero() {
			whole.Src = src
		}
		f.frame = whole.AppendTo(f.frame[:0])
		info := gopacket.CaptureInfo{Timestamp: now, CaptureLength: len(f.frame), Length: len(f.frame), InterfaceIndex: id}
		if f.err = f.pcap.WritePacket(info, f.frame); f.err == nil {
			f.counts.Captured++
		} else {
			f.counts.Lost++
		}
	}
}

// Counts returns how many frames were recorded.
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
		return fmt.Errorf("capture: %w (%d frames recorded, %d not)", f.err, f.counts.Captured, f.counts.Lost)
	}
	return nil
}

// Close ends the recording and returns the writer's first error. Links go on without it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
	return f.flush()
}
