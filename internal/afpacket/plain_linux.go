package afpacket

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// An offer of trains is answered for the whole host: each socket for the EtherType gets what comes
// then. So a socket that takes no trains says so where all programs can read it, and the kernel
// takes it back when the socket is gone: it makes the interface a member of a group that nobody
// sends to.

// plainMark is the group that tells of a socket that takes no trains.
func plainMark(t transport.EtherType) transport.MAC {
	return transport.MAC{0x03, 'P', 0, 0, byte(t >> 8), byte(t)}
}

// plainSockets looks for that group on an interface. It belongs to the goroutine that polls.
type plainSockets struct {
	file  *os.File // the groups of all interfaces of the network namespace; nil: they cannot be read
	lines *bufio.Reader
	index []byte // of the interface
	mark  []byte
	there bool // at the last look
	until monotime.Time
}

// A look takes 10 µs, and half a millisecond in a namespace with 600 interfaces.
const (
	lookEvery = 20 * time.Millisecond
	lookShare = 50 // of the time, one part goes to looking at most
)

func newPlainSockets(index int, t transport.EtherType) plainSockets {
	file, err := os.Open("/proc/thread-self/net/dev_mcast")
	if err != nil {
		return plainSockets{there: true} // for all that is known
	}
	mark := plainMark(t)
	return plainSockets{
		file: file, lines: bufio.NewReader(file), index: strconv.AppendInt(nil, int64(index), 10),
		mark: fmt.Appendf(nil, " %x\n", mark[:]),
	}
}

// any reports whether a socket on the interface takes no trains, or may be one.
func (p *plainSockets) any(now monotime.Time) bool {
	if p.file != nil && !now.Before(p.until) {
		p.there = p.look()
		p.until = now.Add(max(lookEvery, lookShare*clock.Now().Sub(now)))
	}
	return p.there
}

// look reads the file, a line a group: the interface's index and name, how many joined it, and its
// address.
func (p *plainSockets) look() bool {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return true
	}
	p.lines.Reset(p.file)
	for {
		line, err := p.lines.ReadSlice('\n')
		if err != nil {
			return err != io.EOF
		}
		if index, _, _ := bytes.Cut(line, []byte{' '}); bytes.HasSuffix(line, p.mark) && bytes.Equal(index, p.index) {
			return true
		}
	}
}

func (p *plainSockets) close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
