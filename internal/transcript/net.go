package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Node is a core with a driver around it. What it sends goes to Net.Post.
type Node interface {
	Receive(now monotime.Time, f *Frame)
	Advance(now monotime.Time)
	Deadline() (at monotime.Time, ok bool)
}

// Frame is one that is sent.
type Frame struct {
	From, NIC int
	To        []int // more than one: a multicast
	Kind      string
	Text      string // what the story has behind "0->1 "
	Bytes     []byte
}

// Net is nodes, the frames between them, and the time that they have. Its commands:
//
//	deliver [FILTER...]        all frames on their way arrive, and those that this makes
//	advance 2ms [FILTER...]    time passes; what is due is done, and delivered
//	release                    frames that were held are on their way again
//	crash 3                    ends a node: what it has sent is lost, too
//
// A FILTER is drop=KIND:FROM->TO, hold= or copy= (it arrives, and a copy is held), or drop2= for
// the first two such frames. KIND and each node may be *, KIND may end in it, and TO/1 is over
// network 1 alone. Of many frames, those that are alike are shown once, with their number.
type Net struct {
	Now   monotime.Time
	Trip  time.Duration // of each frame
	Times bool          // the story has the instants, counted from the last outcome
	Nodes []Node
	Down  map[int]bool
	// Alike, if set, returns what frames that are alike have in common; else it is their text.
	Alike func(text string) string

	flying, held []flight
	log          []event
	shown        monotime.Time // the last outcome
}

// flight is a frame on its way.
type flight struct {
	Frame
	at monotime.Time // when it arrives
}

type event struct {
	at   monotime.Time
	text string
}

// Start sets the time that a story begins with: cores take the zero instant for none.
func (n *Net) Start() {
	n.Now, n.Down = monotime.At(time.Second), map[int]bool{}
	n.shown = n.Now
}

// Post sends a frame.
func (n *Net) Post(f Frame) { n.fly(flight{f, n.Now.Add(n.Trip)}) }

func (n *Net) fly(f flight) { n.flying = append(n.flying, f) }

// Note adds a line to the outcome.
func (n *Net) Note(format string, args ...any) {
	n.log = append(n.log, event{n.Now, fmt.Sprintf(format, args...)})
}

// errUnknown is of a command that Net does not have.
var errUnknown = errors.New("there is no such command")

// Do runs a command. If it is none of Net's, known is false.
func (n *Net) Do(words []string) (known bool, err error) {
	args := words[1:]
	switch words[0] {
	case "deliver":
		filters, err := parseFilters(args)
		n.deliver(filters)
		return true, err
	case "advance":
		if len(args) == 0 {
			return true, errors.New("advance by what?")
		}
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return true, err
		}
		filters, err := parseFilters(args[1:])
		n.advance(d, filters)
		return true, err
	case "release":
		for _, f := range n.held {
			f.at = n.Now
			n.fly(f)
		}
		slices.SortStableFunc(n.flying, func(a, b flight) int { return int(a.at.Sub(b.at)) })
		n.held = nil
		return true, nil
	case "crash":
		node, err := n.Node(args)
		if err == nil {
			n.Down[node] = true
		}
		return true, err
	}
	return false, fmt.Errorf("%w: %q", errUnknown, words[0])
}

// Node returns the number of a node: the only argument.
func (n *Net) Node(args []string) (int, error) {
	if len(args) == 0 {
		return 0, errors.New("which node?")
	}
	node, err := strconv.Atoi(args[0])
	if err == nil && (node < 0 || node >= len(n.Nodes)) {
		err = fmt.Errorf("node %d of %d", node, len(n.Nodes))
	}
	return node, err
}

// deliver delivers all frames that are on their way, and those that are sent meanwhile.
func (n *Net) deliver(filters []filter) {
	for len(n.flying) > 0 {
		n.step(filters)
	}
}

// step delivers the first frame on its way, or does what is due before.
func (n *Net) step(filters []filter) {
	f := n.flying[0]
	if n.tick(f.at, false) {
		return
	}
	n.flying = n.flying[1:]
	n.Now = later(n.Now, f.at)
	if !n.Down[f.From] {
		n.arrive(f, filters)
	}
}

// tick has the node of the earliest deadline do what is due, if that is before until or, if so
// asked, then. It reports whether there was one.
func (n *Net) tick(until monotime.Time, then bool) bool {
	next, who := until, -1
	for k, node := range n.Nodes {
		at, ok := node.Deadline()
		if ok && !n.Down[k] && (at.Before(next) || then && who < 0 && at == next) {
			next, who = at, k
		}
	}
	if who < 0 {
		return false
	}
	n.Now = later(n.Now, next)
	n.Nodes[who].Advance(n.Now)
	return true
}

func later(a, b monotime.Time) monotime.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// arrive has a frame come to its receivers, unless filters have it otherwise.
func (n *Net) arrive(f flight, filters []filter) {
	line := fmt.Sprintf("%d->%d %s", f.From, f.To[0], f.Text)
	if len(f.To) > 1 {
		line = fmt.Sprintf("%d->* %s", f.From, f.Text)
	}
	var arrives []int
	for _, to := range f.To {
		one := f
		one.To = []int{to}
		switch n.fate(&one.Frame, filters) {
		case "drop":
			line += fmt.Sprintf(" (lost to %d)", to)
			continue
		case "down":
			line += fmt.Sprintf(" (%d is down)", to)
			continue
		case "hold":
			line += fmt.Sprintf(" (held to %d)", to)
			n.held = append(n.held, one)
			continue
		case "copy":
			line += fmt.Sprintf(" (a copy held to %d)", to)
			n.held = append(n.held, one)
		}
		arrives = append(arrives, to)
	}
	n.Note("%s", line)
	for _, to := range arrives {
		one := f.Frame
		one.To = []int{to}
		n.Nodes[to].Receive(n.Now, &one)
	}
}

// fate is what the filters say about a frame to one node.
func (n *Net) fate(f *Frame, filters []filter) (what string) {
	if n.Down[f.To[0]] {
		return "down"
	}
	for i := range filters {
		if filters[i].takes(f) {
			what = filters[i].what
		}
	}
	return what
}

// advance lets time pass.
func (n *Net) advance(d time.Duration, filters []filter) {
	end := n.Now.Add(d)
	for {
		if len(n.flying) > 0 && !n.flying[0].at.After(end) {
			n.step(filters)
		} else if !n.tick(end, true) {
			break
		}
	}
	n.Now = end
}

// Happened returns the frames and notes since the last call.
func (n *Net) Happened() (lines []string) {
	began := n.shown
	n.shown = n.Now
	log := n.log
	n.log = nil
	if !n.Times || len(log) >= many {
		var texts []string
		for _, e := range log {
			texts = append(texts, e.text)
		}
		return Wrap(n.counted(texts))
	}
	for len(log) > 0 {
		at := log[0].at
		var texts []string
		for ; len(log) > 0 && log[0].at == at; log = log[1:] {
			texts = append(texts, log[0].text)
		}
		instant := "+" + at.Sub(began).Round(time.Microsecond).String()
		texts[0] = fmt.Sprintf("%-10s %s", instant, texts[0])
		lines = append(lines, Wrap(texts)...)
	}
	return lines
}

// many is how many events are shown one by one.
const many = 30

// counted replaces lines that appear again and again by the first one with their number.
func (n *Net) counted(log []string) (lines []string) {
	if len(log) < many {
		return log
	}
	alike := n.Alike
	if alike == nil {
		alike = func(text string) string { return text }
	}
	times := map[string]int{}
	for _, line := range log {
		times[alike(line)]++
	}
	for _, line := range log {
		switch n := times[alike(line)]; {
		case n > 1:
			lines = append(lines, fmt.Sprintf("%s (%d times)", line, n))
			times[alike(line)] = 0
		case n == 1:
			lines = append(lines, line)
		}
	}
	return lines
}

// Wrap joins words to lines.
func Wrap(words []string) (lines []string) {
	const width = 110
	for _, w := range words {
		if n := len(lines); n > 0 && len(lines[n-1])+len(w) < width {
			lines[n-1] += "   " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}

// filter selects frames, and says what happens to them.
type filter struct {
	what, kind, from, to, nic string
	left                      int // of the first frames that it takes; < 0: all
}

func parseFilters(args []string) (all []filter, err error) {
	for _, a := range args {
		what, rest, _ := strings.Cut(a, "=")
		kind, way, _ := strings.Cut(rest, ":")
		from, to, ok := strings.Cut(way, "->")
		to, nic, one := strings.Cut(to, "/")
		if !one {
			nic = "*"
		}
		f := filter{strings.TrimRight(what, "0123456789"), kind, from, to, nic, -1}
		if count := what[len(f.what):]; count != "" {
			f.left, _ = strconv.Atoi(count)
		}
		if !ok || f.what != "drop" && f.what != "hold" && f.what != "copy" {
			return nil, fmt.Errorf("%q is no filter", a)
		}
		all = append(all, f)
	}
	return all, nil
}

func (f *filter) takes(frame *Frame) bool {
	is := func(pattern, s string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == s || open && strings.HasPrefix(s, prefix)
	}
	if f.left == 0 || !is(f.kind, frame.Kind) || !is(f.from, strconv.Itoa(frame.From)) ||
		!is(f.to, strconv.Itoa(frame.To[0])) || !is(f.nic, strconv.Itoa(frame.NIC)) {
		return false
	}
	f.left--
	return true
}
