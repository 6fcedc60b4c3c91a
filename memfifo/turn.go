package memfifo

import "slices"

// Who gets the room in the lane of requests, if there is little of it? What came first:
//
//	posted:  parcel 1  parcel 2 |          | parcel 3    a call that came here is behind two parcels, and before the third
//	         in frames          | the call | waits
//
// A caller's turn is how many parcels were posted when it came. It may go when these are in frames; until then it is behind them. From then
// on those posted later wait for it. A long operation that has used up the room comes anew for its next part. So each waits for what
// came before it, and for no more.

// turns are those of one peer; guarded by Domain.mu.
type turns struct {
	posted  uint64   // parcels so far
	callers []uint64 // the turns of those who wait
}

func (t *turns) join(turn uint64) { t.callers = append(t.callers, turn) }

func (t *turns) quit(turn uint64) {
	i := slices.Index(t.callers, turn)
	t.callers = slices.Delete(t.callers, i, i+1)
}

// framed is how many parcels are in frames, or have failed.
func (p *peer) framed() uint64 { return p.turns.posted - uint64(len(p.parcels)) }

// isTurn reports whether all parcels are in frames that a caller with this turn is behind.
func (p *peer) isTurn(turn uint64) bool { return p.framed() >= turn }

// callersTurn reports whether it is the turn of somebody who waits.
func (p *peer) callersTurn() bool { return slices.ContainsFunc(p.turns.callers, p.isTurn) }
