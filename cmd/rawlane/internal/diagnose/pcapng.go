package diagnose

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/gopacket"
)

// wholeBlocks passes a pcapng file on block by block, and looks at each, because gopacket's reader
// does not: an end inside a block is io.ErrUnexpectedEOF and not the end of the file; a block that
// is longer than any frame, or holds a packet that is longer than the block, is an error before
// anybody allocates what it asks for.
type wholeBlocks struct {
	r     io.Reader
	order binary.ByteOrder // of the section
	block []byte           // what is not passed on yet
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
	if len(w.block) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, w.block)
	w.block = w.block[n:]
	return n, nil
}

// next reads a block. The first one is a section header.
func (w *wholeBlocks) next() error {
	var head [blockHead]byte
	if _, err := io.ReadFull(w.r, head[:]); err != nil {
		return err
	}
	if bytes.Equal(head[:4], pcapngMagic) {
		w.order = binary.LittleEndian
		if bytes.Equal(head[8:], byteOrderMagic) {
			w.order = binary.BigEndian
		}
	}
	isPacket, length := w.order.Uint32(head[:]) == packetBlock, w.order.Uint32(head[4:])
	if length < blockHead || length > maxBlock || isPacket && length < packetHead {
		return errBlock
	}
	rest, err := io.ReadAll(io.LimitReader(w.r, int64(length)-blockHead))
	if err != nil {
		return err
	}
	block := append(head[:], rest...)
	if len(block) < int(length) {
		return io.ErrUnexpectedEOF
	}
	if isPacket && w.order.Uint32(block[20:]) > length {
		return errBlock
	}
	w.block = block
	return nil
}

// nextPacket reads a packet. gopacket's readers panic at some bytes that they do not expect, and
// that of pcap takes it for the file's end where a packet's head is there and none of its bytes.
func nextPacket(r captureReader) (data []byte, info gopacket.CaptureInfo, err error) {
	defer malformed(&err)
	data, info, err = r.ReadPacketData()
	if errors.Is(err, io.EOF) && info.CaptureLength > 0 {
		err = io.ErrUnexpectedEOF
	}
	return data, info, err
}

// malformed makes a panic of gopacket's an error.
func malformed(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("malformed: %v", p)
	}
}
