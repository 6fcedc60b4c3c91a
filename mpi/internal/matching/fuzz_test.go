package matching_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// script is bytes of a fuzzer, taken one by one.
type script struct{ b []byte }

func (s *script) next() byte {
	if len(s.b) == 0 {
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

// record is one of any kind, whose fields may make sense.
func (s *script) record() matching.Record {
	r := matching.Record{Kind: matching.Kind(s.next() % 11)}
	id := uint64(1+s.next()%2)<<32 | uint64(s.next()%2)
	envelope := matching.Envelope{Context: uint32(s.next() % 2), Tag: int32(s.next() % 3), Size: int(s.next()) % 128}
	switch r.Kind {
	case matching.Credit:
		r.Headers, r.Bytes, r.Seen = int(s.next()%8)-1, int(s.next()%8)-1, uint32(s.next()%4)
	case matching.Matched, matching.Withdraw, matching.Withdrawn:
		r.ID = id
	case matching.Eager, matching.Request:
		r.Envelope, r.More = envelope, s.next()%2 > 0
		if r.Kind == matching.Request || s.next()%4 == 0 {
			r.ID = id
		}
	case matching.Offer:
		r.Envelope, r.ID, r.Seen = envelope, id, uint32(s.next()%8)
	case matching.Done:
		r.Envelope, r.ID = envelope, id
	}
	return r
}

func (s *script) pattern() matching.Pattern {
	return matching.Pattern{
		Source: matching.Rank(s.next()%3) - 1, Context: uint32(s.next() % 2), Tag: int32(s.next()%4) - 1,
	}
}

// FuzzHandle: whatever another process says, and this one does meanwhile, the engine completes each
// request once at most, keeps no more than its bounds, and says what it has seen in order.
func FuzzHandle(f *testing.F) {
	for seed := range uint64(300) {
		random := prng.Source(seed)
		b := make([]byte, 20+random.Below(400))
		for k := range b {
			if b[k] = byte(random.Next()); random.Hits(.5) {
				b[k] %= 8
			}
		}
		f.Add(b)
	}
	f.Fuzz(runScript)
}

func runScript(t *testing.T, b []byte) {
	s := &script{b}
	const headers, bytes = 3, 300
	e := matching.New(matching.Config{Size: 2, EagerLimit: 100, EagerBytes: bytes, Headers: headers, OfferFrom: 50})
	over := map[any]bool{}
	finish := func(v any) {
		if over[v] {
			t.Fatalf("a request is complete twice")
		}
		over[v] = true
	}
	var receives []*matching.Receive
	var sends []*matching.Send
	kept, size := map[*matching.Message]bool{}, 0
	for len(s.b) > 0 {
		var out []matching.Output
		var err error
		switch s.next() % 8 {
		case 0:
			r := &matching.Receive{Pattern: s.pattern(), Capacity: int(s.next())}
			receives = append(receives, r)
			out = e.Post(r, nil)
		case 1:
			how := s.next()
			to := &matching.Send{To: matching.Rank(s.next() % 2), Synchronous: how%2 > 0, Direct: how%4 > 1}
			to.Envelope = matching.Envelope{Context: uint32(s.next() % 2), Tag: int32(s.next() % 3), Size: int(s.next())}
			sends = append(sends, to)
			out = e.Send(to, nil)
		case 2:
			if len(receives) > 0 {
				out = e.Cancel(receives[int(s.next())%len(receives)], nil)
			}
		case 3:
			p := s.pattern()
			if m := e.Take(&p); m != nil {
				out = e.Receive(m, new(matching.Receive), nil)
			}
		case 4:
			switch p := s.pattern(); s.next() % 16 {
			case 0:
				if s.next()%8 == 0 {
					out = e.Down(1, nil)
				}
			case 1, 2, 3:
				out = e.Await(&p, nil)
				e.Probe(&p)
				e.Unawait(&p)
			case 4, 5, 6:
				if len(sends) > 0 {
					if v := sends[int(s.next())%len(sends)]; e.CancelSend(v) {
						finish(v)
					}
				}
			case 7, 8, 9:
				id := uint64(s.next()%4)<<32 | uint64(s.next()%4)
				e.Offered(id)
				e.Requested(id)
				out = e.Fetched(1, id, nil)
			case 10, 11:
				context := uint32(s.next() % 8) // most are no communicator's
				out = e.Revoke(context, nil)
				for m := range kept {
					if m.Context == context {
						delete(kept, m)
						size -= m.Size
					}
				}
			case 13:
				out, _ = e.Age(nil)
			case 12:
				if len(sends) > 0 {
					if v := sends[int(s.next())%len(sends)]; !over[v] {
						e.HasOffer(v.To, &v.Envelope)
						e.Disown(v, nil)
					}
				}
			}
		default:
			r := s.record()
			var again matching.Record
			if data, parseErr := wire.Parse(&again, append(wire.Append(nil, &r), make([]byte, eagerSize(&r))...)); parseErr == nil {
				out, err = e.Handle(1, &again, data, nil)
			}
			if err != nil && !errors.Is(err, matching.ErrProtocol) {
				t.Fatal(err)
			}
		}
		for _, o := range out {
			switch o.Do {
			case matching.Deliver, matching.CompleteReceive, matching.CancelReceive, matching.FailReceive, matching.Fetch:
				finish(o.Receive)
				if kept[o.Message] {
					delete(kept, o.Message)
					size -= o.Message.Size
					e.Release(o.Message)
				}
			case matching.CompleteSend, matching.DropSend, matching.FailSend:
				finish(o.Send)
			case matching.Keep:
				if o.Message.Data != nil {
					kept[o.Message] = true
					size += o.Message.Size
				}
			}
		}
		if size > bytes {
			t.Fatalf("%d bytes are kept, want %d at most", size, bytes)
		}
	}
}

func eagerSize(r *matching.Record) int {
	if r.Kind != matching.Eager {
		return 0
	}
	return r.Size
}
