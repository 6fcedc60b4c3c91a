package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// alone is one engine under test; the test plays all other members. Barrier numbers are 0 by
// default.
type alone struct {
	*Engine
	t   testing.TB
	now monotime.Time
}

// newAlone makes the engine of a rank. Rank r's incarnation is r+1.
func newAlone(t testing.TB, algo string, rank, size int) *alone {
	t.Helper()
	cfg := Config{
		Rank: rank, Size: size, NICs: 1, Algorithm: algorithm(algo), Identity: identity, Incarnation: uint32(rank) + 1,
		PeerTimeout: DefaultPeerTimeout,
	}
	return &alone{New(cfg), t, monotime.At(time.Second)}
}

// arrives enters a number, and returns the messages sent.
func (a *alone) arrives(number uint8) string {
	a.t.Helper()
	out, err := a.Arrive(a.now, number, nil)
	if err != nil {
		a.t.Fatalf("Arrive: %v", err)
	}
	return sends(out)
}

// from makes a message of a member.
func (a *alone) from(rank int, k Kind, generation uint32, label uint8) Message {
	return Message{
		Kind: k, Label: label, Identity: identity, Generation: generation,
		Algorithm: a.algorithm, Incarnation: uint32(rank) + 1,
	}
}

// failed makes a member's fail message.
func (a *alone) failed(rank int, generation uint32, r Reason, ranks ...int) Message {
	m := a.from(rank, Fail, generation, 0)
	m.Failure = newFailure(r, ranks...)
	return m
}

// reports makes a member's report of members that are gone.
func (a *alone) reports(rank int, r Reason, ranks ...int) Message {
	m := a.from(rank, Report, 1, 0)
	m.Report = &agreement.Report{Version: 1, Echo: a.cfg.Incarnation}
	for _, rank := range ranks {
		m.Report.Gone = append(m.Report.Gone, agreement.Gone{Rank: rank, Reason: r})
	}
	return m
}

// decided makes the report of a member that has decided.
func (a *alone) decided(rank int, r Reason, ranks ...int) Message {
	m := a.reports(rank, r, ranks...)
	m.Report.Decided = true
	return m
}

// hears handles messages that went through the wire format, and returns the messages sent.
func (a *alone) hears(rank int, messages ...Message) string {
	a.t.Helper()
	var out []Send
	for _, m := range messages {
		var msg Message
		if err := Parse(m.Append(nil), &msg); err != nil {
			a.t.Fatal(err)
		}
		out = a.Handle(a.now, rank, &msg, out)
	}
	return sends(out)
}

// notify handles one Notify.
func (a *alone) notify(rank int, generation uint32, label uint8) string {
	a.t.Helper()
	return a.hears(rank, a.from(rank, Notify, generation, label))
}

// passes lets time pass, and returns the messages sent meanwhile.
func (a *alone) passes(d time.Duration) string {
	var out []Send
	a.now = transcript.Pass(a.now, d, a.Deadline, func(now monotime.Time) { out = a.Advance(now, out) })
	return sends(out)
}

// is checks the state of number 0.
func (a *alone) is(state State, generation uint32) {
	a.t.Helper()
	if s, g := a.State(0); s != state || g != generation {
		a.t.Fatalf("it is %v in generation %d (failure: %v), want %v in %d", s, g, a.Failure(0), state, generation)
	}
}

// failure checks why number 0 failed.
func (a *alone) failure(r Reason, ranks ...int) {
	a.t.Helper()
	f := a.Failure(0)
	if f == nil || f.Reasons[0] != r || !slices.Equal(f.Ranks, ranks) {
		a.t.Fatalf("it failed by %v, want %v: %v", f, r, ranks)
	}
}

func (a *alone) want(got, want string) {
	a.t.Helper()
	if got != want {
		a.t.Fatalf("sends %q, want %q", got, want)
	}
}

// sends formats messages with their receivers.
func sends(out []Send) string {
	var words []string
	for i := range out {
		to := fmt.Sprint(out[i].To)
		if out[i].To == schedule.All {
			to = "all"
		}
		word := to + " " + out[i].Message.String()
		if out[i].NIC != 0 {
			word += fmt.Sprintf(" nic=%d", out[i].NIC)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
