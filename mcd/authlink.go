package mcd

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// authLink authenticates the frames of one link. Package auth decides; this is its driver.
type authLink struct {
	e           *Endpoint
	nic         int
	incarnation uint64
	sealer      atomic.Pointer[auth.Sealer]
	counter     atomic.Uint64 // of the last frame that was sealed

	// What follows belongs to the holder of the poll lock.
	verifier *auth.Verifier
	keys     []*auth.Key // the first one seals contact frames
	frame    auth.Frame
	out      []auth.Send
	scratch  auth.Scratch
	contact  [1]transport.Frame
	memory   []byte // of the contact frame that is sent
}

func newAuthLink(e *Endpoint, nic int, ring *keyring.Ring) *authLink {
	l := &authLink{e: e, nic: nic, incarnation: randomIncarnation()}
	l.keys = authKeys(ring, e.cfg.Cluster, nil)
	l.verifier = auth.New(auth.Config{MAC: e.nics[nic].mac, Incarnation: l.incarnation, Random: fillRandom, Keys: l.keys})
	l.setSealer(ring)
	l.memory = make([]byte, wire.AuthHeaderLen+wire.ContactLen)
	return l
}

func fillRandom(b []byte) { _, _ = rand.Read(b) } // never fails

func randomIncarnation() uint64 {
	var b [8]byte
	fillRandom(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// authKeys prepares the keys of a ring. Those that are among old are kept.
func authKeys(ring *keyring.Ring, cluster ClusterID, old []*auth.Key) (keys []*auth.Key) {
	for i := range ring.Keys {
		k := auth.NewKey(ring.Keys[i][:], uint32(cluster))
		keys = append(keys, k)
	}
	return keys
}

func (l *authLink) setSealer(ring *keyring.Ring) {
	l.sealer.Store(auth.NewSealer(l.keys[0], l.incarnation, l.e.nics[l.nic].mac, ring.Encrypt))
}

// setKeys replaces the keys. The caller holds the poll lock.
func (l *authLink) setKeys(ring *keyring.Ring) {
	l.keys = authKeys(ring, l.e.cfg.Cluster, l.keys)
	l.verifier.SetKeys(l.keys)
	l.setSealer(ring)
}
