package discovery

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"
)

// Version of the announcement's layout.
const Version = 1

// Limits of an announcement.
const (
	MaxNICs = 16 // as many cards as a server has slots for
	MaxName = 63 // a DNS label
)

// Layout: docs/wire-format.md, Discovery.
const (
	offVersion = 0
	offFlags   = 1
	offNICs    = 2
	offNIC     = 3
	offSize    = 4
	offNameLen = 6
	offMACs    = 7
	macLen     = 6

	flagSeeking = 0x01
)

// Announcement is what a node broadcasts of itself. Its number is in the message's header.
type Announcement struct {
	Seeking bool   // it has not heard all others yet, and wants answers
	Size    uint16 // how many nodes it expects
	NIC     uint8  // the network that this was sent over
	MACs    []transport.MAC
	Name    string // of its host, printable; may be empty
}

// ErrMalformed: not an announcement of this version.
var ErrMalformed = errors.New("malformed announcement")

// Append appends a's bytes to b. A name that is too long is cut between two characters.
func (a *Announcement) Append(b []byte) []byte {
	flags := byte(0)
	if a.Seeking {
		flags = flagSeeking
	}
	name := a.Name
	if len(name) > MaxName {
		end := MaxName
		for end > 0 && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end]
	}
	b = append(b, Version, flags, byte(len(a.MACs)), a.NIC, byte(a.Size>>8), byte(a.Size), byte(len(name)))
	for _, m := range a.MACs {
		b = append(b, m[:]...)
	}
	return append(b, name...)
}

// Parse reads an announcement from any bytes.
func Parse(b []byte) (a Announcement, err error) {
	if len(b) < offMACs || b[offVersion] != Version {
		return a, ErrMalformed
	}
	nics, nameLen := int(b[offNICs]), int(b[offNameLen])
	end := offMACs + nics*macLen
	if nics == 0 || nics > MaxNICs || int(b[offNIC]) >= nics || nameLen > MaxName || len(b) < end+nameLen {
		return a, ErrMalformed
	}
	a = Announcement{
		Seeking: b[offFlags]&flagSeeking != 0,
		Size:    uint16(b[offSize])<<8 | uint16(b[offSize+1]),
		NIC:     b[offNIC],
		Name:    printable(string(b[end : end+nameLen])),
	}
	for i := range nics {
		m := transport.MAC(b[offMACs+i*macLen:])
		if m.IsMulticast() || m.IsZero() {
			return Announcement{}, ErrMalformed
		}
		a.MACs = append(a.MACs, m)
	}
	return a, nil
}

// printable replaces control characters: names come from the wire and appear in error messages.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}
