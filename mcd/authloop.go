package mcd

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// authenticator is what the links of an endpoint with keys share. An endpoint without has none.
type authenticator struct {
	plain    [pollBatch][]byte // payloads that were decrypted; belongs to the holder of the poll lock
	otherKey atomic.Uint64     // last sender of a frame that no key here opens

	txContacts, rxContacts atomic.Uint64

	first chan contactRequest // addresses to which a first message goes
	kick  chan struct{}       // wakes the authLoop before its time
	next  atomic.Int64        // for when it is armed, in ns

	looking           atomic.Bool // a goroutine looks at the key file
	mu                sync.Mutex  // guards what follows; taken outside the poll lock
	file              keyFile
	reloads, failures atomic.Uint64 // changed under mu
}

// contactRequest is an address with which contact is to begin.
type contactRequest struct {
	nic int
	mac transport.MAC
}

// firstContacts is how many first messages go out at once before one has to be asked for by its
// receiver.
const firstContacts = 64

func newAuthenticator(file keyFile) *authenticator {
	return &authenticator{file: file, first: make(chan contactRequest, firstContacts), kick: make(chan struct{}, 1)}
}

// meet begins contact with a neighbour, before the first message to it.
func (a *authenticator) meet(nic int, n *neighbour) {
	select {
	case a.first <- contactRequest{nic, n.mac}:
		n.met.Store(true)
		a.wakeLoop()
	default: // the receiver begins
	}
}

func (a *authenticator) wakeLoop() {
	select {
	case a.kick <- struct{}{}:
	default: // it is awake
	}
}

// expect has the authLoop wake up for a verifier's deadline.
func (a *authenticator) expect(v *auth.Verifier) {
	if at, ok := v.Deadline(); ok && int64(at.Since()) < a.next.Load() {
		a.wakeLoop()
	}
}

const (
	idleLoop = time.Hour // between looks if nothing is to be done
	// roamInterval is how often the authLoop looks whether a link has moved. It says so then, and
	// again at the next looks, in case that it is not heard.
	roamInterval  = 2 * time.Second
	announcements = 3
)

// authLoop is the goroutine that begins contact, repeats challenges, has the key file looked at,
// and tells other nodes that links have moved. It ends when Close closes e.ended.
func (e *Endpoint) authLoop() {
	defer e.running.Done()
	a := e.auth
	timer := time.NewTimer(idleLoop)
	defer timer.Stop()
	chores := e.chores()
	for begin := true; e.advanceContacts(timer, begin, earliest(chores)); begin = false {
		select {
		case <-a.kick:
		case <-timer.C:
		case <-e.ended:
			return
		}
		now := clock.Now()
		for i := range chores { // strangers' frames wake the loop, too
			if c := &chores[i]; !now.Before(c.at) {
				c.do()
				c.at = now.Add(c.every)
			}
		}
	}
}

// chore is something that the authLoop does now and then.
type chore struct {
	do    func()
	every time.Duration
	at    monotime.Time
}

func (e *Endpoint) chores() (all []chore) {
	now := clock.Now()
	if e.auth.file.path != "" {
		all = append(all, chore{e.lookAtKeyFile, keyFileInterval, now.Add(keyFileInterval)})
	}
	for i := range e.nics {
		if l := e.nics[i].auth; l.roamer != nil {
			all = append(all, chore{l.announce, roamInterval, now}) // at once: where it is now
		}
	}
	return all
}

// earliest returns when the first of them is due.
func earliest(chores []chore) monotime.Time {
	at := clock.Now().Add(idleLoop)
	for i := range chores {
		if c := &chores[i]; c.at.Before(at) {
			at = c.at
		}
	}
	return at
}

// advanceContacts does what is due, and sets the timer, to look at the latest. When the endpoint
// begins it asks all nodes. It returns false if the endpoint closes.
func (e *Endpoint) advanceContacts(timer *time.Timer, begin bool, look monotime.Time) bool {
	if !e.claimPoll() {
		return false
	}
	defer e.unlockPoll()
	a, now, next := e.auth, clock.Now(), look
	a.next.Store(0) // it is awake
	for n := len(a.first); n > 0; n-- {
		r := <-a.first
		e.nics[r.nic].auth.ask(now, r.mac)
	}
	for i := range e.nics {
		l := e.nics[i].auth
		if begin {
			l.ask(now, transport.Broadcast)
		}
		l.out = l.verifier.Advance(now, l.out[:0])
		l.transmit(now, nil)
		l.countExpired()
		if at, ok := l.verifier.Deadline(); ok && at.Before(next) {
			next = at
		}
	}
	a.next.Store(int64(next.Since()))
	timer.Reset(next.Sub(now))
	return true
}

// SetKeys replaces the keys of an endpoint that was opened with keys, while it sends and receives.
// The first key seals what is sent from now on. Receive functions must not call it. Errors:
// keyring.ErrFormat, ErrNoKeys, ErrClosed.
func (e *Endpoint) SetKeys(ring *keyring.Ring) error {
	if e.auth == nil {
		return ErrNoKeys
	}
	if err := ring.Validate(); err != nil {
		return err
	}
	if !e.claimPoll() {
		return e.err()
	}
	defer e.unlockPoll()
	now := clock.Now()
	for i := range e.nics {
		l := e.nics[i].auth
		l.setKeys(now, ring)
		l.countExpired()
	}
	return nil
}
