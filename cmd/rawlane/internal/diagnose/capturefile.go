package diagnose

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// captureReader is a capture's file.
type captureReader interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	// nameOf is the name of an interface, and a blank, where there are several; else it is empty.
	nameOf(interfaceIndex int) string
	// hasEthernet is an error where all interfaces are of other kinds, once the file is read.
	hasEthernet() error
}

// classicReader reads pcap, of one interface.
type classicReader struct{ *pcapgo.Reader }

func (classicReader) nameOf(int) string  { return "" }
func (classicReader) hasEthernet() error { return nil }

// ngReader reads pcapng, of any number of interfaces.
type ngReader struct{ *pcapgo.NgReader }

func (r ngReader) nameOf(index int) string {
	if r.NInterfaces() < 2 {
		return ""
	}
	i, _ := r.Interface(index) // the frame's: it is there
	return cmp.Or(i.Name, "interface "+strconv.Itoa(index)) + " "
}

func (r ngReader) hasEthernet() (err error) {
	for k := range r.NInterfaces() {
		i, _ := r.Interface(k) // it is there
		if i.LinkType == layers.LinkTypeEthernet {
			return nil
		}
		err = wantEthernet(i.LinkType)
	}
	return err
}

// linkType is what a frame was captured on.
func linkType(info gopacket.CaptureInfo) layers.LinkType {
	for _, d := range info.AncillaryData { // of pcapng
		if t, is := d.(layers.LinkType); is {
			return t
		}
	}
	return layers.LinkTypeEthernet
}

// pcapngMagic is the type of the first block of a pcapng file.
var pcapngMagic = []byte{0x0a, 0x0d, 0x0d, 0x0a}

// openCapture chooses the reader by the first bytes.
func openCapture(r io.Reader) (_ captureReader, err error) {
	defer malformed(&err)
	in := bufio.NewReader(r)
	magic, err := in.Peek(4)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("not a capture: it has fewer than four bytes")
	case err != nil:
		return nil, err
	}
	if bytes.Equal(magic, pcapngMagic) {
		ng, err := pcapgo.NewNgReader(&wholeBlocks{r: in}, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			return nil, fmt.Errorf("not a capture that can be read: %w", err)
		}
		return ngReader{ng}, nil
	}
	classic, err := pcapgo.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("neither pcapng nor pcap: %w (want a file of --capture, or of tcpdump -w)", err)
	}
	if t := classic.LinkType(); t != layers.LinkTypeEthernet {
		return nil, wantEthernet(t)
	}
	classic.SetSnaplen(maxBlock) // the file's is a hint, and some write 0 or more than any frame has
	return classicReader{classic}, nil
}

func wantEthernet(t layers.LinkType) error { return fmt.Errorf("captured on %v, want Ethernet", t) }
