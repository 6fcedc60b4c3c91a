package auth

import (
	"cmp"
	"container/list"
	"crypto/cipher"
	"crypto/sha256"
	"hash"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Verdict on a frame.
type Verdict uint8

// The verdicts. Of all but the first two the frame is to be dropped.
const (
	Accepted   Verdict = iota // to be delivered
	Unproven                  // of Verify: Handle decides
	Held                      // kept until its sender has answered
	UnknownKey                // sealed with a key that is not valid here
	BadTag                    // forged, or changed on the way
	Replayed                  // came before, or too late
	Unanswered                // its sender was asked, and does not answer; or there is no room to keep it
	OverBudget                // of an unknown sender, while too many of those send
)

// state of an incarnation: see the package's comment.
type state uint8

const (
	asked state = iota
	silent
	fresh
	suspended
)

// sender is an incarnation that has sent a frame with a valid tag, or has answered a challenge.
type sender struct {
	incarnation uint64
	mac         transport.MAC
	state       state
	proven      bool          // it was fresh once
	floor       uint64        // counters up to this were used before this receiver was there
	until       monotime.Time // asked: the end of askLife. silent: the end of the silence
	seen        uint64        // number of the frame, among all, that was its last
	challenged  uint64        // counter of its last challenge that was answered while it was fresh
	awaited     bool          // it is among Verifier.awaited
	sessions    []*session    // one for each of the cluster's keys that it has used
	held        []Frame
	place       *list.Element // in Verifier.holders
}

// session is what a sender sealed with one of the cluster's keys.
type session struct {
	key    *Key
	aead   cipher.AEAD
	window window
}

// Frame is a received frame of version 2.
type Frame struct {
	Addresses
	Sent     transport.OptionalTag // the VLAN tag, as its header says
	Received transport.OptionalTag // and as it arrived
	Bytes    []byte                // header and payload, without padding
	Payload  []byte                // of an accepted frame, decrypted
	Answers  bool                  // of a contact frame: its sender has answered what it was asked just now
	counter  uint64                // of a held frame
	key      *Key                  // of an accepted frame: what it is sealed with
	// Elsewhere is set if it did not come from where the link has the station, if anywhere.
	Elsewhere bool
}

// Config of a verifier.
type Config struct {
	MAC         transport.MAC // of the link
	Incarnation uint64        // of its own frames
	Random      func([]byte)  // fills memory with random bytes that nobody can guess
	Since       monotime.Time // when the endpoint began to open
}

// Verifier decides which frames of one link to believe. It belongs to one goroutine at a time.
type Verifier struct {
	cfg     Config
	bounds  bounds
	since   monotime.Time // what was accepted since then is remembered
	keys    []*Key
	hmacs   []hash.Hash         // of the keys, in their order
	retired [][sha256.Size]byte // hashes of the secrets that were valid since then, and are not
	senders map[uint64]*sender  // by incarnation
	byMAC   map[transport.MAC][]*sender
	last    *sender // of the last accepted frame

	unproven  []*sender // oldest first
	holders   list.List // of *sender, unproven, of which something is kept: whose first frame came first
	awaited   []*sender // those that are asked, and some that were since the last Advance
	heldBytes int
	released  []Frame
	expired   int
	frames    uint64

	asks    map[transport.MAC]*ask
	counter uint64 // of contact frames
	wake    monotime.Time
	waiting bool // wake is set

	derivations, challenges tokenbucket.Bucket
	responses, toUnknown    tokenbucket.Bucket // responses to those that are known to be alive, and to others

	scratch Scratch
}

// New returns a verifier that knows no incarnation but its own: its frames come back where a
// network has a loop, and are told by their sender.
func New(cfg Config) *Verifier {
	v := &Verifier{
		cfg: cfg, bounds: newBounds(), since: cfg.Since,
		senders: map[uint64]*sender{}, byMAC: map[transport.MAC][]*sender{}, asks: map[transport.MAC]*ask{},
		derivations: tokenbucket.New(budgetRate, derivationBurst), challenges: tokenbucket.New(budgetRate, askBurst),
		responses: tokenbucket.New(budgetRate, askBurst), toUnknown: tokenbucket.New(budgetRate, askBurst),
	}
	v.addProven(cfg.Since, cfg.Incarnation, cfg.MAC)
	return v
}

// SetKeys replaces the keys that are valid. What is kept of senders that have not
// answered, and no key opens now, is dropped. Senders stay known, unless one of the keys was valid
// before and then not: which counters were used with it is forgotten, and so its old frames would
// be new. All senders are unknown then, and what they have sent before now is refused.
func (v *Verifier) SetKeys(now monotime.Time, keys []*Key) {
	old := v.keys
	v.keys, v.hmacs = keys, nil
	for _, k := range keys {
		v.hmacs = append(v.hmacs, k.hmac())
	}
	for _, k := range old {
		if v.key(k.secret) == nil {
			v.retired = append(v.retired, sha256.Sum256(k.secret))
		}
	}
	if len(v.retired) > v.bounds.retired || slices.ContainsFunc(keys, v.wasRetired) {
		v.forgetAll(now)
		return
	}
	for _, s := range v.senders {
		s.sessions = slices.DeleteFunc(s.sessions, func(x *session) bool {
			k := v.key(x.key.secret)
			x.key = cmp.Or(k, x.key)
			return k == nil
		})
		v.dropRemoved(s)
	}
}

// dropRemoved forgets what was kept of a sender and is sealed with a key that is not valid now.
func (v *Verifier) dropRemoved(s *sender) {
	s.held = slices.DeleteFunc(s.held, func(f Frame) bool {
		removed := v.key(f.key.secret) == nil
		if removed {
			v.heldBytes -= len(f.Payload)
			v.expired++
		}
		return removed
	})
	if len(s.held) == 0 {
		v.drop(s)
	}
}

func (v *Verifier) wasRetired(k *Key) bool {
	return slices.Contains(v.retired, sha256.Sum256(k.secret))
}

func (v *Verifier) key(secret []byte) *Key {
	for _, k := range v.keys {
		if string(k.secret) == string(secret) {
			return k
		}
	}
	return nil
}

// Verify decides on a frame of a sender that is known to be alive, and sets f.Payload, which for an
// encrypted frame is in plain. Of others it says Unproven.
func (v *Verifier) Verify(f *Frame, w *wire.Auth, plain *[]byte) Verdict {
	s := v.last
	if s == nil || s.incarnation != w.Incarnation {
		s = v.senders[w.Incarnation]
	}
	if s == nil || s.state != fresh {
		return Unproven
	}
	verdict := v.check(s, f, w, plain)
	if verdict == Accepted {
		v.last = s
		v.frames++
		s.seen = v.frames
	}
	return verdict
}

// Handle decides on a frame of which Verify said that its sender has proved nothing. Challenges are
// appended to out.
func (v *Verifier) Handle(now monotime.Time, f *Frame, w *wire.Auth, plain *[]byte, out []Send) (Verdict, []Send) {
	s := v.senders[w.Incarnation]
	switch {
	case s != nil && s.state == fresh:
		return v.check(s, f, w, plain), out
	case s != nil && s.state == silent && now.Before(s.until):
		return Unanswered, out
	case !v.hasKey(w.KeyID):
		return UnknownKey, out
	}
	if s == nil || len(s.sessions) == 0 {
		if !v.derivations.Take(int64(now.Since())) {
			return OverBudget, out
		}
	}
	added := s == nil
	if added {
		s = &sender{incarnation: w.Incarnation, mac: f.Src}
	}
	if verdict := v.check(s, f, w, plain); verdict != Accepted {
		return verdict, out // and s, if it is new, is forgotten
	}
	if added {
		v.addUnproven(s)
	}
	if s.state != asked || added {
		v.await(now, s)
	}
	out = v.challenge(now, s.mac, f, out) // unless it is asked, as is the rule
	return v.hold(s, f, w.Counter), out
}

// check opens a frame by the sender's sessions, and looks at its counter. An incarnation has one
// address, which is in its keys.
func (v *Verifier) check(s *sender, f *Frame, w *wire.Auth, plain *[]byte) Verdict {
	verdict := UnknownKey
	for _, k := range v.keys { // two may have one ID
		if k.id != w.KeyID {
			continue
		}
		x := s.session(k)
		payload, ok := openFrame(x.aead, &v.scratch, f.Bytes, w, &f.Addresses, plain)
		if !ok {
			verdict = BadTag
			continue
		}
		if w.Counter <= s.floor || !x.window.accept(w.Counter) {
			return Replayed
		}
		f.Payload, f.key = payload, k
		return Accepted
	}
	return verdict
}

// session returns the sender's session of a key. Its own key is derived now, if need be.
func (s *sender) session(k *Key) *session {
	for _, x := range s.sessions {
		if x.key == k {
			return x
		}
	}
	x := &session{key: k, aead: k.sender(s.incarnation, s.mac)}
	s.sessions = append(s.sessions, x)
	return x
}

func (v *Verifier) hasKey(id uint8) bool {
	for _, k := range v.keys {
		if k.id == id {
			return true
		}
	}
	return false
}

// hold keeps a frame until its sender has answered.
func (v *Verifier) hold(s *sender, f *Frame, counter uint64) Verdict {
	if len(s.held) >= v.bounds.held || !v.makeRoom(s, len(f.Payload)) {
		return Unanswered
	}
	if s.place == nil && !s.proven {
		s.place = v.holders.PushBack(s)
	}
	kept := *f
	kept.counter = counter
	// A held frame is kept as it is after opening: header, and payload in plain.
	kept.Bytes = slices.Concat(f.Bytes[:wire.AuthHeaderLen], f.Payload)
	kept.Payload = kept.Bytes[wire.AuthHeaderLen:]
	s.held = append(s.held, kept)
	v.heldBytes += len(f.Payload)
	return Held
}

// makeRoom makes room for so many bytes of a sender, and reports whether there is. What is kept of
// the unproven sender that was first has to go, and not the newcomer: frames that were recorded of
// incarnations that are gone, and are sent again, would take all room for as long as they come.
// So what is kept of one that is alive stays until maxHeldBytes have come after it. One that has
// proved to be alive, and is asked again, keeps what it has: what it has sent is accepted once, so
// that hardly anything is left of it that somebody could send again.
func (v *Verifier) makeRoom(s *sender, n int) bool {
	for v.heldBytes+n > v.bounds.heldBytes {
		first := v.holders.Front()
		if first == nil || first.Value == s {
			return false
		}
		v.expired += v.drop(first.Value.(*sender))
	}
	return true
}

// drop forgets what was kept of a sender, and returns how many frames.
func (v *Verifier) drop(s *sender) int {
	n := len(s.held)
	for i := range s.held {
		v.heldBytes -= len(s.held[i].Payload)
	}
	s.held = nil
	if s.place != nil {
		v.holders.Remove(s.place)
		s.place = nil
	}
	return n
}

// DropHeld forgets all that is kept: it has expired.
func (v *Verifier) DropHeld() {
	for _, s := range v.senders {
		v.expired += v.drop(s)
	}
}

// Released returns the frames that were kept of senders that have answered since the last call, in
// their order. They have been verified.
func (v *Verifier) Released() []Frame {
	r := v.released
	v.released = nil
	return r
}

// Expired returns how many kept frames have been dropped since the last call.
func (v *Verifier) Expired() int {
	n := v.expired
	v.expired = 0
	return n
}
