package auth

import (
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Send is a contact frame to be sent.
type Send struct {
	Dst transport.MAC
	// Body is complete but for the floor of a response: that is the driver's.
	Body wire.ContactBody
	// Tag is the one to send it with, if Answer is set: that of the frame that it answers. Others
	// go as the router says.
	Tag    transport.OptionalTag
	Answer bool
	// Known has an answer go to where the link has the address, not to where the frame came from.
	Known   bool
	Origin  uint32 // of a frame that it answers besides, or 0
	Counter uint64 // for SealContact
}

// ask is an open challenge to an address.
type ask struct {
	mac      transport.MAC
	nonce    [16]byte
	born     monotime.Time
	repeats  bool
	next     monotime.Time // when it is repeated
	wait     time.Duration // after that
	searches bool          // for where that address is, until it is settled
	origins  []uint32      // of frames that came from where a search goes besides; the last one first
	turns    int           // since that came
}

func (a *ask) end() monotime.Time { return a.born.Add(askLife) }

// due returns when something is to be done about a challenge.
func (a *ask) due() monotime.Time {
	if a.repeats && a.next.Before(a.end()) {
		return a.next
	}
	return a.end()
}

// goesTo has a challenge go next to where a frame came from, and to the last of these in turns.
func (a *ask) goesTo(origin uint32) {
	others := slices.DeleteFunc(slices.Clone(a.origins), func(o uint32) bool { return o == origin })
	a.origins = append([]uint32{origin}, others[:min(len(others), maxOrigins-1)]...)
	a.turns = 0
}

// turn returns where a challenge goes now: each second time to where the link has its address.
func (a *ask) turn() (origin uint32) {
	if len(a.origins) > 0 && a.turns%2 == 0 {
		origin = a.origins[a.turns/2%len(a.origins)]
	}
	a.turns++
	return origin
}

// message returns the frame that asks.
func (v *Verifier) message(now monotime.Time, a *ask) Send {
	return v.send(Send{Dst: a.mac, Origin: a.turn(),
		Body: wire.ContactBody{Flags: wire.ContactChallenge, Challenge: a.nonce, Age: v.age(now)}})
}

// age returns for how long everything that was accepted is remembered.
func (v *Verifier) age(now monotime.Time) uint64 { return uint64(max(0, now.Sub(v.since))) }

// Ask begins contact with an address, unless an incarnation there is known to be alive. For the
// broadcast address it asks all nodes, once.
func (v *Verifier) Ask(now monotime.Time, mac transport.MAC, out []Send) []Send {
	if slices.ContainsFunc(v.byMAC[mac], func(s *sender) bool { return s.state == fresh }) {
		return out
	}
	return v.challenge(now, mac, nil, out)
}

// Search asks an address where it is, also if an incarnation there is known to be alive: where a
// frame of that origin came from, and where the link has it. It is asked for askLife, or until that
// is settled.
func (v *Verifier) Search(now monotime.Time, mac transport.MAC, origin uint32, out []Send) []Send {
	a := v.ask(now, mac)
	if a == nil {
		return out
	}
	a.goesTo(origin)
	a.searches, a.repeats = true, true
	a.born, a.next, a.wait = now, now.Add(firstAsk), 2*firstAsk
	v.wakeAt(a.due())
	if v.challenges.Take(int64(now.Since())) {
		out = append(out, v.message(now, a))
	}
	return out
}

// Settle ends a search.
func (v *Verifier) Settle(mac transport.MAC) {
	if a := v.asks[mac]; a != nil && a.searches {
		a.searches, a.repeats = false, v.awaits(mac)
	}
}

// challenge sends a challenge to an address, if none is open there that will be repeated: to where
// the frame came from that it answers, if there is one.
func (v *Verifier) challenge(now monotime.Time, mac transport.MAC, answers *Frame, out []Send) []Send {
	if v.isAsked(now, mac) && v.asks[mac].repeats {
		return out
	}
	a := v.newAsk(now, mac)
	if a == nil {
		return out
	}
	m := v.message(now, a)
	if answers != nil {
		m.Tag, m.Answer = answers.Sent, true
	}
	return append(out, m)
}

// ask returns the open challenge to an address, a new one if there is none, or nil if there are too
// many.
func (v *Verifier) ask(now monotime.Time, mac transport.MAC) *ask {
	if v.isAsked(now, mac) {
		return v.asks[mac]
	}
	return v.newAsk(now, mac)
}

// newAsk opens a challenge to an address, in place of one that may be open, or returns nil if there
// are too many. The caller sends it.
func (v *Verifier) newAsk(now monotime.Time, mac transport.MAC) *ask {
	if v.asks[mac] == nil && len(v.asks) >= v.bounds.asks || !v.challenges.Take(int64(now.Since())) {
		return nil
	}
	a := &ask{mac: mac, born: now, next: now.Add(firstAsk), wait: 2 * firstAsk, repeats: mac != transport.Broadcast}
	v.cfg.Random(a.nonce[:])
	v.asks[mac] = a
	v.wakeAt(a.due())
	return a
}

func (v *Verifier) send(s Send) Send {
	v.counter++
	s.Counter = v.counter
	return s
}

// Contact handles a contact frame. What it is answered with is appended to out; Released has the
// frames that were kept for it. It is Accepted, UnknownKey, BadTag, OverBudget, or Replayed: this
// endpoint's own, or a challenge that was answered before.
func (v *Verifier) Contact(now monotime.Time, f *Frame, w *wire.Auth, out []Send) (Verdict, []Send) {
	if w.Incarnation == v.cfg.Incarnation {
		return Replayed, out
	}
	if verdict := v.checkContact(f, w); verdict != Accepted {
		return verdict, out
	}
	var body wire.ContactBody
	body.Parse(f.Payload) // checkContact has looked at the length
	if body.Has(wire.ContactResponse) {
		out = v.response(now, f, w, &body, out)
	}
	if !body.Has(wire.ContactChallenge) {
		return Accepted, out
	}
	return v.challenged(now, f, w, &body, out)
}

// challenged answers a challenge. Anybody can send again what was recorded of incarnations that are
// gone, and use up what strangers are answered from. A node that has begun just then is challenged
// itself, once its address has no open challenge. With its answer it is known, and what it asks
// again is answered from another budget, each challenge once. One that came from elsewhere than the
// link has the address may have been relayed: it is answered there, too. Else a relay whose copy is
// quicker would keep the node from being heard directly.
func (v *Verifier) challenged(
	now monotime.Time, f *Frame, w *wire.Auth, body *wire.ContactBody, out []Send,
) (Verdict, []Send) {
	s := v.senders[w.Incarnation]
	known := s != nil && s.state == fresh
	budget := &v.toUnknown
	if known {
		budget = &v.responses
		if w.Counter <= s.challenged {
			return Replayed, out
		}
	}
	if !budget.Take(int64(now.Since())) {
		if known || v.isAsked(now, f.Src) {
			return OverBudget, out
		}
		return OverBudget, v.challenge(now, f.Src, f, out)
	}
	reply := Send{Dst: f.Src, Tag: f.Sent, Answer: true,
		Body: wire.ContactBody{Flags: wire.ContactResponse, Response: body.Challenge, EchoedAge: body.Age}}
	if known {
		s.challenged = w.Counter
		if f.Elsewhere {
			again := reply
			again.Known = true
			out = append(out, v.send(again))
		}
	} else if a := v.ask(now, f.Src); a != nil {
		reply.Body.Flags |= wire.ContactChallenge
		reply.Body.Challenge, reply.Body.Age = a.nonce, v.age(now)
	}
	return Accepted, append(out, v.send(reply))
}

// isAsked reports whether a challenge to an address is open.
func (v *Verifier) isAsked(now monotime.Time, mac transport.MAC) bool {
	a := v.asks[mac]
	return a != nil && now.Before(a.end())
}

func (v *Verifier) checkContact(f *Frame, w *wire.Auth) Verdict {
	verdict := UnknownKey
	for i, k := range v.keys {
		if k.id != w.KeyID {
			continue
		}
		if openContact(v.hmacs[i], &v.scratch, f.Bytes, w, &f.Addresses) {
			f.Payload, f.key = f.Bytes[wire.AuthHeaderLen:], k
			return Accepted
		}
		verdict = BadTag
	}
	return verdict
}

// response handles the response to a challenge.
func (v *Verifier) response(now monotime.Time, f *Frame, w *wire.Auth, body *wire.ContactBody, out []Send) []Send {
	a := v.answered(now, f.Src, body.Response)
	if a == nil {
		return out
	}
	rtt := now.Sub(v.since) - time.Duration(body.EchoedAge)
	if rtt > preciseRTT && now.Sub(a.born) < impreciseAfter && v.mayRefuse(w.Incarnation, body.Floor) {
		return v.challenge(now, f.Src, f, out) // to hear a floor that is less too high
	}
	out = v.prove(now, w.Incarnation, f.Src, body.Floor, out)
	s := v.senders[w.Incarnation]
	f.Answers = s != nil && s.state == fresh && s.mac == f.Src
	if a := v.asks[f.Src]; a != nil && !a.searches && !v.awaits(f.Src) {
		a.repeats = false
	}
	return out
}

// IsFrom reports whether a contact frame that was accepted says that it has left that place.
func (f *Frame) IsFrom(at transport.Place, w *wire.Auth) bool {
	var body wire.ContactBody
	body.Parse(f.Payload)
	return body.Place != wire.PlaceSum{} && body.Place == f.key.PlaceSum(at, w.Incarnation, w.Counter)
}

// mayRefuse reports whether a floor would keep something from being delivered.
func (v *Verifier) mayRefuse(incarnation, floor uint64) bool {
	s := v.senders[incarnation]
	if s == nil {
		return floor > 0
	}
	return !s.proven && slices.ContainsFunc(s.held, func(f Frame) bool { return f.counter <= floor })
}

// answered returns the open challenge to that address, or to all, that a response is to, or nil.
// That to all counts for the first incarnation of an address alone.
func (v *Verifier) answered(now monotime.Time, mac transport.MAC, response [16]byte) *ask {
	isAnswered := func(a *ask) bool { return a != nil && a.nonce == response && now.Before(a.end()) }
	if a := v.asks[mac]; isAnswered(a) {
		return a
	}
	if a := v.asks[transport.Broadcast]; isAnswered(a) && len(v.byMAC[mac]) == 0 {
		return a
	}
	return nil
}

// prove makes an incarnation that has answered a challenge fresh.
// What it had sent before this receiver was there, with counters up to floor, stays refused.
func (v *Verifier) prove(now monotime.Time, incarnation uint64, mac transport.MAC, floor uint64, out []Send) []Send {
	s := v.senders[incarnation]
	switch {
	case s == nil:
		s = v.addProven(now, incarnation, mac)
		s.floor = floor
	case s.mac != mac || s.state == fresh:
		return out
	case s.proven:
		s.state = fresh
		v.release(s)
		return out
	default:
		v.unproven = slices.DeleteFunc(v.unproven, func(o *sender) bool { return o == s })
		v.remember(now, s)
		s.floor = floor
	}
	v.release(s)
	return v.suspendOthers(now, s, out)
}

func (v *Verifier) release(s *sender) {
	for i := range s.held {
		if s.held[i].counter > s.floor {
			v.released = append(v.released, s.held[i])
		} else {
			v.expired++
		}
	}
	v.drop(s)
}

// suspendOthers has the other incarnations of an address, where a new one has appeared, prove
// themselves again: they may be alive, in other processes, or former ones of that one. A response
// to a challenge from before does not count for it: a former one may have sent it. A search goes on
// by another one.
func (v *Verifier) suspendOthers(now monotime.Time, s *sender, out []Send) []Send {
	for _, o := range v.byMAC[s.mac] {
		if o != s && o.state == fresh && o.incarnation != v.cfg.Incarnation {
			o.state = suspended
		}
	}
	before := v.asks[s.mac]
	delete(v.asks, s.mac)
	switch {
	case before != nil && before.searches:
		if a := v.newAsk(now, s.mac); a != nil {
			a.origins, a.searches = before.origins, true
			out = append(out, v.message(now, a))
		}
	case v.awaits(s.mac):
		return v.challenge(now, s.mac, nil, out)
	}
	return out
}

// awaits reports whether an incarnation of an address is asked.
func (v *Verifier) awaits(mac transport.MAC) bool {
	isAsked := func(s *sender) bool { return s.mac == mac && s.state == asked }
	return slices.ContainsFunc(v.unproven, isAsked) || slices.ContainsFunc(v.byMAC[mac], isAsked)
}

// addProven adds an incarnation that has proved to be alive, of which no frame is known.
func (v *Verifier) addProven(now monotime.Time, incarnation uint64, mac transport.MAC) *sender {
	s := &sender{incarnation: incarnation, mac: mac}
	v.remember(now, s)
	return s
}

// remember makes a sender one that has proved to be alive.
func (v *Verifier) remember(now monotime.Time, s *sender) {
	if proven := len(v.senders) - len(v.unproven); proven >= v.bounds.senders {
		v.forgetOne(now)
	}
	s.state, s.proven, s.seen = fresh, true, v.frames
	v.senders[s.incarnation] = s
	v.byMAC[s.mac] = append(v.byMAC[s.mac], s)
}

// forgetOne forgets the incarnation that was silent for longest, a suspended one if there is any.
// Open challenges go with it, and its memory begins now: nothing from before counts for it.
func (v *Verifier) forgetOne(now monotime.Time) {
	var oldest *sender
	for _, s := range v.senders {
		if s.proven && s.incarnation != v.cfg.Incarnation && (oldest == nil || s.forgottenBefore(oldest)) {
			oldest = s
		}
	}
	v.expired += v.drop(oldest)
	delete(v.senders, oldest.incarnation)
	left := slices.DeleteFunc(v.byMAC[oldest.mac], func(s *sender) bool { return s == oldest })
	v.byMAC[oldest.mac] = left
	if len(left) == 0 {
		delete(v.byMAC, oldest.mac)
	}
	if v.last == oldest {
		v.last = nil
	}
	clear(v.asks)
	v.since = now
}

// forgetAll forgets all incarnations but this one. Its memory begins now.
func (v *Verifier) forgetAll(now monotime.Time) {
	v.DropHeld()
	clear(v.senders)
	clear(v.byMAC)
	clear(v.asks)
	v.unproven, v.awaited, v.retired, v.last, v.since = nil, nil, nil, nil, now
	v.addProven(now, v.cfg.Incarnation, v.cfg.MAC)
}

func (s *sender) forgottenBefore(o *sender) bool {
	if (s.state == fresh) != (o.state == fresh) {
		return s.state != fresh
	}
	return s.seen < o.seen || s.seen == o.seen && s.incarnation < o.incarnation
}

// addUnproven adds a sender whose frame has a valid tag.
func (v *Verifier) addUnproven(s *sender) {
	if len(v.unproven) >= v.bounds.unproven {
		v.expired += v.drop(v.unproven[0])
		delete(v.senders, v.unproven[0].incarnation)
		v.unproven = slices.Delete(v.unproven, 0, 1)
	}
	v.senders[s.incarnation] = s
	v.unproven = append(v.unproven, s)
}

// await gives a sender askLife to answer.
func (v *Verifier) await(now monotime.Time, s *sender) {
	s.state, s.until = asked, now.Add(askLife)
	if !s.awaited {
		s.awaited = true
		v.awaited = append(v.awaited, s)
	}
	v.wakeAt(s.until)
}

func (v *Verifier) wakeAt(at monotime.Time) {
	if !v.waiting || at.Before(v.wake) {
		v.wake, v.waiting = at, true
	}
}

// Deadline returns when Advance is to be called, at the latest. ok is false if nothing is awaited.
func (v *Verifier) Deadline() (at monotime.Time, ok bool) { return v.wake, v.waiting }

// Advance repeats challenges, and gives up those that nobody has answered in time.
func (v *Verifier) Advance(now monotime.Time, out []Send) []Send {
	if !v.waiting || now.Before(v.wake) {
		return out
	}
	v.waiting = false
	for _, a := range v.dueAsks(now) {
		a.next, a.wait = now.Add(a.wait), min(2*a.wait, lastAsk)
		if v.challenges.Take(int64(now.Since())) {
			out = append(out, v.message(now, a))
		}
		v.wakeAt(a.due())
	}
	v.giveUp(now)
	if soon := now.Add(advanceInterval); v.waiting && v.wake.Before(soon) {
		v.wake = soon
	}
	return out
}

// dueAsks forgets the challenges that are over, and returns those that are to be repeated, the same
// order in every run.
func (v *Verifier) dueAsks(now monotime.Time) (due []*ask) {
	for _, a := range v.asks {
		switch {
		case !now.Before(a.end()):
			delete(v.asks, a.mac)
		case !now.Before(a.due()):
			due = append(due, a)
		default:
			v.wakeAt(a.due())
		}
	}
	slices.SortFunc(due, func(a, b *ask) int { return a.mac.Compare(b.mac) })
	return due
}

// giveUp makes those silent that have not answered in time.
func (v *Verifier) giveUp(now monotime.Time) {
	left := v.awaited[:0]
	for _, s := range v.awaited {
		awaited := s.state == asked && v.senders[s.incarnation] == s // else it has answered, or is forgotten
		switch {
		case awaited && now.Before(s.until):
			v.wakeAt(s.until)
			left = append(left, s)
			continue
		case awaited:
			v.expired += v.drop(s)
			s.state, s.until = silent, now.Add(silence)
			if !s.proven {
				s.sessions = nil
			}
		}
		s.awaited = false
	}
	clear(v.awaited[len(left):])
	v.awaited = left
}
