package discovery

import (
	"encoding/binary"
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
	flagPlace   = 0x02
	flagFailed  = 0x04

	// From the end of the name on, with flagPlace.
	offHost   = 0
	offCores  = 8
	offUsable = 16
	offPath   = 18
	placeLen  = 20
)

// Place is where a node runs; mcd.Place says what its fields are. The zero Place is unknown: it is
// that of a node which does not say.
type Place struct {
	Host   uint64
	Cores  uint64
	Usable uint16
	Path   transport.LocalPath
}

// Announcement is what a node broadcasts of itself. Its number is in the message's header.
type Announcement struct {
	Seeking bool   // it has not heard all others yet, and wants answers
	Failed  bool   // it has found a fault, and is of no cluster
	Size    uint16 // how many nodes it expects
	NIC     uint8  // the network that this was sent over
	MACs    []transport.MAC
	Name    string // of its host, printable; may be empty
	Place   Place  // may be unknown
}

// ErrMalformed: not an announcement of this version.
var ErrMalformed = errors.New("malformed announcement")

// Append appends a's bytes to b. A name that is too long is cut between two characters.
func (a *Announcement) Append(b []byte) []byte {
	flags := byte(0)
	if a.Seeking {
		flags = flagSeeking
	}
	if a.Failed {
		flags |= flagFailed
	}
	if a.Place.Host != 0 {
		flags |= flagPlace
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
	b = append(b, name...)
	if a.Place.Host == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, a.Place.Host)
	b = binary.BigEndian.AppendUint64(b, a.Place.Cores)
	b = binary.BigEndian.AppendUint16(b, a.Place.Usable)
	return append(b, byte(a.Place.Path), 0)
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
		Failed:  b[offFlags]&flagFailed != 0,
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
	if b[offFlags]&flagPlace == 0 {
		return a, nil
	}
	place := b[end+nameLen:]
	if len(place) < placeLen || binary.BigEndian.Uint64(place[offHost:]) == 0 {
		return Announcement{}, ErrMalformed
	}
	a.Place = Place{
		Host:   binary.BigEndian.Uint64(place[offHost:]),
		Cores:  binary.BigEndian.Uint64(place[offCores:]),
		Usable: binary.BigEndian.Uint16(place[offUsable:]),
		Path:   transport.LocalPath(place[offPath]),
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
