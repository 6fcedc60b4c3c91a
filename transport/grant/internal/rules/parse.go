package rules

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// Bounds of a file.
const (
	// MaxFile is its longest, in bytes.
	MaxFile = 1 << 20
	// MaxLinks is the largest limit of links: a service has no more connections.
	MaxLinks = 4096
	// maxRanges is how many clusters, or ports, a line may list. It bounds the filter that the
	// kernel runs for each frame.
	maxRanges = 16
	// maxName is the longest name of an interface: IFNAMSIZ less its end.
	maxName = 15
)

// DefaultLimit counts where no line sets another one.
var DefaultLimit = Limit{Links: 16, Memory: 64 << 20}

// DefaultTotal counts where no line sets another one. The memory of rings is the kernel's, and is
// neither swapped nor counted to anybody.
var DefaultTotal = Limit{Links: MaxLinks, Memory: 1 << 30}

// Subjects of a line.
const (
	kindUser  = "user"
	kindGroup = "group"
	kindAny   = "any"
	kindTotal = "total" // of a limit alone: all users together
)

// Lookup finds the number of a user's or group's name.
type Lookup struct {
	User, Group func(name string) (uint32, error)
}

// Parse reads a file. The error lists each wrong line.
func Parse(name string, text []byte, lookup Lookup) (*Rules, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, MaxFile)
	}
	r := &Rules{Name: name}
	var wrong []error
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		p := &parser{words: strings.Fields(line), lookup: lookup}
		if len(p.words) == 0 {
			continue
		}
		if err := p.line(r); err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, number, err))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return r, nil
}

// parser reads one line, word by word.
type parser struct {
	words  []string
	lookup Lookup
}

// next takes the next word; "" at the end.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

// value takes the value of a setting, which must stand there.
func (p *parser) value(name string) (string, error) {
	if got := p.next(); got != name {
		return "", fmt.Errorf("%q: want %s here", got, name)
	}
	v := p.next()
	if v == "" {
		return "", fmt.Errorf("%s: no value", name)
	}
	return v, nil
}

func (p *parser) line(r *Rules) error {
	switch verb := p.next(); verb {
	case "allow":
		a, err := p.allowance()
		if err == nil {
			r.allows = append(r.allows, a)
		}
		return err
	case "limit":
		l, err := p.restriction()
		if err == nil && slices.ContainsFunc(r.limits, func(o restriction) bool { return o.same(l.who) }) {
			err = fmt.Errorf("a second limit for %v", l.who)
		}
		if err == nil {
			r.limits = append(r.limits, l)
		}
		return err
	default:
		return fmt.Errorf("%q: want allow or limit", verb)
	}
}

// allowance reads WHO interface LIST cluster LIST ports LIST [ethertype N] [xdp yes].
func (p *parser) allowance() (a allowance, err error) {
	if a.who, err = p.who(); err != nil {
		return a, err
	}
	if a.interfaces, err = p.interfaces(); err != nil {
		return a, err
	}
	clusters, err := ranges[uint32](p, "cluster", math.MaxUint32)
	if err != nil {
		return a, err
	}
	ports, err := ranges[uint8](p, "ports", math.MaxUint8)
	if err != nil {
		return a, err
	}
	for _, c := range clusters {
		a.scopes = append(a.scopes, Scope{c, ports})
	}
	if a.etherType = transport.EtherTypeDefault; len(p.words) > 0 && p.words[0] != "xdp" {
		if a.etherType, err = p.etherType(); err != nil {
			return a, err
		}
	}
	if len(p.words) > 0 && p.words[0] == "xdp" {
		if a.xdp, err = p.xdp(); err != nil {
			return a, err
		}
	}
	return a, p.end()
}

// xdp reads xdp yes: also by link xdp, which takes the interface's one XDP program.
func (p *parser) xdp() (bool, error) {
	text, err := p.value("xdp")
	if err == nil && text != "yes" && text != "no" {
		err = fmt.Errorf("xdp %q: want yes or no", text)
	}
	return text == "yes", err
}

// restriction reads WHO links N memory SIZE, or the same of the total.
func (p *parser) restriction() (l restriction, err error) {
	if len(p.words) > 0 && p.words[0] == kindTotal {
		l.kind = p.next()
	} else if l.who, err = p.who(); err != nil {
		return l, err
	}
	links, err := p.value("links")
	if err != nil {
		return l, err
	}
	n, err := strconv.ParseUint(links, 10, 16)
	if err != nil || n > MaxLinks {
		return l, fmt.Errorf("links %q: want 0 to %d", links, MaxLinks)
	}
	memory, err := p.value("memory")
	if err != nil {
		return l, err
	}
	if l.Memory, err = parseSize(memory); err != nil {
		return l, err
	}
	l.Links = int(n)
	return l, p.end()
}

func (p *parser) end() error {
	if len(p.words) > 0 {
		return fmt.Errorf("%q: want the end of the line", p.words[0])
	}
	return nil
}

func (p *parser) who() (w who, err error) {
	w.kind = p.next()
	if w.kind == kindAny {
		return w, nil
	}
	look := p.lookup.User
	switch w.kind {
	case kindUser:
	case kindGroup:
		look = p.lookup.Group
	default:
		return w, fmt.Errorf("%q: want user NAME, group NAME or any", w.kind)
	}
	if w.name = p.next(); w.name == "" {
		return w, fmt.Errorf("%s: no name", w.kind)
	}
	if n, err := strconv.ParseUint(w.name, 10, 32); err == nil {
		w.id = uint32(n)
		return w, nil
	}
	if w.id, err = look(w.name); err != nil {
		return w, fmt.Errorf("%v: %w", w, err)
	}
	return w, nil
}

func (p *parser) interfaces() ([]string, error) {
	list, err := p.value("interface")
	if err != nil || list == kindAny {
		return nil, err
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if n == "" || n == kindAny || len(n) > maxName || strings.ContainsAny(n, "/:*") {
			return nil, fmt.Errorf("interface %q: want names of interfaces, or any", list)
		}
	}
	return names, nil
}

func (p *parser) etherType() (transport.EtherType, error) {
	text, err := p.value("ethertype")
	if err != nil {
		return 0, err
	}
	n, err := parseNumber(text)
	if err != nil || n > math.MaxUint16 {
		return 0, fmt.Errorf("ethertype %q: %w", text, errEtherType)
	}
	if err := CheckEtherType(transport.EtherType(n)); err != nil {
		return 0, fmt.Errorf("ethertype %q: %w", text, err)
	}
	return transport.EtherType(n), nil
}

// CheckEtherType returns an error if no rule can give an EtherType away.
func CheckEtherType(t transport.EtherType) error {
	switch {
	case t < minEtherType, t == transport.EtherTypeAny:
		return errEtherType
	case slices.Contains(othersEtherTypes, t):
		return errOthersEtherType
	}
	return nil
}

var (
	errEtherType       = fmt.Errorf("want a number, %#04x to 0xfffe", minEtherType)
	errOthersEtherType = errors.New("is of IP, ARP or VLAN tags (the right to receive it is the right to " +
		"read other programs' traffic)")
)

// minEtherType is the least: lower values are lengths (IEEE 802.3).
const minEtherType = 0x0600

// othersEtherTypes no rule can give away: IPv4, ARP, IPv6 and the two VLAN tags.
var othersEtherTypes = []transport.EtherType{
	0x0800, 0x0806, 0x86dd, transport.EtherTypeVLAN, transport.EtherTypeQinQ,
}

// ranges reads NAME any, or NAME N,N-N and so on; the result is in order and does not overlap.
func ranges[T uint8 | uint32](p *parser, name string, last T) ([]Range[T], error) {
	list, err := p.value(name)
	if err != nil {
		return nil, err
	}
	if list == kindAny {
		return []Range[T]{{0, last}}, nil
	}
	var all []Range[T]
	for _, item := range strings.Split(list, ",") {
		first, end, isRange := strings.Cut(item, "-")
		if !isRange {
			end = first
		}
		a, errA := parseNumber(first)
		b, errB := parseNumber(end)
		if errA != nil || errB != nil || b > uint64(last) || a > b {
			return nil, fmt.Errorf("%s %q: want any, or numbers and ranges (0-9,20) up to %d", name, item, last)
		}
		all = append(all, Range[T]{T(a), T(b)})
	}
	if len(all) > maxRanges {
		return nil, fmt.Errorf("%s: %d numbers and ranges (at most %d on a line)", name, len(all), maxRanges)
	}
	slices.SortFunc(all, func(x, y Range[T]) int { return cmp.Compare(x.First, y.First) })
	return merge(all), nil
}

// parseNumber reads a decimal number or, behind 0x, a hexadecimal one. Another one that begins with
// 0 is refused: who writes 010 may mean 10 or, as in C, 8, and would give away what was not meant.
func parseNumber(text string) (uint64, error) {
	if digits, isHex := strings.CutPrefix(text, "0x"); isHex {
		return strconv.ParseUint(digits, 16, 32)
	}
	if len(text) > 1 && text[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(text, 10, 32)
}

// merge joins ranges, which are in order, that overlap or touch.
func merge[T uint8 | uint32](all []Range[T]) []Range[T] {
	merged := all[:1]
	for _, r := range all[1:] {
		if last := &merged[len(merged)-1]; uint64(r.First) <= uint64(last.Last)+1 {
			last.Last = max(last.Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// maxSize bounds a size in bytes, so that sums of them fit an int64.
const maxSize = 1 << 50

// parseSize reads bytes, with K, M or G for powers of 1024.
func parseSize(text string) (int64, error) {
	digits, shift := text, 0
	if i := strings.IndexByte("KMG", text[len(text)-1]); i >= 0 {
		digits, shift = text[:len(text)-1], 10*(i+1)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > maxSize>>shift {
		return 0, fmt.Errorf("memory %q: want bytes, or 64K, 16M, 1G, up to 1048576G", text)
	}
	return int64(n) << shift, nil
}
