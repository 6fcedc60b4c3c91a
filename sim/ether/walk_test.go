package ether

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

// walker takes frames by hand from switch to switch: no time, no queues.
type walker struct {
	topology *topology.Topology
	switches []*l2switch.Switch
	far      map[socket]socket // the other end of each port's cable
}

// visit is what one switch did with a frame.
type visit struct {
	at      string
	learned bool     // its source
	moved   bool     // its source was behind another port
	flooded bool     // its destination was not known
	out     []string // to whom it sent it: hosts by number, switches by name
}

func newWalker(spec string) (*walker, error) {
	t, err := topology.Parse(spec)
	if err != nil {
		return nil, err
	}
	switches, cables, err := build(t, l2switch.Config{})
	w := &walker{t, switches, map[socket]socket{}}
	for _, c := range cables {
		w.far[c.a], w.far[c.b] = c.b, c.a
	}
	return w, err
}

// send has a frame go from one host to another, and returns what each switch did, nearest first,
// and the hosts that it came to, ascending.
func (w *walker) send(from, to int, vid transport.VID) (visits []visit, hosts []int) {
	f := transport.Frame{Dst: Address(to), Src: Address(from), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
	for next := []socket{w.far[socket{from, atHost}]}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at.port == atHost {
			hosts = append(hosts, at.device)
			continue
		}
		s := w.switches[at.device]
		before := s.Counters()
		out := s.Forward(monotime.At(0), at.port, &f, nil)
		after := s.Counters()
		v := visit{
			at:      w.topology.Switches[at.device],
			learned: after.Learned > before.Learned, moved: after.Moved > before.Moved, flooded: after.Flooded > before.Flooded,
		}
		for _, e := range out {
			far := w.far[socket{at.device, e.Port}]
			v.out = append(v.out, w.name(far))
			next = append(next, far)
		}
		visits = append(visits, v)
	}
	slices.Sort(hosts)
	return visits, hosts
}

func (w *walker) name(s socket) string {
	if s.port == atHost {
		return fmt.Sprint(s.device)
	}
	return w.topology.Switches[s.device]
}

// text is a line of a transcript: "leaf0: learns 0; does not know 2: to 1, top0".
func (v visit) text(from, to int) string {
	s := v.at + ":"
	switch {
	case v.learned:
		s += fmt.Sprintf(" learns %d;", from)
	case v.moved:
		s += fmt.Sprintf(" %d has moved;", from)
	}
	if v.flooded {
		s += fmt.Sprintf(" does not know %d: floods to", to)
	} else {
		s += fmt.Sprintf(" knows %d: to", to)
	}
	return s + " " + strings.Join(v.out, ", ")
}

// floods returns the names of the switches that flooded; learns those of the switches that
// learned the sender.
func floods(visits []visit) (names []string) {
	for _, v := range visits {
		if v.flooded {
			names = append(names, v.at)
		}
	}
	return names
}

func learns(visits []visit) (names []string) {
	for _, v := range visits {
		if v.learned || v.moved {
			names = append(names, v.at)
		}
	}
	return names
}

// The paper's two walks through a change of route, its figure 7. Host 0 sends, host 2 answers;
// hosts 1 and 3 look on. All pass leaf 0 and leaf 1, and by way of top 0 on the old VID, 1, and
// top 1 on the new one, 2.
func TestVFREC_4_3_RouteChange(t *testing.T) {
	const old, changed = 1, 2
	type step struct {
		from, to int
		vid      transport.VID
		floods   string // which switches, or ""
		learns   string
		hosts    string // who gets it
		why      string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"A: the sender changes first", []step{
			{0, 2, changed, "[leaf0 top1 leaf1]", "[leaf0 top1 leaf1]", "[1 2 3]",
				"(1) no switch has heard the receiver on the new VID: the frame floods. All learn where the sender is"},
			{2, 0, old, "", "", "[0]",
				"(2) the receiver has not changed: the ack goes by the old VID, where all know both"},
			{0, 2, changed, "[leaf0 top1 leaf1]", "", "[1 2 3]",
				"(3) the sender goes on: the frame floods still, and teaches nothing new"},
			{2, 0, changed, "", "[leaf1 top1 leaf0]", "[0]",
				"(4) the receiver has changed: the ack goes straight, as the sender is known since (1), and teaches where the receiver is"},
			{0, 2, changed, "", "", "[2]", "and from now on nothing floods"},
			{2, 0, changed, "", "", "[0]", "in either direction"},
		}},
		{"B: the receiver changes first", []step{
			{0, 2, old, "", "", "[2]",
				"(1) the sender does not know of it: the frame goes by the old VID, where all know both"},
			{2, 0, changed, "[leaf1 top1 leaf0]", "[leaf1 top1 leaf0]", "[0 1 3]",
				"(2) no switch has heard the sender on the new VID: the ack floods. All learn where the receiver is"},
			{0, 2, changed, "", "[leaf0 top1 leaf1]", "[2]",
				"(3) the sender has changed: the frame goes straight, as the receiver is known since (2), and teaches where the sender is"},
			{2, 0, changed, "", "", "[0]", "and from now on nothing floods"},
			{0, 2, changed, "", "", "[2]", "in either direction"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := newWalker("vbft:2x2x2")
			if err != nil {
				t.Fatal(err)
			}
			w.send(0, 2, old) // as before the change: both are known on the old VID
			w.send(2, 0, old)
			w.send(0, 2, old)
			for _, s := range c.steps {
				visits, hosts := w.send(s.from, s.to, s.vid)
				list := func(names []string) string {
					if names == nil {
						return ""
					}
					return fmt.Sprint(names)
				}
				if f, l, h := list(floods(visits)), list(learns(visits)), fmt.Sprint(hosts); f != s.floods || l != s.learns || h != s.hosts {
					t.Errorf("%s:\nfloods %s, learn %s, hosts %s;\nwant   %s, %s, %s", s.why, f, l, h, s.floods, s.learns, s.hosts)
				}
			}
		})
	}
}
