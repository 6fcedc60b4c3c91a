package main

import (
	"bytes"
	"encoding/binary"
	"io"
)

// wholeBlocks passes a pcapng file on and tells an end inside a block, io.ErrUnexpectedEOF, from one behind it. (To
// gopacket's reader they are the same.)
type wholeBlocks struct {
	r    io.Reader
	head []byte // of the block: type, length, and in a section header the byte order
	left int64  // of the block, behind its head
	big  bool
}

const blockHead = 12

// byteOrderMagic stands in a section header, as the numbers of the section do.
var byteOrderMagic = []byte{0x1a, 0x2b, 0x3c, 0x4d}

// Read implements io.Reader.
func (w *wholeBlocks) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.follow(b[:n])
	if err == io.EOF && (w.left > 0 || len(w.head) > 0) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *wholeBlocks) follow(b []byte) {
	for len(b) > 0 {
		if w.left > 0 {
			n := min(w.left, int64(len(b)))
			w.left -= n
			b = b[n:]
			continue
		}
		n := min(blockHead-len(w.head), len(b))
		w.head = append(w.head, b[:n]...)
		b = b[n:]
		if len(w.head) == blockHead {
			w.left = max(w.length()-blockHead, 0)
			w.head = w.head[:0]
		}
	}
}

func (w *wholeBlocks) length() int64 {
	if bytes.Equal(w.head[:4], pcapngMagic) {
		w.big = bytes.Equal(w.head[8:], byteOrderMagic)
	}
	if w.big {
		return int64(binary.BigEndian.Uint32(w.head[4:]))
	}
	return int64(binary.LittleEndian.Uint32(w.head[4:]))
}
