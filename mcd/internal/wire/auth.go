package wire

import "encoding/binary"

// The second version of the header is that of authenticated frames. Its first 16 bytes are as in
// the first one.
const (
	AuthVersion   = 2
	AuthHeaderLen = 48 // in bytes: the payload follows
	TagOffset     = 32 // of the tag, which is in place of a checksum
	TagLen        = 16
)

// Kinds of frames by which endpoints with keys get to know each other. They exist in version 2
// alone.
const (
	Contact      Kind = 6
	Introduction Kind = 7 // for the receiver's link, from one that has asked for it
)

// FlagEncrypted says that the payload is encrypted. The key's ID is in the high four bits of the
// flags.
const FlagEncrypted = 0x02

const keyIDShift = 4

// Auth is what the header of an authenticated frame has besides a Header.
type Auth struct {
	Encrypted   bool
	KeyID       uint8  // 0 to 15
	Incarnation uint64 // of the sender
	Counter     uint64 // of the sender's frames, from 1
}

// PutAuth writes a header of version 2, but for its tag, before a payload of n bytes. b must hold
// AuthHeaderLen bytes.
func PutAuth(b []byte, h *Header, a *Auth, n int) {
	_ = b[AuthHeaderLen-1]
	h.put(b, AuthVersion, n)
	b[1] |= a.KeyID << keyIDShift
	if a.Encrypted {
		b[1] |= FlagEncrypted
	}
	binary.BigEndian.PutUint64(b[16:], a.Incarnation)
	binary.BigEndian.PutUint64(b[24:], a.Counter)
}

// ParseAuth is Parse of version 2. It does not look at the tag: h and a are claims, and h.Payload,
// if it is encrypted, a ciphertext.
func ParseAuth(b []byte, h *Header, a *Auth) Fault {
	if len(b) < AuthHeaderLen {
		if len(b) > 0 && b[0]>>4 != AuthVersion {
			return BadVersion
		}
		return TooShort
	}
	h.Kind = Kind(b[0] & 0x0f)
	if b[0]>>4 != AuthVersion {
		return BadVersion
	}
	n := AuthHeaderLen + h.get(b)
	h.HeaderOnly = false // it is a bit of the first version
	a.Encrypted = b[1]&FlagEncrypted != 0
	a.KeyID = b[1] >> keyIDShift
	a.Incarnation = binary.BigEndian.Uint64(b[16:])
	a.Counter = binary.BigEndian.Uint64(b[24:])
	if n > len(b) {
		h.Payload = b[AuthHeaderLen:]
		return BadLength
	}
	h.Payload = b[AuthHeaderLen:n]
	if h.Kind < Unicast || h.Kind > Introduction {
		return BadKind
	}
	return OK
}

// ContactLen is the length of a contact frame's payload in bytes.
const ContactLen = 64

// PlaceSum is a sum over the place that a contact frame leaves, as its sender has it, under a key
// of the cluster. The zero one says nothing.
type PlaceSum [7]byte

// Flags of a ContactBody.
const (
	ContactChallenge = 0x01
	ContactResponse  = 0x02
)

// ContactBody is the payload of a contact frame: a challenge to all who receive it, a response to
// a challenge of the receiver, or both.
type ContactBody struct {
	Flags     uint8
	Place     PlaceSum // of a response
	Challenge [16]byte
	Age       uint64 // of a challenge: for how many ns its sender has remembered what it received
	Response  [16]byte
	EchoedAge uint64 // of a response: that of the challenge
	Floor     uint64 // of a response: all that its sender sent before that time has counters up to this
}

// Put writes c to the beginning of b, which must hold ContactLen bytes.
func (c *ContactBody) Put(b []byte) {
	b[0] = c.Flags
	copy(b[1:8], c.Place[:])
	copy(b[8:24], c.Challenge[:])
	binary.BigEndian.PutUint64(b[24:], c.Age)
	copy(b[32:48], c.Response[:])
	binary.BigEndian.PutUint64(b[48:], c.EchoedAge)
	binary.BigEndian.PutUint64(b[56:], c.Floor)
}

// Parse reads a payload. It returns false if it is too short.
func (c *ContactBody) Parse(b []byte) bool {
	if len(b) < ContactLen {
		return false
	}
	c.Flags = b[0]
	c.Place = PlaceSum(b[1:8])
	copy(c.Challenge[:], b[8:24])
	c.Age = binary.BigEndian.Uint64(b[24:])
	copy(c.Response[:], b[32:48])
	c.EchoedAge = binary.BigEndian.Uint64(b[48:])
	c.Floor = binary.BigEndian.Uint64(b[56:])
	return true
}

// Has reports whether all of these flags are set.
func (c *ContactBody) Has(flags uint8) bool { return c.Flags&flags == flags }
