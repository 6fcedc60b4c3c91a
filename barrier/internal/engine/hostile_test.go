package engine

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/internal/monotime"
)

// How a script of FuzzEngine_Hostile is read: a byte selects the algorithm and what the program does besides.
// Then come messages, each after a byte: the sender in its lowest two bits, and in the others how many
// bytes follow the message's head.
const (
	programLeaves   = 1 << iota // half way
	programRejoins              // other epochs, as long as the engine is fresh
	programRequests             // the status of numbers
	programSurvives             // what it has left, to go on with the others
	programs        = 16
)

const (
	otherAlgorithm = 0x80 // in a message's label: it is of another algorithm
	otherGroup     = 0x40 // of another group
)

// hostile writes a script.
type hostile []byte

func (h hostile) from(sender int, m Message) hostile {
	if m.Incarnation == 0 && m.Kind != NoSuchGroup {
		m.Incarnation = uint32(sender) + 1
	}
	h = append(h, 0)
	head := len(h)
	h = m.Append(h)
	h[head-1] = byte(len(h)-head-headLen)<<2 | byte(sender)
	return h
}

// gone makes a report.
func gone(decided bool, why Reason, ranks ...int) Message {
	r := &agreement.Report{Echo: 2, Decided: decided, Query: true}
	for _, rank := range ranks {
		r.Gone = append(r.Gone, agreement.Gone{Rank: rank, Reason: why})
	}
	return Message{Kind: Report, Report: r}
}

func failure(generation uint32, why Reason, ranks ...int) Message {
	return Message{Kind: Fail, Generation: generation, Failure: newFailure(why, ranks...)}
}

// hostileScripts are one for each thing that a message may do to the engine. It is rank 1, and enters a
// number before each message: 0, 1, …, 4, 0, ….
func hostileScripts() (all []hostile) {
	var goldenScript hostile
	for _, g := range goldens {
		goldenScript = goldenScript.from(0, g.m).from(2, g.m)
	}
	one := func(k Kind) Message { return Message{Kind: k, Generation: 1} }
	other := one(Notify)
	other.Label = otherAlgorithm | 1
	later := other
	later.Number = 3
	stranger := one(Notify)
	stranger.Label = otherGroup
	anew := one(Notify)
	anew.Incarnation = 77
	anewAsks := gone(false, Silent, 1)
	anewAsks.Incarnation = 78
	late := one(NotYet)
	late.Own = 1<<32 - 1
	none, noneHeard := one(NoSuchGroup), one(NoSuchGroup)
	none.Answers, noneHeard.Answers, noneHeard.Heard = Report, Nack, true
	goesOn := noneHeard
	goesOn.Generation, goesOn.Answers = 0, StatusRequest
	noneVersion := none
	noneVersion.Generation = 1
	bye := Message{Kind: Bye, Done: []Done{{0, 1}, {1, 1}}}
	release := one(Notify)
	release.Label = 1
	asked := one(Nack)
	again := release
	again.Number = 1
	entered := one(StatusReply)
	entered.Entered = true
	return []hostile{
		goldenScript,
		hostile{}.from(0, release).from(0, release).from(0, asked).from(0, Message{Kind: Notify, Generation: 2, Label: 1}),
		hostile{}.from(0, stranger).from(3, release).from(0, Message{Kind: Notify, Generation: 1, Label: 9}),
		hostile{}.from(0, Message{Kind: Nack, Generation: 1, Label: 9}).from(0, Message{Kind: Nack, Generation: 1<<32 - 1}).from(0, one(Nack)),
		hostile{}.from(0, Message{Kind: Notify, Generation: 9, Label: 1}).from(0, one(Nack)).from(2, release),
		hostile{}.from(0, release).from(0, anew).from(2, gone(false, Restarted, 0)).from(0, anewAsks).from(2, release),
		hostile{}.from(0, one(NotYet)).from(2, one(NotYet)).from(0, late).from(2, gone(false, Restarted, 0)).from(2, one(Nack)),
		hostile{}.from(0, other).from(0, later).from(0, other).from(2, one(Nack)).from(0, release),
		hostile{}.from(0, failure(1, OtherAlgorithm, 7)).from(0, failure(2, OtherAlgorithm, 2)).from(0, failure(1, OtherAlgorithm, 0)),
		hostile{}.from(0, failure(9, OtherAlgorithm, 0)).from(0, failure(1, Restarted, 1)).from(2, failure(1, Silent, 0)),
		hostile{}.from(0, gone(true, Left, 2)).from(0, failure(1, Silent, 2)).from(0, one(Nack)).from(0, release),
		hostile{}.from(0, gone(false, Silent, 9)).from(0, gone(false, Silent)).from(2, gone(false, Silent, 0)).from(2, gone(true, Silent, 1)),
		hostile{}.from(0, gone(true, Silent, 2)).from(0, gone(true, Silent, 1, 2)).from(0, gone(false, Silent, 0)).from(2, release),
		hostile{}.from(0, bye).from(0, bye).from(2, gone(false, Left, 0)).from(2, one(Nack)),
		hostile{}.from(0, release).from(0, Message{Kind: Bye}).from(0, asked).from(2, gone(false, Left, 0)).from(2, again),
		hostile{}.from(2, bye).from(0, release).from(2, one(Nack)).from(0, gone(true, Left, 2)),
		hostile{}.from(2, none).from(0, noneHeard).from(0, release).from(0, noneHeard).from(2, none).from(2, noneVersion),
		hostile{}.from(2, goesOn).from(0, release).from(0, goesOn),
		hostile{}.from(0, gone(true, Silent, 2)).from(0, gone(true, Silent, 2)).from(0, gone(true, Silent, 2)).from(0, gone(true, Silent, 2)),
		hostile{}.from(0, gone(false, Silent, 2)).from(2, noneVersion).from(0, none),
		hostile{}.from(0, one(StatusRequest)).from(0, entered).from(2, one(StatusReply)).from(2, none).from(0, one(ByeAck)),
		hostile{}.from(2, none).from(2, one(StatusReply)).from(0, Message{Kind: StatusReply, Generation: 5}),
		hostile{}.from(0, asked).from(2, asked).from(0, asked).from(2, gone(false, Silent)).from(0, asked).from(2, asked),
	}
}

// Bytes are arbitrary messages of members. No panic, and few messages sent for each.
func FuzzEngine_Hostile(f *testing.F) {
	for _, h := range hostileScripts() {
		for algo := range len(fuzzAlgorithms) {
			for program := range programs {
				f.Add([]byte(h), uint8(algo+program*len(fuzzAlgorithms)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, how uint8) {
		s := newScript(t, algorithm(fuzzAlgorithms[int(how)%len(fuzzAlgorithms)]))
		p := &program{Engine: s.member(1).Engine, now: s.now, does: int(how) / len(fuzzAlgorithms)}
		half := len(b) / 2
		for step := 0; len(b) > 0; step++ {
			n := min(len(b), 1+headLen+int(b[0]>>2))
			p.leaving = p.does&programLeaves != 0 && len(b) <= half
			if out := p.step(uint8(step%5), b[:n]); len(out) > 60 {
				t.Fatalf("%d messages at once: %q", len(out), sends(out))
			}
			b = b[n:]
		}
	})
}

// program is an engine and what a program does with it.
type program struct {
	*Engine
	now     monotime.Time
	does    int
	leaving bool
	epoch   uint32
}

// step enters a number, handles one message, and looks at all that can be looked at.
func (p *program) step(number uint8, b []byte) []Send {
	var out []Send
	if !p.leaving {
		out, _ = p.Arrive(p.now, number, nil)
	}
	if p.does&programRequests != 0 {
		out = p.RequestStatus(number, out)
	}
	out = p.handle(b, out)
	if p.does&programRejoins != 0 && p.Fresh() {
		p.epoch++
		out = p.Rejoin(p.now, p.epoch, out)
	}
	if p.leaving {
		out = p.Leave(out)
	}
	if p.leaving && p.does&programSurvives != 0 {
		p.Survive()
	}
	p.now = p.now.Add(time.Duration(len(b)) * time.Millisecond)
	out = p.Advance(p.now, out)
	p.look(number)
	return p.RepeatStatus(number, out)
}

// handle handles a message, if it is one.
func (p *program) handle(b []byte, out []Send) []Send {
	var m Message
	if Parse(b[1:], &m) != nil {
		return out
	}
	if m.Label&otherGroup == 0 {
		m.Identity = p.cfg.Identity
	}
	if m.Label&otherAlgorithm == 0 {
		m.Algorithm = p.algorithm
	}
	m.Label &= otherGroup - 1
	from := int(b[0] & 3)
	if p.leaving && from != 1 && from < 3 && (m.Kind == Nack || m.Kind == Report) {
		if answers, ok := p.Farewell(p.now, from, &m, out); ok {
			return answers
		}
	}
	return p.Handle(p.now, from, &m, out)
}

// look calls what changes nothing, or little.
func (p *program) look(number uint8) {
	for _, ended := range p.Ended() {
		_ = p.Times(ended)
		_ = p.Failure(ended)
	}
	_, _ = p.State(number)
	_, _ = p.State(number + 100)
	_ = p.Times(number)
	p.Alive(int(number) % 3)
	for _, rank := range p.Doubtful(p.Missing(number, nil)) {
		p.Excuse(rank)
		_, _ = p.Inquire(rank, nil)
		_, _, _ = p.Outside(rank)
	}
	for rank := range 3 {
		_, _ = p.Departed(rank)
		_ = p.HasClosed(rank)
	}
	_ = p.MayDiffer()
	for _, presence := range p.Status(number) {
		_ = presence.String()
	}
	if f := p.Agreed(); f != nil {
		for i := range f.Ranks {
			_ = ReasonName(f.Reasons[i])
		}
	}
	p.AddStats(new(Stats))
	_, _, _ = p.Last(), p.Goodbye(int(number)%3), p.ByeAcked()
}
