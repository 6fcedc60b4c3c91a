// Package decode reads the messages of barriers for tools that show captures: with it imported,
// mcd/decode's Message.Records returns them, for messages to the port of barriers.
//
//	barrier 7 of group 0102030405060708 epoch 5, generation 9: notify, label 3
//	barrier 0 of group 0102030405060708 epoch 1, generation 2: nack, label 3
//	group 0102030405060708 epoch 1: report 3, decided: 1 silent, 258 restarted
package decode

import (
	"fmt"
	"strings"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/mcd/decode"
)

func init() { Register(uint8(barrier.DefaultPort)) }

// Register has messages to a port of barriers read, for programs that set Config.Port. It is for
// initialisation, as decode.RegisterPort.
func Register(port uint8) { decode.RegisterPort(port, read, decode.Unicast, decode.Multicast) }

// Message is a message of a barrier. It names members by rank.
type Message struct {
	Kind        string   `json:"message"` // notify, nack, not yet, fail, bye, bye ack, status request, ...
	Number      uint8    `json:"number"`  // of the barrier; 0 of what is about the group
	Label       uint8    `json:"label"`   // of notify, nack and not yet
	Group       string   `json:"group"`   // its identity, in hex
	Epoch       uint32   `json:"epoch"`
	Generation  uint32   `json:"generation"`          // of a report its version
	Algorithm   string   `json:"algorithm"`           // the hash of its name, in hex
	Incarnation string   `json:"incarnation"`         // of the sender, in hex
	Receiver    string   `json:"receiver,omitempty"`  // of bye and report: its incarnation as the sender knows it
	Known       []string `json:"known,omitempty"`     // by rank: the incarnations that the sender knows
	Entered     bool     `json:"entered,omitempty"`   // of status reply and not yet: the sender has entered
	Heard       bool     `json:"heard,omitempty"`     // of nack, report, no such group
	Own         uint32   `json:"own,omitempty"`       // of not yet: the sender's own generation
	Lowest      uint32   `json:"lowest,omitempty"`    // of no such group: the lowest epoch that exists
	Answers     string   `json:"answers,omitempty"`   // of no such group: the kind that it answers
	Completed   []Done   `json:"completed,omitempty"` // of bye
	Decided     bool     `json:"decided,omitempty"`   // of report
	Query       bool     `json:"query,omitempty"`     // of report: an answer is wanted
	Gone        []Gone   `json:"gone,omitempty"`      // of report and fail
}

// Done is the last generation of a barrier that the sender has completed.
type Done struct {
	Number     uint8  `json:"number"`
	Generation uint32 `json:"generation"`
}

// Gone is a member through which a barrier fails.
type Gone struct {
	Rank   int    `json:"rank"`
	Reason string `json:"reason"` // silent, unreachable, left, restarted, another algorithm
}

func read(payload []byte) []decode.Record {
	var e engine.Message
	if err := engine.Parse(payload, &e); err != nil {
		return []decode.Record{decode.Malformed{Reason: "message of a barrier", Rest: payload}}
	}
	m := &Message{
		Kind: e.Kind.String(), Number: e.Number, Label: e.Label, Group: fmt.Sprintf("%016x", e.Identity.Hash),
		Epoch: e.Identity.Epoch, Generation: e.Generation, Algorithm: hex(e.Algorithm), Incarnation: hex(e.Incarnation),
		Entered: e.Entered, Heard: e.Heard, Own: e.Own, Lowest: e.Lowest,
	}
	for _, k := range e.Known {
		m.Known = append(m.Known, hex(k))
	}
	for _, d := range e.Done {
		m.Completed = append(m.Completed, Done(d))
	}
	switch e.Kind {
	case engine.NoSuchGroup:
		m.Answers = e.Answers.String()
	case engine.Bye:
		m.Receiver = hex(e.Echo)
	case engine.Fail:
		for i, r := range e.Failure.Ranks {
			m.Gone = append(m.Gone, Gone{r, engine.ReasonName(e.Failure.Reasons[i])})
		}
	case engine.Report:
		m.Receiver, m.Decided, m.Query = hex(e.Report.Echo), e.Report.Decided, e.Report.Query
		for _, g := range e.Report.Gone {
			m.Gone = append(m.Gone, Gone{g.Rank, engine.ReasonName(g.Reason)})
		}
	}
	return []decode.Record{m}
}

func hex(word uint32) string { return fmt.Sprintf("%08x", word) }

// String puts m on one line.
func (m *Message) String() string {
	about := fmt.Sprintf("group %s epoch %d: %s", m.Group, m.Epoch, m.Kind)
	switch m.Kind {
	case engine.Report.String():
		return about + fmt.Sprintf(" %d", m.Generation) + m.particulars()
	case engine.Bye.String(), engine.ByeAck.String():
		return about + m.particulars()
	}
	return fmt.Sprintf("barrier %d of group %s epoch %d, generation %d: %s",
		m.Number, m.Group, m.Epoch, m.Generation, m.Kind) + m.particulars()
}

// particulars is what messages of its kind say besides.
func (m *Message) particulars() string {
	var s strings.Builder
	say := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&s, ", "+format, args...)
		}
	}
	switch m.Kind {
	case engine.Notify.String(), engine.Nack.String(), engine.NotYet.String():
		say(true, "label %d", m.Label)
	case engine.StatusReply.String():
		say(!m.Entered, "not entered")
	case engine.NoSuchGroup.String():
		say(true, "answers %s", m.Answers)
	}
	say(m.Entered, "entered")
	say(m.Kind == engine.NotYet.String(), "itself at generation %d", m.Own)
	say(m.Lowest > 0, "epoch %d exists", m.Lowest)
	say(m.Heard, "the receiver was heard")
	say(m.Decided, "decided")
	say(m.Query, "query")
	for i, g := range m.Gone {
		say(i > 0, "%d %s", g.Rank, g.Reason)
		if i == 0 {
			fmt.Fprintf(&s, ": %d %s", g.Rank, g.Reason)
		}
	}
	for _, d := range m.Completed {
		say(true, "%d completed to %d", d.Number, d.Generation)
	}
	return s.String()
}

// Data returns nil: barriers carry nothing for the program.
func (m *Message) Data() []byte { return nil }
