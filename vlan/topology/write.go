package topology

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
)

// WriteTo writes t as YAML, from which Read makes the same. If all cables have one rate, it is
// written once. Errors: ErrInvalid; the writer's.
func (t *Topology) WriteTo(w io.Writer) (n int64, err error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	var b strings.Builder
	common := t.commonRate()
	if common != 0 {
		fmt.Fprintf(&b, "rate: %v\n", common)
	}
	rate := func(r Rate) string {
		if common != 0 {
			return ""
		}
		return ", rate: " + r.String()
	}
	list := func(key string, entries int) {
		b.WriteString(key + ":")
		if entries == 0 {
			b.WriteString(" []")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "switches: [%s]\n", yamlNames(t.Switches))
	list("hosts", len(t.Hosts))
	for _, h := range t.Hosts {
		fmt.Fprintf(&b, "  - {name: %s, switch: %s%s}\n",
			yamlName(h.Name), yamlName(t.Switches[h.Switch]), rate(h.Rate))
	}
	list("links", len(t.Links))
	for _, l := range t.Links {
		fmt.Fprintf(&b, "  - {between: [%s, %s]%s}\n",
			yamlName(t.Switches[l.A]), yamlName(t.Switches[l.B]), rate(l.Rate))
	}
	list("vlans", len(t.VLANs))
	names := t.LinkNames()
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

// commonRate returns the rate of all cables, or 0 if they differ.
func (t *Topology) commonRate() Rate {
	var rates []Rate
	for _, h := range t.Hosts {
		rates = append(rates, h.Rate)
	}
	for _, l := range t.Links {
		rates = append(rates, l.Rate)
	}
	if rates = slices.Compact(rates); len(rates) != 1 {
		return 0
	}
	return rates[0]
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
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	word := strings.Trim(name, letters+"0123456789.-_") == "" && strings.IndexAny(name, letters) == 0
	if word && !strings.EqualFold(name, "null") {
		return name
	}
	return strictyaml.Quote(name)
}
