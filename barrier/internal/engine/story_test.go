package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/monotime"
)

// transcript is nodes and the frames between them. Frames take no time, and arrive in the order
// in which they were sent when a command delivers them.
//
//	group [b] algo=A n=N [members=1,2] [2=B]   makes a group, of all N nodes or some; node 2 runs algorithm B
//	arrive [b] [number=7] 0 1                  nodes enter a barrier
//	deliver [FILTER...]                        all frames on their way arrive, and those that this makes
//	advance 2ms [FILTER...]                    time passes; what is due is done, and delivered
//	release                                    frames that were held are on their way again
//	leave 2                                    says goodbye to its groups; again until all have heard, then forget
//	forget 2                                   forgets its groups but for the goodbye
//	crash 3, restart 3                         ends a node; has it begin anew, in the same groups
//	status 0                                   requests the status of number 0
//
// A FILTER is drop=KIND:FROM->TO, hold= or copy= (it arrives, and a copy is held). KIND and each
// node may be *; TO/1 is over network 1 alone. Frames that are sent again and again are shown
// once, with their number.
type transcript struct {
	now    monotime.Time
	sites  []*site
	groups []storyGroup
	life   uint32
	down   map[int]bool
	flying []frame
	held   []frame
	log    []string
}

type storyGroup struct {
	name    string
	cfg     Config
	other   map[int]schedule.Algorithm // of nodes that run another one
	nodes   []int
	numbers []uint8 // that were used
}

// frame is on its way.
type frame struct {
	from, nic int
	to        []int
	b         []byte
	all       bool
}

func (tr *transcript) do(words []string) error {
	if len(words) == 0 {
		return nil
	}
	args := words[1:]
	switch words[0] {
	case "group":
		return tr.group(args)
	case "arrive":
		return tr.arrive(args)
	case "deliver":
		filters, err := parseFilters(args)
		tr.deliver(filters)
		return err
	case "advance":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		filters, err := parseFilters(args[1:])
		tr.advance(d, filters)
		return err
	case "release":
		tr.flying, tr.held = append(tr.flying, tr.held...), nil
		return nil
	}
	node, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	switch s := tr.sites[node]; words[0] {
	case "leave":
		for _, m := range s.members {
			m.flush(m.Leave(nil))
		}
	case "forget":
		for _, m := range s.members {
			m.left = true
		}
	case "status":
		s.members[0].flush(s.members[0].RequestStatus(0, nil))
	case "crash":
		tr.down[node] = true
	case "restart":
		tr.down[node] = false
		tr.start(node)
	default:
		return fmt.Errorf("there is no %q", words[0])
	}
	return nil
}

func (tr *transcript) group(args []string) error {
	g := storyGroup{cfg: Config{NICs: 1, PeerTimeout: DefaultPeerTimeout}, other: map[int]schedule.Algorithm{}}
	n := len(tr.sites)
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		var err error
		switch key {
		case "algo":
			g.cfg.Algorithm, err = schedule.Parse(value)
		case "n":
			n, err = strconv.Atoi(value)
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
	if len(tr.sites) == 0 {
		tr.now, tr.down = monotime.At(time.Second), map[int]bool{}
		tr.sites = make([]*site, n)
	}
	g.cfg.Identity = Identity{uint64(len(tr.groups)) + 1, 1}
	tr.groups = append(tr.groups, g)
	for node := range tr.sites {
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
func (tr *transcript) start(node int) {
	s := &site{node: node, ended: func(*member, uint8) {}}
	s.post = func(to []int, nic int, b []byte) {
		if len(to) > 0 {
			tr.flying = append(tr.flying, frame{node, nic, slices.Clone(to), b, len(to) > 1})
		}
	}
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
	tr.sites[node] = s
}

func (tr *transcript) arrive(args []string) error {
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
		if err := tr.sites[node].member(g.cfg.Identity).arrive(tr.now, number); err != nil {
			tr.log = append(tr.log, fmt.Sprintf("%d: %v", node, err))
		}
	}
	return nil
}

// deliver delivers all frames that are on their way, and those that are sent meanwhile.
func (tr *transcript) deliver(filters []filter) {
	for len(tr.flying) > 0 {
		f := tr.flying[0]
		tr.flying = tr.flying[1:]
		if !tr.down[f.from] {
			tr.deliverOne(f, filters)
		}
	}
}

func (tr *transcript) deliverOne(f frame, filters []filter) {
	var m Message
	if err := Parse(f.b, &m); err != nil {
		panic(err)
	}
	kind := strings.ReplaceAll(m.Kind.String(), " ", "_")
	line := fmt.Sprintf("%d->%d %v", f.from, f.to[0], &m)
	if f.all {
		line = fmt.Sprintf("%d->* %v", f.from, &m)
	}
	if f.nic > 0 {
		line += fmt.Sprintf(" nic=%d", f.nic)
	}
	if len(tr.groups) > 1 {
		if m.Identity.Hash > 1 {
			line += " group=" + tr.groups[m.Identity.Hash-1].name
		}
	}
	var arrives []int
	for _, to := range f.to {
		fate := ""
		for i := range filters {
			if filters[i].matches(kind, f.from, to, f.nic) {
				fate = filters[i].what
			}
		}
		if tr.down[to] {
			fate = "down"
		}
		one := frame{f.from, f.nic, []int{to}, f.b, false}
		switch fate {
		case "drop":
			line += fmt.Sprintf(" (lost to %d)", to)
			continue
		case "down":
			line += fmt.Sprintf(" (%d is down)", to)
			continue
		case "hold":
			line += fmt.Sprintf(" (held to %d)", to)
			tr.held = append(tr.held, one)
			continue
		case "copy":
			line += fmt.Sprintf(" (a copy held to %d)", to)
			tr.held = append(tr.held, one)
		}
		arrives = append(arrives, to)
	}
	tr.log = append(tr.log, line)
	for _, to := range arrives {
		tr.sites[to].receive(tr.now, f.from, f.nic, f.b)
	}
}

// advance lets time pass.
func (tr *transcript) advance(d time.Duration, filters []filter) {
	end := tr.now.Add(d)
	for {
		next, who := end, -1
		for node, s := range tr.sites {
			if at, ok := s.deadline(); ok && !tr.down[node] && !at.After(next) && (who < 0 || at.Before(next)) {
				next, who = at, node
			}
		}
		if who < 0 {
			break
		}
		if next.After(tr.now) {
			tr.now = next
		}
		tr.sites[who].advance(tr.now)
		tr.deliver(filters)
	}
	tr.now = end
}
