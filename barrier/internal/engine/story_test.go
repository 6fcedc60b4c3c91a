package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// Each file of testdata is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/*.txt", func() transcript.World { return &story{} })
}

// story is nodes and the frames between them. Frames take no time, and arrive in the order in
// which they were sent when a command delivers them. The commands, besides those of transcript.Net:
//
//	group [b] algo=A n=N [members=1,2] [2=B] [nics=2]    makes a group, of all N nodes or some; node 2 runs
//	                                           algorithm B
//	arrive [b] [number=7] 0 1                  nodes enter a barrier
//	leave 2                                    says goodbye to its groups; again until all have heard, then forget
//	forget 2                                   forgets its groups but for the goodbye
//	restart 3                                  has a node that has crashed begin anew, in the same groups
//	status 0                                   requests the status of number 0
//	say 0 1 KIND [number=N] [label=N] [gen=1]  a message that node 0 has not sent
type story struct {
	transcript.Net
	groups []storyGroup
	life   uint32
}

type storyGroup struct {
	name    string
	cfg     Config
	other   map[int]schedule.Algorithm // of nodes that run another one
	nodes   []int
	numbers []uint8 // that were used
}

// storyNode is a site as transcript.Net drives it.
type storyNode struct{ *site }

func (n storyNode) Receive(now monotime.Time, f *transcript.Frame) {
	n.receive(now, f.From, f.NIC, f.Bytes)
}
func (n storyNode) Advance(now monotime.Time)             { n.advance(now) }
func (n storyNode) Deadline() (at monotime.Time, ok bool) { return n.deadline() }

func (tr *story) site(node int) *site { return tr.Nodes[node].(storyNode).site }

// Do implements transcript.World.
func (tr *story) Do(words []string) error {
	args := words[1:]
	switch words[0] {
	case "group":
		return tr.group(args)
	case "arrive":
		return tr.arrive(args)
	}
	if known, err := tr.Net.Do(words); known {
		return err
	}
	node, err := tr.Node(args)
	if err != nil {
		return err
	}
	switch s := tr.site(node); words[0] {
	case "leave":
		for _, m := range s.members {
			m.flush(m.Leave(nil))
		}
	case "forget":
		for _, m := range s.members {
			m.left = true
		}
	case "say":
		return tr.say(s, args[1:])
	case "status":
		s.members[0].flush(s.members[0].RequestStatus(0, nil))
	case "restart":
		tr.Down[node] = false
		tr.start(node)
	default:
		return fmt.Errorf("there is no %q", words[0])
	}
	return nil
}

// say sends a message of the first group that a node's engine has not sent.
func (tr *story) say(s *site, args []string) error {
	to, err := tr.Node(args)
	if err != nil || len(args) < 2 {
		return fmt.Errorf("say what to whom? %w", err)
	}
	options := map[string]uint64{"gen": 1}
	for _, a := range args[2:] {
		key, value, _ := strings.Cut(a, "=")
		if options[key], err = strconv.ParseUint(value, 10, 32); err != nil {
			return err
		}
	}
	kinds := map[string]Kind{"notify": Notify, "nack": Nack, "bye_ack": ByeAck, "status_request": StatusRequest}
	msg := s.members[0].message(kinds[args[1]], uint8(options["number"]), uint8(options["label"]), uint32(options["gen"]))
	tr.send(s.node, 0, []int{to}, msg.Append(nil))
	return nil
}

func (tr *story) group(args []string) error {
	g := storyGroup{cfg: Config{NICs: 1, PeerTimeout: DefaultPeerTimeout}, other: map[int]schedule.Algorithm{}}
	n := len(tr.Nodes)
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		var err error
		switch key {
		case "algo":
			g.cfg.Algorithm, err = schedule.Parse(value)
		case "n":
			n, err = strconv.Atoi(value)
		case "nics":
			g.cfg.NICs, err = strconv.Atoi(value)
		case "members":
			g.nodes, err = integers(strings.Split(value, ","))
		default:
			node, none := strconv.Atoi(key)
			if none != nil {
				g.name = key
				break
			}
			g.other[node], err = schedule.Parse(value)
		}
		if err != nil {
			return err
		}
	}
	if g.nodes == nil {
		g.nodes = upTo(n)
	}
	if len(tr.Nodes) == 0 {
		tr.Start()
		tr.Nodes = make([]transcript.Node, n)
	}
	g.cfg.Identity = Identity{uint64(len(tr.groups)) + 1, 1}
	tr.groups = append(tr.groups, g)
	for node := range tr.Nodes {
		tr.start(node)
	}
	return nil
}

func integers(words []string) (all []int, err error) {
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// start begins a node, or begins it anew, with all its groups.
func (tr *story) start(node int) {
	s := &site{node: node, ended: func(*member, uint8) {}}
	s.post = func(to []int, nic int, b []byte) { tr.send(node, nic, to, b) }
	for _, g := range tr.groups {
		tr.life++
		cfg := g.cfg
		cfg.Incarnation = tr.life
		if other, is := g.other[node]; is {
			cfg.Algorithm = other
		}
		if slices.Contains(g.nodes, node) {
			s.join(cfg, g.nodes)
		}
	}
	tr.Nodes[node] = storyNode{s}
}

// send sends a frame, as the story has it.
func (tr *story) send(node, nic int, to []int, b []byte) {
	if len(to) == 0 {
		return
	}
	var m Message
	if err := Parse(b, &m); err != nil {
		panic(err)
	}
	text := m.String()
	if nic > 0 {
		text += fmt.Sprintf(" nic=%d", nic)
	}
	if len(tr.groups) > 1 && m.Identity.Hash > 1 {
		text += " group=" + tr.groups[m.Identity.Hash-1].name
	}
	tr.Post(transcript.Frame{
		From: node, NIC: nic, To: slices.Clone(to), Kind: strings.ReplaceAll(m.Kind.String(), " ", "_"), Text: text, Bytes: b,
	})
}

func (tr *story) arrive(args []string) error {
	g, number := &tr.groups[0], uint8(0)
	for _, a := range args {
		if value, is := strings.CutPrefix(a, "number="); is {
			n, err := strconv.ParseUint(value, 10, 8)
			if err != nil {
				return err
			}
			number = uint8(n)
			continue
		}
		node, none := strconv.Atoi(a)
		if none != nil {
			i := slices.IndexFunc(tr.groups, func(g storyGroup) bool { return g.name == a })
			if i < 0 {
				return fmt.Errorf("no group %q", a)
			}
			g = &tr.groups[i]
			continue
		}
		if !slices.Contains(g.numbers, number) {
			g.numbers = append(g.numbers, number)
		}
		if err := tr.site(node).member(g.cfg.Identity).arrive(tr.Now, number); err != nil {
			tr.Note("%d: %v", node, err)
		}
	}
	return nil
}
