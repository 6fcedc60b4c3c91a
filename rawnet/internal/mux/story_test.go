package mux

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// Each file of testdata is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/*.txt", func() transcript.World { return &story{} })
}

// story is nodes and the records between them, which arrive in the order in which they were sent
// when a command delivers them. The commands, besides those of transcript.Net:
//
//	nodes 2 [window=4096] [streams=N] [first=N]    makes nodes; first is the number of the first stream of each
//	listen 1 echo [backlog=N]            a service; unlisten 1 echo ends it
//	dial 0 1 echo                        stream a, then b and so on: by node 0 to node 1
//	accept 1 echo                        a node takes the stream that has waited longest
//	write 0 a bytes=N                    sends so many bytes, as far as the credit goes
//	read 1 a bytes=N                     a program reads
//	fin 0 a, close 0 a, reset 0 a, cut 0 a    CloseWrite, Close, Reset, CutOff
//	down 0 1                             node 1 is down to node 0
//	stall 1, resume 1                    a node has no room for control records, and has again
//	say 0 1 a KIND [version=2] [reason=N] [limit=N] [bytes=N] [acceptor] [flags=N]
//	                                     a record of node 0 that no node has sent, as of a stream's dialer
type story struct {
	transcript.Net
	names []label // streams, in the order of dialing
}

// label is what both ends name a stream by.
type label struct {
	dialer int
	number uint64
}

// storyNode is a node as transcript.Net drives it.
type storyNode struct {
	st      *story
	me      int
	m       *Mux
	streams map[label]*Stream // that this node has, or had
	stalled bool
}

func (n *storyNode) Deadline() (at monotime.Time, ok bool) { return at, false }

func (n *storyNode) Advance(monotime.Time) {}

func (n *storyNode) Receive(_ monotime.Time, f *transcript.Frame) {
	before := n.m.counters
	n.events(n.m.Handle(uint16(f.From), f.Bytes, nil))
	for _, s := range n.m.All() {
		n.streams[n.label(s)] = s
	}
	for _, c := range []struct {
		what     string
		was, now uint64
	}{
		{"malformed", before.Malformed, n.m.counters.Malformed},
		{"another version", before.Version, n.m.counters.Version},
		{"no such stream", before.NoStream, n.m.counters.NoStream},
		{"violation", before.Violations, n.m.counters.Violations},
		{"refused", before.Refused, n.m.counters.Refused},
	} {
		if c.now > c.was {
			n.st.Note("(%d counts: %s)", n.me, c.what)
		}
	}
	n.pump()
}

// events notes what the driver would tell those that wait.
func (n *storyNode) events(all []Event) {
	for _, e := range all {
		what := [...]string{"", "readable", "writable", "answered", "failed", "acceptable"}[e.Kind]
		if e.Kind == Acceptable {
			n.st.Note("(%d: %s %s)", n.me, e.Listener.Service(), what)
			continue
		}
		if reason, _ := e.Stream.Failure(); reason != 0 {
			what += ", " + reason.String()
		}
		n.st.Note("(%d: %s %s)", n.me, n.st.letter(n.label(e.Stream)), what)
	}
}

// pump sends the control records that are owed.
func (n *storyNode) pump() {
	for to := 0; to < len(n.st.Nodes) && !n.stalled; to++ {
		for c, ok := n.m.Next(uint16(to)); ok; c, ok = n.m.Next(uint16(to)) {
			n.st.send(n.me, to, c.Append(nil))
			n.events(n.m.Sent(&c, nil))
		}
	}
}

// label returns what both ends name a stream of this node by.
func (n *storyNode) label(s *Stream) label {
	if s.name.dialed {
		return label{n.me, s.Number()}
	}
	return label{int(s.Node()), s.Number()}
}

// letter names a stream: a is the first one that is dialed.
func (st *story) letter(l label) string {
	if !slices.Contains(st.names, l) {
		st.names = append(st.names, l)
	}
	return string(rune('a' + slices.Index(st.names, l)))
}

// send sends a record, as the story has it.
func (st *story) send(from, to int, b []byte) {
	var r Record
	err := r.Parse(b)
	if err != nil {
		st.Post(transcript.Frame{From: from, To: []int{to}, Kind: "odd", Text: fmt.Sprintf("%x", b), Bytes: b})
		return
	}
	l := label{to, r.Stream}
	if r.Dialer {
		l.dialer = from
	}
	text := fmt.Sprintf("%v %s", r.Kind, st.letter(l))
	switch r.Kind {
	case Open:
		text += fmt.Sprintf(" %q, before %d", r.Body, r.Limit)
	case Accept, Window:
		text += fmt.Sprintf(", before %d", r.Limit)
	case Data:
		text += fmt.Sprintf(", %d bytes", len(r.Body))
	case Refuse, Reset:
		text += fmt.Sprintf(" (%v)", r.Reason)
	}
	st.Post(transcript.Frame{From: from, To: []int{to}, Kind: r.Kind.String(), Text: text, Bytes: b})
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	options := map[string]int{
		"window": MinWindow, "streams": 0, "first": 0, "backlog": 0, "bytes": 0, "version": Version, "reason": 0,
		"limit": 0, "flags": 0,
	}
	var args []string
	for _, w := range words[1:] {
		key, value, is := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		switch _, known := options[key]; {
		case is && known && err == nil:
			options[key] = n
		default:
			args = append(args, w)
		}
	}
	if words[0] == "nodes" && len(args) == 1 {
		count, err := strconv.Atoi(args[0])
		st.Start()
		for k := range count {
			first := uint64(options["first"])
			if first == 0 {
				first = uint64(1000 * (k + 1))
			}
			m := New(Config{First: first, Window: options["window"], MaxStreams: options["streams"]})
			st.Nodes = append(st.Nodes, &storyNode{st: st, me: k, m: m, streams: map[label]*Stream{}})
		}
		return err
	}
	if known, err := st.Net.Do(words); known {
		return err
	}
	k, err := st.Node(args)
	if stalled, is := map[string]bool{"stall": true, "resume": false}[words[0]]; err == nil && is {
		node := st.Nodes[k].(*storyNode)
		node.stalled = stalled
		node.pump()
		return nil
	}
	if err != nil || len(args) < 2 {
		return errors.Join(err, errors.New("which node, and what?"))
	}
	n := st.Nodes[k].(*storyNode)
	switch words[0] {
	case "listen", "unlisten", "accept":
		err = n.listener(words[0], args[1], options["backlog"])
	case "dial", "down", "say":
		var to int
		if to, err = st.Node(args[1:]); err == nil {
			err = n.toward(words[0], to, args[2:], options)
		}
	default:
		err = n.program(words[0], args[1], options["bytes"])
	}
	n.pump()
	return err
}

// listener does what a program does with a service.
func (n *storyNode) listener(what, service string, backlog int) error {
	l := n.m.listeners[service]
	if what == "listen" {
		_, err := n.m.Listen(service, backlog)
		return err
	}
	if l == nil {
		return errors.New("nobody listens")
	}
	if what == "unlisten" {
		l.Close()
		return nil
	}
	s := l.Accept()
	if s == nil {
		return errors.New("nothing to accept")
	}
	n.st.Note("(%d accepts %s)", n.me, n.st.letter(n.label(s)))
	return nil
}

// toward does what has another node in it.
func (n *storyNode) toward(what string, to int, args []string, options map[string]int) error {
	switch {
	case what == "down":
		n.events(n.m.Down(uint16(to), errors.New("silent"), nil))
	case len(args) == 0:
		return errors.New("dial or say what?")
	case what == "dial":
		s, err := n.m.Dial(uint16(to))
		if err != nil {
			n.st.Note("(%d: %v)", n.me, err)
			return nil
		}
		n.streams[n.label(s)] = s
		n.st.send(n.me, to, s.AppendOpen(nil, args[0]))
	default:
		return n.say(to, args, options)
	}
	return nil
}

// say sends a record that the node's core has not made.
func (n *storyNode) say(to int, args []string, options map[string]int) error {
	r := Record{
		Dialer: !slices.Contains(args, "acceptor"), Reason: Reason(options["reason"]), Limit: uint64(options["limit"]),
		Body: make([]byte, options["bytes"]),
	}
	r.Stream = 77
	if i := int(args[0][0] - 'a'); i < len(n.st.names) {
		r.Stream = n.st.names[i].number
	}
	for k := Open; k < kinds; k++ {
		if slices.Contains(args, k.String()) {
			r.Kind = k
		}
	}
	if r.Kind == Open {
		r.Body = []byte("echo")
	}
	b := r.Append(nil)
	b[0] = byte(options["version"]<<4) | byte(r.Kind)
	b[1] |= byte(options["flags"])
	n.st.send(n.me, to, b)
	return nil
}

// program does what a program does with a stream.
func (n *storyNode) program(what, stream string, count int) error {
	i := int(stream[0] - 'a')
	if i >= len(n.st.names) {
		return errors.New("no such stream")
	}
	s := n.streams[n.st.names[i]]
	switch what {
	case "write":
		count = min(count, s.Credit())
		n.st.send(n.me, int(s.Node()), append(s.AppendHeader(nil), make([]byte, count)...))
		s.Sent(count)
	case "read":
		n.st.Note("(%d reads %d of %s)", n.me, s.Read(make([]byte, count)), stream)
	case "fin":
		s.CloseWrite()
	case "close":
		s.Close()
	case "reset":
		s.Reset()
	case "cut":
		n.events(s.CutOff(nil))
	default:
		return fmt.Errorf("there is no %q", what)
	}
	return nil
}

// Happened returns the records since the last call, and the streams of each node.
func (st *story) Happened() string {
	lines := st.Net.Happened()
	for k := range st.Nodes {
		n := st.Nodes[k].(*storyNode)
		words := []string{fmt.Sprintf("%d:", k)}
		for i, name := range st.names {
			if s := n.streams[name]; s != nil {
				words = append(words, fmt.Sprintf("%c %s", 'a'+i, s.text()))
			}
		}
		if len(words) == 1 {
			words = append(words, "no stream")
		}
		lines = append(lines, strings.Join(words, "   "))
	}
	return strings.Join(lines, "\n")
}

// text is the state of a stream for transcripts.
func (s *Stream) text() string {
	text := s.State().String()
	if reason, _ := s.Failure(); reason != 0 {
		text += fmt.Sprintf(" (%v)", reason)
	}
	if n := s.Credit(); n > 0 {
		text += fmt.Sprintf(", may send %d", n)
	}
	if n := s.Buffered(); n > 0 {
		text += fmt.Sprintf(", %d to read", n)
	}
	if s.EOF() {
		text += ", no more comes"
	}
	if s.Broken() {
		text += ", nobody reads"
	}
	return text
}
