package diagnose

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/gopacket"
)

// wholeBlocks passes a pcapng file on, and looks at its blocks, because gopacket's reader does not:
// an end inside a block is io.ErrUnexpectedEOF and not the end of the file; a block that is longer
// than any frame, or holds a packet that is longer than the block, is an error before anybody
// allocates what it asks for.
type wholeBlocks struct {
	r      io.Reader
	head   []byte // of the block, as far as it was read
	left   int64  // of the block, behind its head
	big    bool
	broken bool
}

const (
	// blockHead is what all blocks begin with and, in a section header, the byte order: type,
	// length, 4 bytes more.
	blockHead = 12
	// packetHead is an enhanced packet block's: up to the captured length.
	packetHead  = 24
	packetBlock = 6
	// maxBlock is a hundred times the longest frame that tcpdump captures.
	maxBlock = 100 << 18
)

var errBlock = errors.New("malformed: a block's lengths cannot be true")

// byteOrderMagic stands in a section header, as the numbers of the section do.
var byteOrderMagic = []byte{0x1a, 0x2b, 0x3c, 0x4d}

// Read implements io.Reader.
func (w *wholeBlocks) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.follow(b[:n])
	if w.broken {
		return 0, errBlock
	}
	if err == io.EOF && (w.left > 0 || len(w.head) > 0) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *wholeBlocks) follow(b []byte) {
	for len(b) > 0 && !w.broken {
		if w.left > 0 {
			n := min(w.left, int64(len(b)))
			w.left -= n
			b = b[n:]
			continue
		}
		n := min(w.headLen()-len(w.head), len(b))
		w.head = append(w.head, b[:n]...)
		b = b[n:]
		if len(w.head) == w.headLen() {
			w.begin()
		}
	}
}

// headLen returns the length of the block's head, as far as it is known.
func (w *wholeBlocks) headLen() int {
	if len(w.head) >= blockHead && w.number(0) == packetBlock {
		return packetHead
	}
	return blockHead
}

// begin reads the block's head.
func (w *wholeBlocks) begin() {
	if bytes.Equal(w.head[:4], pcapngMagic) {
		w.big = bytes.Equal(w.head[8:blockHead], byteOrderMagic)
	}
	length := w.number(4)
	w.left = length - int64(len(w.head))
	w.broken = w.left < 0 || length > maxBlock || w.number(0) == packetBlock && w.number(20) > length
	w.head = w.head[:0]
}

// number returns the number at an offset of the head.
func (w *wholeBlocks) number(at int) int64 {
	if w.big {
		return int64(binary.BigEndian.Uint32(w.head[at:]))
	}
	return int64(binary.LittleEndian.Uint32(w.head[at:]))
}

// nextPacket reads a packet. gopacket's readers panic at some bytes that they do not expect.
func nextPacket(r captureReader) (data []byte, info gopacket.CaptureInfo, err error) {
	defer malformed(&err)
	return r.ReadPacketData()
}

// malformed makes a panic of gopacket's an error.
func malformed(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("malformed: %v", p)
	}
}
