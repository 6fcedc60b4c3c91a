package topology

import (
	"fmt"
	"io"
	"strings"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// WriteTo writes t as YAML, from which Read makes the same. If all cables have one rate, it is said once.
// Errors: ErrInvalid; the writer's.
func (t *Topology) WriteTo(w io.Writer) (n int64, err error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	var b strings.Builder
	common := t.commonRate()
	rate := func(r Rate) string {
		if common != 0 {
			return ""
		}
		return ", rate: " + r.String()
	}
	if common != 0 {
		fmt.Fprintf(&b, "rate: %v\n", common)
	}
	fmt.Fprintf(&b, "switches: [%s]\nhosts:%s\n", yamlNames(t.Switches), emptyList(len(t.Hosts)))
	for _, h := range t.Hosts {
		fmt.Fprintf(&b, "  - {name: %s, switch: %s%s}\n", yamlName(h.Name), yamlName(t.Switches[h.Switch]), rate(h.Rate))
	}
	fmt.Fprintf(&b, "links:%s\n", emptyList(len(t.Links)))
	for _, l := range t.Links {
		fmt.Fprintf(&b, "  - {between: [%s, %s]%s}\n", yamlName(t.Switches[l.A]), yamlName(t.Switches[l.B]), rate(l.Rate))
	}
	names := t.LinkNames()
	fmt.Fprintf(&b, "vlans:%s\n", emptyList(len(t.VLANs)))
	for _, v := range t.VLANs {
		members := make([]string, len(v.Links))
		for i, l := range v.Links {
			members[i] = names[l]
		}
		fmt.Fprintf(&b, "  - {vid: %d, links: [%s]}\n", v.VID, yamlNames(members))
	}
	written, err := io.WriteString(w, b.String())
	return int64(written), err
}

// emptyList is what follows the key of a list without entries.
func emptyList(entries int) string {
	if entries == 0 {
		return " []"
	}
	return ""
}

// commonRate returns the rate of all cables, or 0 if they differ.
func (t *Topology) commonRate() (common Rate) {
	for _, h := range t.Hosts {
		if common == 0 {
			common = h.Rate
		}
		if h.Rate != common {
			return 0
		}
	}
	for _, l := range t.Links {
		if common == 0 {
			common = l.Rate
		}
		if l.Rate != common {
			return 0
		}
	}
	return common
}

func yamlNames(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = yamlName(name)
	}
	return strings.Join(texts, ", ")
}

// yamlName writes a name without quotes if it is a word for YAML, too.
func yamlName(name string) string {
	plain := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	})
	letter := plain && (name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z')
	if letter && !strings.EqualFold(name, "null") {
		return name
	}
	return strictyaml.Quote(name)
}
