package auth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// Each file is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/stories/*.txt", func() transcript.World {
		return &story{Net: transcript.Net{Times: true}, t: t}
	})
}

// story is nodes and the frames between them. The commands, besides those of transcript.Net:
//
//	nodes 2 [trip=50us] [encrypt]       nodes with one key, which were opened 20 ms ago
//	send 0 1 one [counter=N]            a message, with the next counter or another one
//	alter 0 1 one at=N                  likewise, and byte N of the frame is changed on the way
//	claim 0 1 one as=2                  likewise, and it comes from the address of node 2
//	ask 0 1, ask 0                      begins contact with an address, or with all
//	restart 1                           a node ends, and another one is opened at its address
//	key 1 2 3                           a node's keys are those with these numbers; the first one is 1
//	seal 0 2                            a node seals by key 2
//
// In a frame, "one" (a5) is a message with counter 5 of incarnation a; challenges are numbered.
type story struct {
	transcript.Net
	t          *testing.T
	encrypt    bool
	lives      []uint64
	challenges [][16]byte
}

// storyNode is a node as transcript.Net drives it.
type storyNode struct {
	st *story
	me int
	*node
}

func (n *storyNode) Deadline() (at monotime.Time, ok bool) { return n.v.Deadline() }

func (n *storyNode) Advance(now monotime.Time) {
	expired := n.expired
	n.postAll(n.advance(now))
	n.noteExpired(expired)
}

var verdictNames = [...]string{
	Held: "keeps it", UnknownKey: "drops it: another key", BadTag: "drops it: wrong tag", Replayed: "drops it: replay",
	Unanswered: "drops it: its sender does not answer", OverBudget: "drops it: too many strangers",
}

func (n *storyNode) Receive(now monotime.Time, f *transcript.Frame) {
	src := macOf(int(f.Bytes[0]))
	frame := wireFrame{Addresses{Dst: macOf(int(f.Bytes[1])), Src: src}, f.Bytes[2:]}
	before, delivered, expired := n.verdicts, len(n.delivered), n.expired
	out := n.receive(now, frame)
	for verdict, name := range verdictNames {
		if n.verdicts[verdict] > before[verdict] && name != "" {
			n.st.Note("(%d %s)", n.me, name)
		}
	}
	for _, text := range n.delivered[delivered:] {
		n.st.Note("(%d delivers %s)", n.me, text)
	}
	n.noteExpired(expired)
	n.postAll(out)
}

func (n *storyNode) noteExpired(before int) {
	if n.expired > before {
		n.st.Note("(%d forgets %d)", n.me, n.expired-before)
	}
}

// all stands for the broadcast address in a frame of a story.
const all = 0xff

func macOf(k int) transport.MAC {
	if k == all {
		return transport.Broadcast
	}
	return transport.MAC{2, 0, 0, 0, 0, byte(k)}
}

func (n *storyNode) postAll(frames []wireFrame) {
	for _, f := range frames {
		n.post(f)
	}
}

// post sends a frame, as the story has it.
func (n *storyNode) post(f wireFrame) {
	st := n.st
	var h wire.Header
	var w wire.Auth
	if fault := wire.ParseAuth(f.bytes, &h, &w); fault != wire.OK {
		st.t.Fatalf("a frame that is none: %v", fault)
	}
	if !slices.Contains(st.lives, w.Incarnation) {
		st.lives = append(st.lives, w.Incarnation)
	}
	life := string(rune('a' + slices.Index(st.lives, w.Incarnation)))
	kind, text := "message", fmt.Sprintf("%q (%s%d)", h.Payload, life, w.Counter)
	if w.Encrypted {
		text = fmt.Sprintf("%d bytes (%s%d)", len(h.Payload), life, w.Counter)
	}
	if h.Kind == wire.Contact {
		kind, text = st.contactText(h.Payload)
		text += fmt.Sprintf(" (%s)", life)
	}
	to := []int{int(f.Dst[5])}
	dst := f.Dst[5]
	if f.Dst.IsMulticast() {
		to, dst = nil, all
		for k := range st.Nodes {
			if k != n.me {
				to = append(to, k)
			}
		}
	}
	b := append([]byte{f.Src[5], dst}, f.bytes...)
	st.Post(transcript.Frame{From: n.me, To: to, Kind: kind, Text: text, Bytes: b})
}

// contactText is what a contact frame says.
func (st *story) contactText(payload []byte) (kind, text string) {
	var body wire.ContactBody
	body.Parse(payload)
	number := func(challenge [16]byte) int {
		if !slices.Contains(st.challenges, challenge) {
			st.challenges = append(st.challenges, challenge)
		}
		return slices.Index(st.challenges, challenge) + 1
	}
	var words []string
	if body.Has(wire.ContactResponse) {
		kind = "response"
		words = append(words, fmt.Sprintf("response %d, floor %d", number(body.Response), body.Floor))
	}
	if body.Has(wire.ContactChallenge) {
		if kind == "" {
			kind = "challenge"
		}
		words = append(words, fmt.Sprintf("challenge %d", number(body.Challenge)))
	}
	return kind, strings.Join(words, ", ")
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	options := map[string]uint64{}
	var args []string
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case slices.Contains([]string{"counter", "at", "as"}, key) && err == nil:
			options[key] = n
		case key == "trip":
			if st.Trip, err = time.ParseDuration(value); err != nil {
				return err
			}
		default:
			args = append(args, w)
		}
	}
	if words[0] == "nodes" && len(args) > 0 {
		st.Start()
		st.encrypt = slices.Contains(args, "encrypt")
		count, err := strconv.Atoi(args[0])
		st.Nodes = make([]transcript.Node, count)
		for k := range st.Nodes {
			st.open(k)
		}
		return errors.Join(err, st.opened())
	}
	if known, err := st.Net.Do(words); known {
		return err
	}
	k, err := st.Node(args)
	if err != nil {
		return err
	}
	n := st.Nodes[k].(*storyNode)
	switch words[0] {
	case "restart":
		st.open(k)
		return st.opened()
	case "key", "seal":
		return n.setKeys(words[0], args[1:])
	case "ask":
		to := all
		if len(args) > 1 {
			to, err = st.Node(args[1:])
		}
		n.postAll(n.seal(st.Now, n.v.Ask(st.Now, macOf(to), nil)))
		return err
	case "send", "alter", "claim":
		to, err := st.Node(args[1:])
		if err != nil || len(args) < 3 {
			return errors.Join(err, errors.New("send what to whom?"))
		}
		n.message(words[0], to, args[2], options)
		return nil
	}
	return fmt.Errorf("there is no %q", words[0])
}

// open makes a node that knows nobody.
func (st *story) open(k int) {
	name := fmt.Sprintf("node %d of life %d", k, len(st.lives)+k)
	n := newNodeAt(st.t, st.Now, name, byte(k), st.encrypt, secret(1))
	st.lives = append(st.lives, n.sealer.incarnation)
	st.Nodes[k] = &storyNode{st, k, n}
}

// opened lets the time pass that opening takes.
func (st *story) opened() error {
	_, err := st.Net.Do([]string{"advance", OpeningTime.String()})
	st.Net.Happened()
	return err
}

// message sends a message; before it the driver makes a checkpoint, if one is due.
func (n *storyNode) message(what string, to int, text string, options map[string]uint64) {
	if Due(n.st.Now.Sub(n.checked)) {
		n.checked = n.st.Now
		n.history.Add(n.st.Now, n.counter)
	}
	if c, is := options["counter"]; is {
		n.counter = c - 1 // 0 is behind the last one
	}
	f := n.send(macOf(to), text)
	switch what {
	case "alter":
		f = forge(f, int(options["at"]))
	case "claim":
		f.Src = macOf(int(options["as"]))
	}
	n.post(f)
}

// setKeys sets the keys that a node takes, or the one that it seals by.
func (n *storyNode) setKeys(what string, numbers []string) error {
	var keys []*Key
	for _, word := range numbers {
		number, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			return err
		}
		keys = append(keys, NewKey(secret(byte(number)), cluster))
	}
	if what == "key" {
		n.v.SetKeys(n.st.Now, keys)
		return nil
	}
	n.key, n.sealer = keys[0], NewSealer(keys[0], n.sealer.incarnation, n.mac, n.st.encrypt)
	return nil
}

// Happened returns the frames since the last call, and whom each node knows.
func (st *story) Happened() string {
	lines := st.Net.Happened()
	for k := range st.Nodes {
		n := st.Nodes[k].(*storyNode)
		line := fmt.Sprintf("%d:", k)
		for i, life := range st.lives {
			if s := n.v.senders[life]; s != nil && life != n.sealer.incarnation {
				line += fmt.Sprintf(" %c %s", 'a'+i, [...]string{"asked", "silent", "fresh", "suspended"}[s.state])
				if len(s.held) > 0 {
					line += fmt.Sprintf(" kept %d", len(s.held))
				}
			}
		}
		if line == fmt.Sprintf("%d:", k) {
			line += " knows nobody"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
