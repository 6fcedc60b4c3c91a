package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

const (
	secretLen  = 16          // of AES-128
	nonceLen   = 12          // of a sender's key: four zeros, and the counter
	contactLen = sha256.Size // of the key for contact frames, and of that for places
)

// Key is a key of a cluster, ready for use. It is never changed.
type Key struct {
	id      uint8 // four bits, which tell a receiver which key to try
	secret  []byte
	cluster uint32
	contact []byte
	place   []byte
}

// NewKey prepares a copy of a secret for a cluster: the caller may erase its own.
func NewKey(secret []byte, cluster uint32) *Key {
	secret = slices.Clone(secret)
	k := &Key{id: derive(secret, nil, "rawlane key id", 1)[0] & 0x0f, secret: secret, cluster: cluster}
	info := binary.BigEndian.AppendUint32([]byte("rawlane contact"), cluster)
	k.contact = derive(secret, nil, string(info), contactLen)
	info = binary.BigEndian.AppendUint32([]byte("rawlane place"), cluster)
	k.place = derive(secret, nil, string(info), contactLen)
	return k
}

// sender returns the key of one sender's frames.
func (k *Key) sender(incarnation uint64, mac transport.MAC) cipher.AEAD {
	salt := binary.BigEndian.AppendUint64(nil, incarnation)
	info := append(binary.BigEndian.AppendUint32([]byte("rawlane frame"), k.cluster), mac[:]...)
	return gcm(derive(k.secret, salt, string(info), secretLen))
}

// derive is HKDF with SHA-256 (RFC 5869).
func derive(secret, salt []byte, info string, n int) []byte {
	b, err := hkdf.Key(sha256.New, secret, salt, info, n)
	if err != nil {
		panic(fmt.Sprintf("auth: derive a key of %d bytes: %v", n, err))
	}
	return b
}

func gcm(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(fmt.Sprintf("auth: AES with a key of %d bytes: %v", len(secret), err))
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(fmt.Sprintf("auth: GCM: %v", err))
	}
	return aead
}

// Addresses of a frame. They are authenticated: in place of the tag, which is computed last.
type Addresses struct{ Dst, Src transport.MAC }

func (a *Addresses) put(b []byte) {
	copy(b[0:6], a.Dst[:])
	copy(b[6:12], a.Src[:])
	clear(b[12:wire.TagLen])
}

// Scratch is memory for sealing or opening one frame at a time, the caller's own: what AES-GCM is
// given must not be on the stack, or it is allocated for each frame.
type Scratch struct {
	nonce [nonceLen]byte
	tag   [wire.TagLen]byte
	sum   [sha256.Size]byte
}

// Sealer seals the frames of one endpoint on one link. It is never changed, so that any number of
// goroutines may use it, each with its own Scratch.
type Sealer struct {
	key         *Key
	aead        cipher.AEAD
	incarnation uint64
	encrypt     bool
}

// NewSealer returns the sealer of an incarnation with that address.
func NewSealer(k *Key, incarnation uint64, mac transport.MAC, encrypt bool) *Sealer {
	return &Sealer{k, k.sender(incarnation, mac), incarnation, encrypt}
}

// Encrypts reports whether payloads are encrypted: by Encrypt, not by Seal.
func (s *Sealer) Encrypts() bool { return s.encrypt }

func (s *Sealer) begin(t *Scratch, b []byte, h *wire.Header, a *Addresses, counter uint64, size int) {
	w := wire.Auth{Encrypted: s.encrypt, KeyID: s.key.id, Incarnation: s.incarnation, Counter: counter}
	wire.PutAuth(b, h, &w, size)
	a.put(b[wire.TagOffset:])
	t.setNonce(counter)
}

func (t *Scratch) setNonce(counter uint64) {
	binary.BigEndian.PutUint32(t.nonce[0:], 0)
	binary.BigEndian.PutUint64(t.nonce[4:], counter)
}

// Seal writes the header before the payload that is in b already, behind wire.AuthHeaderLen bytes,
// and computes the tag of both. No two calls may have one counter.
func (s *Sealer) Seal(t *Scratch, b []byte, h *wire.Header, a *Addresses, counter uint64) {
	s.begin(t, b, h, a, counter, len(b)-wire.AuthHeaderLen)
	tag := s.aead.Seal(t.tag[:0], t.nonce[:], nil, b)
	copy(b[wire.TagOffset:], tag)
}

// Encrypt writes header and encrypted payload to b, which has room for both and wire.TagLen bytes
// more, and returns the frame. The payload may be in b, behind the header, or not overlap with it.
// No two calls may have one counter.
func (s *Sealer) Encrypt(t *Scratch, b, payload []byte, h *wire.Header, a *Addresses, counter uint64) []byte {
	const head = wire.AuthHeaderLen
	s.begin(t, b, h, a, counter, len(payload))
	sealed := s.aead.Seal(b[head:head], t.nonce[:], payload, b[:head])
	copy(b[wire.TagOffset:], sealed[len(payload):])
	return b[:head+len(payload)]
}

// takeTag keeps a frame's tag and has the addresses in its place, as where it was computed. It
// returns that place, for the tag to be put back.
func (t *Scratch) takeTag(b []byte, a *Addresses) (field []byte) {
	field = b[wire.TagOffset:wire.AuthHeaderLen]
	copy(t.tag[:], field)
	a.put(field)
	return field
}

// openFrame checks the tag of a sender's frame, which is header and payload, and returns its
// payload. An encrypted one goes to plain. The frame is as it was when openFrame returns.
func openFrame(aead cipher.AEAD, t *Scratch, b []byte, w *wire.Auth, a *Addresses, plain *[]byte) ([]byte, bool) {
	const head = wire.AuthHeaderLen
	field := t.takeTag(b, a)
	t.setNonce(w.Counter)
	payload := b[head:]
	var err error
	if w.Encrypted { // Open wants the tag behind the ciphertext
		*plain = append(append((*plain)[:0], payload...), t.tag[:]...)
		payload, err = aead.Open((*plain)[:0], t.nonce[:], *plain, b[:head])
	} else {
		_, err = aead.Open(nil, t.nonce[:], t.tag[:], b)
	}
	copy(field, t.tag[:])
	return payload, err == nil
}

// hmac returns what computes the tags of contact frames, for one goroutine at a time: HMAC with
// SHA-256 (RFC 2104). All nodes have that key, and an HMAC has no nonce that two of them could use:
// running copies of one virtual machine would, and give the key of a GHASH away.
func (k *Key) hmac() hash.Hash { return hmac.New(sha256.New, k.contact) }

// contactTag returns the tag of a contact frame with the addresses in its place, in the scratch
// memory: the HMAC, cut to its length.
func contactTag(m hash.Hash, t *Scratch, b []byte) []byte {
	m.Reset()
	_, _ = m.Write(b) // never fails
	return m.Sum(t.sum[:0])[:wire.TagLen]
}

// SealContact writes the header of a contact frame before its body, and computes the tag.
func (k *Key) SealContact(b []byte, h *wire.Header, a *Addresses, incarnation, counter uint64) {
	w := wire.Auth{KeyID: k.id, Incarnation: incarnation, Counter: counter}
	h.Kind = wire.Contact
	wire.PutAuth(b, h, &w, len(b)-wire.AuthHeaderLen)
	a.put(b[wire.TagOffset:])
	copy(b[wire.TagOffset:], contactTag(k.hmac(), new(Scratch), b))
}

// openContact checks the tag of a contact frame, and leaves the frame as it was. Contact frames are
// never encrypted, and all of one length: of others the tag is not computed.
func openContact(m hash.Hash, t *Scratch, b []byte, w *wire.Auth, a *Addresses) bool {
	if w.Encrypted || len(b) != wire.AuthHeaderLen+wire.ContactLen {
		return false
	}
	field := t.takeTag(b, a)
	ok := hmac.Equal(contactTag(m, t, b), t.tag[:])
	copy(field, t.tag[:])
	return ok
}

// PlaceSum returns the sum that says, in a contact frame, which place that leaves; the zero one if
// that is not known. It is another one for each frame, so that nobody finds another place that has
// it.
func (k *Key) PlaceSum(at transport.Place, incarnation, counter uint64) (sum wire.PlaceSum) {
	if at == (transport.Place{}) {
		return sum
	}
	m := hmac.New(sha256.New, k.place)
	b := binary.BigEndian.AppendUint64(at[:], incarnation)
	_, _ = m.Write(binary.BigEndian.AppendUint64(b, counter)) // never fails
	copy(sum[:], m.Sum(nil))
	return sum
}
