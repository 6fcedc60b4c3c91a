package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Plan is a plan.Plan as JSON.
type Plan struct{ plan.Plan }

type planJSON struct {
	Topology string                   `json:"topology,omitempty"`
	VIDs     []transport.VID          `json:"vids"`
	PCP      transport.PCP            `json:"pcp"`
	Nodes    []plan.Node              `json:"nodes"`
	Pairs    map[string]transport.VID `json:"pairs,omitempty"` // by the numbers of two nodes: "2-8"
}

// MarshalJSON implements json.Marshaler. Equal plans give equal bytes.
func (p Plan) MarshalJSON() ([]byte, error) {
	doc := planJSON{p.Topology, p.VIDs, p.PCP, p.Nodes, make(map[string]transport.VID, len(p.Pairs))}
	for pair, vid := range p.Pairs {
		doc.Pairs[pair.String()] = vid
	}
	return json.Marshal(doc)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses unknown fields, what is given twice, and a
// pair with two VIDs. Whether the plan makes sense is up to Validate.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var doc planJSON
	if err := Decode(b, &doc); err != nil {
		return err
	}
	if name, twice := repeated(b); twice {
		return badRequest("plan: %q is given twice (want it once)", name)
	}
	read := plan.Plan{Topology: doc.Topology, VIDs: doc.VIDs, PCP: doc.PCP, Nodes: doc.Nodes}
	if len(doc.Pairs) > 0 {
		read.Pairs = make(map[plan.Pair]transport.VID, len(doc.Pairs))
	}
	for text, vid := range doc.Pairs {
		pair, err := plan.ParsePair(text)
		if err != nil {
			return badRequest("pairs: %v", err)
		}
		if other, again := read.Pairs[pair]; again && other != vid {
			return fmt.Errorf("%w: pairs: %v: given twice, with VID %d and VID %d (want one for both directions)",
				ErrOneSided, pair, min(vid, other), max(vid, other))
		}
		read.Pairs[pair] = vid
	}
	p.Plan = read
	return nil
}

// Equal reports whether two plans are equal; nil equals nil alone.
func (p *Plan) Equal(other *Plan) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Topology == other.Topology && p.PCP == other.PCP && slices.Equal(p.VIDs, other.VIDs) &&
		slices.Equal(p.Nodes, other.Nodes) && maps.Equal(p.Pairs, other.Pairs)
}

// PlanID returns the name of a plan: a hash of its content. Equal plans have one name on all nodes,
// different plans have different names. It is 12 hexadecimal digits, of SHA-256, and empty for no
// plan.
func PlanID(p *plan.Plan) string {
	if p == nil {
		return ""
	}
	b, _ := json.Marshal(Plan{*p}) // a plan consists of addresses, numbers and text: all of it is JSON
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
