package mcd

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// serve does what a link wants whose stations may move: it asks where they are, and seals what it
// tells others of them. The caller holds the poll lock.
func (l *authLink) serve() {
	requests := l.roamer.Requests()
	if len(requests) == 0 {
		return
	}
	now := clock.Now()
	var introductions []transport.Frame
	for i := range requests {
		r := &requests[i]
		if r.Introduction != nil {
			introductions = append(introductions, l.introduction(r))
			continue
		}
		l.out = l.verifier.Search(now, r.To, r.Origin, l.out[:0])
		l.transmit(now, nil)
	}
	if len(introductions) > 0 {
		l.checkpoint(now)
		n, _ := l.e.nics[l.nic].link.Send(introductions) // what cannot go now is lost: they are repeated
		l.e.auth.txContacts.Add(uint64(n))
	}
}

// introduction seals what a link tells another one of its stations.
func (l *authLink) introduction(r *transport.Request) transport.Frame {
	e, tag := l.e, l.e.router.Route(r.To)
	f := e.frame(l.nic, r.To, tag)
	f.Payload = make([]byte, wire.AuthHeaderLen+len(r.Introduction), wire.AuthHeaderLen+len(r.Introduction)+wire.TagLen)
	copy(f.Payload[wire.AuthHeaderLen:], r.Introduction)
	h := wire.Header{Kind: wire.Introduction, Tagged: tag.Tagged, TCI: tag.TCI(), From: uint16(e.cfg.Node),
		To: wire.AllNodes, Cluster: uint32(e.cfg.Cluster)}
	l.seal(l.sealer.Load(), new(auth.Scratch), &f, &h)
	return f
}

// receiveIntroduction hands an introduction that is authentic to the link. One whose stations do
// not move has asked nobody for it. The caller holds the poll lock.
func (l *authLink) receiveIntroduction() {
	if l.roamer == nil {
		l.e.dropped[dropKind].Add(1)
		return
	}
	l.e.auth.rxContacts.Add(1)
	l.roamer.Introduced(l.e.header.Payload)
}
