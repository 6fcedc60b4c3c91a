package consensus

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// Each file is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/stories/*.txt", func() transcript.World { return &story{} })
}

// story is the members of a communicator and the messages between them, which arrive in the order
// in which they were sent when a command delivers them. The commands, besides those of
// transcript.Net:
//
//	members 3
//	agree 0 [flags=6] [context=9] [knows=1,2]    a member begins; it has acknowledged that those are down
//	down 0 2                                     2 is down to member 0
//	say 0 1 KIND [number=1] [flags=N] [out=1]    a message that no member has sent
type story struct {
	transcript.Net
	messages []Message // by number, which is what a frame has for bytes
}

// storyMember is a member as transcript.Net drives it.
type storyMember struct {
	st *story
	me int
	m  *Member
}

func (n *storyMember) Deadline() (at monotime.Time, ok bool) { return at, false }

func (n *storyMember) Advance(monotime.Time) {}

func (n *storyMember) Receive(_ monotime.Time, f *transcript.Frame) {
	out, err := n.m.Handle(f.From, &n.st.messages[f.Bytes[0]], nil)
	if err != nil {
		n.st.Note("(%d counts: makes no sense)", n.me)
	}
	n.do(out)
}

func (n *storyMember) do(out []Output) {
	for i := range out {
		switch o := &out[i]; o.Do {
		case Send:
			n.st.post(n.me, o.To, o.Message)
		case Decided:
			n.st.Note("(%d decides %s)", n.me, o.Value.text())
		case Excluded:
			n.st.Note("(%d is excluded)", n.me)
		}
	}
}

// text is a value for transcripts.
func (v *Value) text() string {
	text := fmt.Sprintf("flags %d", v.Flags)
	if v.Context != 0 {
		text += fmt.Sprintf(" context %d", v.Context)
	}
	if len(v.Failed) > 0 {
		text += " without" + v.Failed.text()
	}
	if len(v.Unacknowledged) > 0 {
		text += ", not acknowledged" + v.Unacknowledged.text()
	}
	return text
}

// text is the ranks of a set for transcripts.
func (s Set) text() (text string) {
	for k := range 8 * len(s) {
		if s.Has(k) {
			text += " " + strconv.Itoa(k)
		}
	}
	return text
}

// post sends a message, as the story has it.
func (st *story) post(from, to int, m Message) {
	kind := [...]string{"none", "state", "propose", "accept", "decide"}[m.Kind]
	text := fmt.Sprintf("%s %d", kind, m.Number)
	switch m.Kind {
	case State:
		text += fmt.Sprintf(": flags %d", m.Contribution.Flags)
		if m.Contribution.Context != 0 {
			text += fmt.Sprintf(" context %d", m.Contribution.Context)
		}
		if len(m.Contribution.Down) > 0 {
			text += ", down" + m.Contribution.Down.text()
		}
		if m.Round > 0 {
			text += fmt.Sprintf(", %d has proposed %s", m.Round-1, m.Value.text())
		}
	case Propose, Decide:
		text += ": " + m.Value.text()
	}
	b := []byte{byte(len(st.messages))}
	st.messages = append(st.messages, m)
	st.Post(transcript.Frame{From: from, To: []int{to}, Kind: kind, Text: text, Bytes: b})
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	options := map[string]int{"flags": 0, "context": 0, "number": 1}
	sets := map[string]Set{}
	var args []string
	for _, w := range words[1:] {
		key, value, is := strings.Cut(w, "=")
		if !is || words[0] == "deliver" {
			args = append(args, w)
			continue
		}
		for one := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(one)
			if err != nil {
				return err
			}
			options[key] = n
			sets[key] = sets[key].With(n)
		}
	}
	if words[0] == "members" && len(args) == 1 {
		st.Start()
		count, err := strconv.Atoi(args[0])
		for k := range count {
			st.Nodes = append(st.Nodes, &storyMember{st, k, New(k, count)})
		}
		return err
	}
	if known, err := st.Net.Do(words); known {
		return err
	}
	k, err := st.Node(args)
	if err != nil {
		return err
	}
	n := st.Nodes[k].(*storyMember)
	if words[0] == "agree" {
		n.do(n.m.Begin(Contribution{
			Flags: uint64(options["flags"]), Context: uint32(options["context"]), Acknowledged: sets["knows"],
		}, nil))
		return nil
	}
	other, err := st.Node(args[1:])
	switch {
	case err != nil:
		return err
	case words[0] == "down":
		n.do(n.m.Down(other, nil))
	case words[0] == "say" && len(args) == 3:
		kinds := map[string]Kind{"state": State, "propose": Propose, "accept": Accept, "decide": Decide}
		m := Message{Kind: kinds[args[2]], Number: uint32(options["number"])}
		if m.Kind == Propose || m.Kind == Decide {
			m.Value = Value{Flags: uint64(options["flags"]), Failed: sets["out"]}
		}
		st.post(k, other, m)
	default:
		return fmt.Errorf("there is no %q", words[0])
	}
	return nil
}

// Happened returns the messages since the last call, and how far each member is.
func (st *story) Happened() string {
	var states []string
	for k := range st.Nodes {
		m := st.Nodes[k].(*storyMember).m
		state := fmt.Sprintf("%d idle", k)
		switch {
		case st.Down[k]:
			state = fmt.Sprintf("%d down", k)
		case m.excluded:
			state = fmt.Sprintf("%d excluded", k)
		case m.running:
			state = fmt.Sprintf("%d agrees on %d", k, m.done+1)
		}
		states = append(states, state)
	}
	return strings.Join(append(st.Net.Happened(), transcript.Wrap(states)...), "\n")
}
