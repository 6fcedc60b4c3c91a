package discovery

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
	"github.com/rawlane/rawlane/transport"
)

// Each file of testdata is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/*.txt", func() transcript.World { return &story{Net: transcript.Net{Times: true}} })
}

// story is nodes on a segment. The commands, besides those of transcript.Net:
//
//	stations 4 [size=3] [trip=50us]     stations with the addresses 0 to 3; each expects a cluster of that size
//	begin 0 1 [as=2]                    stations begin discovery, or begin it anew, as the nodes of their addresses or as node 2
//	say 3 as=1 [size=3] [mac=2] [networks=2] [complete]    a stranger announces what it likes
//
// In a frame, "1 of 3, seeking" is the announcement of node 1.
type story struct {
	transcript.Net
	size int
}

// storyStation is a station as transcript.Net drives it.
type storyStation struct {
	st      *story
	address int
	d       *Discovery // nil: it has not begun
}

func (s *storyStation) Deadline() (at monotime.Time, ok bool) {
	if s.d == nil {
		return at, false
	}
	return s.d.Deadline()
}

func (s *storyStation) Advance(now monotime.Time) { s.post(s.d.Advance(now, nil)) }

func (s *storyStation) Receive(now monotime.Time, f *transcript.Frame) {
	a, err := Parse(f.Bytes[2:])
	if err != nil || s.d == nil {
		return
	}
	node := uint16(f.Bytes[0])<<8 | uint16(f.Bytes[1])
	s.post(s.d.Handle(now, node, mac(f.From, 0), 0, &a, nil))
}

func (s *storyStation) post(out []Send) {
	for _, o := range out {
		to := s.others()
		if o.One {
			to = slices.DeleteFunc(to, func(k int) bool { return mac(k, 0) != o.To.MACs[0] })
		}
		s.say(to, s.d.self.Node, &o.Announcement)
	}
}

func (s *storyStation) others() (all []int) {
	for k := range s.st.Nodes {
		if k != s.address {
			all = append(all, k)
		}
	}
	return all
}

// say sends an announcement, behind the number of its node.
func (s *storyStation) say(to []int, node uint16, a *Announcement) {
	kind := "complete"
	if a.Seeking {
		kind = "seeking"
	}
	s.st.Post(transcript.Frame{
		From: s.address, To: to, Kind: kind, Text: fmt.Sprintf("%d of %d, %s", node, a.Size, kind),
		Bytes: a.Append([]byte{byte(node >> 8), byte(node)}),
	})
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	options := map[string]int{"size": st.size, "as": -1, "mac": -1}
	var numbers []int
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if n, err := strconv.Atoi(value); err == nil {
			options[key] = n
		}
		if n, err := strconv.Atoi(w); err == nil {
			numbers = append(numbers, n)
		}
		if key == "trip" {
			var err error
			if st.Trip, err = time.ParseDuration(value); err != nil {
				return err
			}
		}
	}
	switch words[0] {
	case "stations", "begin", "say":
		if len(numbers) == 0 {
			return errors.New("which?")
		}
	}
	switch words[0] {
	case "stations":
		st.Start()
		st.size = numbers[0]
		if options["size"] > 0 {
			st.size = options["size"]
		}
		for k := range numbers[0] {
			st.Nodes = append(st.Nodes, &storyStation{st: st, address: k})
		}
		return nil
	case "begin":
		for _, k := range numbers {
			st.begin(k, options["as"], options["size"])
		}
		return nil
	case "say":
		s := st.Nodes[numbers[0]].(*storyStation)
		a := Announcement{Seeking: !slices.Contains(words, "complete"), Size: uint16(options["size"]), MACs: []transport.MAC{mac(s.address, 0)}}
		if forged := options["mac"]; forged >= 0 {
			a.MACs[0] = mac(forged, 0)
		}
		for nic := 1; nic < options["networks"]; nic++ {
			a.MACs = append(a.MACs, mac(s.address, nic))
		}
		s.say(s.others(), uint16(options["as"]), &a)
		return nil
	}
	_, err := st.Net.Do(words)
	return err
}

func (st *story) begin(address, node, size int) {
	if node < 0 {
		node = address
	}
	self := Station{Node: uint16(node), MACs: []transport.MAC{mac(address, 0)}}
	s := st.Nodes[address].(*storyStation)
	st.Down[address] = false
	s.d = New(st.Now, self, size, uint64(address))
	s.Advance(st.Now)
}

var faultNames = map[FaultKind]string{
	SameNumber: "same number", SameAddress: "same address", OutOfRange: "out of range", OtherSize: "another size",
	OtherNetwork: "another network",
}

// Happened returns the announcements since the last call, and the stations' states.
func (st *story) Happened() string {
	var states []string
	for k, n := range st.Nodes {
		s := n.(*storyStation)
		if s.d == nil || st.Down[k] {
			states = append(states, fmt.Sprintf("%d off", k))
			continue
		}
		state := fmt.Sprintf("%d %v", k, s.d.State())
		if missing := s.d.Missing(); len(missing) > 0 {
			state += fmt.Sprintf(" without %s", strings.Trim(fmt.Sprint(missing), "[]"))
		}
		if f := s.d.Fault(); f.Kind != NoFault {
			state += fmt.Sprintf(" (%s: %d)", faultNames[f.Kind], f.B.Node)
		}
		states = append(states, state)
	}
	return strings.Join(append(st.Net.Happened(), transcript.Wrap(states)...), "\n")
}
