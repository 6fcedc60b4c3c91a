// Package diagnose is the verbs that find faults: doctor, node, ping, matrix and dump.
package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster/pathtest"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// tagList is a flag: VIDs and ranges of them, and "untagged", separated by commas.
type tagList []transport.OptionalTag

const untaggedWord = "untagged"

// Set parses the flag.
func (l *tagList) Set(text string) error {
	*l = nil
	for _, field := range strings.Split(text, ",") {
		if field == untaggedWord {
			*l = append(*l, transport.Untagged)
			continue
		}
		first, last, ok := cli.ParseSpan(field, 0, uint16(transport.MaxVID))
		if !ok {
			return fmt.Errorf("%q: want VIDs of 0 (priority only) to %d, ranges such as 2-5, or %s",
				field, transport.MaxVID, untaggedWord)
		}
		for vid := first; vid <= last; vid++ {
			*l = append(*l, transport.Tagged(transport.Tag{VID: transport.VID(vid)}))
		}
	}
	return nil
}

// String formats the flag as Set parses it.
func (l *tagList) String() string {
	var fields []string
	for i := 0; i < len(*l); {
		if !(*l)[i].Tagged {
			fields = append(fields, untaggedWord)
			i++
			continue
		}
		end := i
		for end+1 < len(*l) && (*l)[end+1].Tagged && (*l)[end+1].Tag.VID == (*l)[end].Tag.VID+1 {
			end++
		}
		if end == i {
			fields = append(fields, fmt.Sprint((*l)[i].Tag.VID))
		} else {
			fields = append(fields, fmt.Sprintf("%d-%d", (*l)[i].Tag.VID, (*l)[end].Tag.VID))
		}
		i = end + 1
	}
	return strings.Join(fields, ",")
}

// words names the tags in a sentence: "VID 7", "no tag", "VIDs untagged,1-4".
func (l *tagList) words() string {
	if len(*l) == 1 {
		return (*l)[0].String()
	}
	return "VIDs " + l.String()
}

// Type names the value in the help.
func (l *tagList) Type() string { return "VID,..." }

// maxProbes stops a typing error from probing for ever.
const maxProbes = 1_000_000_000

// pathFlags are the flags that ping and matrix share: the nodes, the tags, and the probes.
type pathFlags struct {
	cluster launch.ClusterFlags
	tags    tagList
	pcp     int
	count   int
	size    int
	wait    time.Duration
	json    bool
}

func (p *pathFlags) flags(cmd *cobra.Command, count int) {
	p.cluster = launch.ClusterFlags{Pin: "none", VID: launch.NoVID}
	f := cmd.Flags()
	f.StringVar(&p.cluster.Kind, "link", "fabric", "kind of link of nodes that are started here: "+launch.LinkKinds())
	launch.LinkChoice(cmd)
	p.cluster.MachineFlags(cmd)
	f.Var(&p.tags, "vids", "probe by these VLAN tags: VIDs, ranges, "+untaggedWord)
	f.IntVar(&p.pcp, "pcp", 0, "priority in the tags, 0 to 7")
	f.IntVar(&p.count, "count", count, "probes along each path")
	f.IntVar(&p.size, "size", mcd.MinProbe, "length of the probes, in bytes of payload; the default is the least")
	f.DurationVar(&p.wait, "wait", pathtest.DefaultTimeout, "how long an answer is awaited")
	f.BoolVar(&p.json, "json", false, "print one JSON object per line")
}

func (p *pathFlags) validate() error {
	if p.pcp < 0 || p.pcp > 7 {
		return cli.Misuse("--pcp %d: want 0 to 7", p.pcp)
	}
	if p.count < 1 || p.count > maxProbes {
		return cli.Misuse("--count %d: want 1 to %d", p.count, maxProbes)
	}
	if p.size < mcd.MinProbe {
		return cli.Misuse("--size %d: want %d or more", p.size, mcd.MinProbe)
	}
	if p.wait < time.Millisecond {
		return cli.Misuse("--wait %v: want %v or more", p.wait, time.Millisecond)
	}
	if len(p.tags) == 0 {
		p.tags = tagList{transport.Untagged}
	}
	for i := range p.tags {
		if p.tags[i].Tagged {
			p.tags[i].Tag.PCP = transport.PCP(p.pcp)
		}
	}
	if p.pcp != 0 && !slices.ContainsFunc(p.tags, func(t transport.OptionalTag) bool { return t.Tagged }) {
		return cli.Misuse("--pcp is part of a tag: give --vids, too (0 for a tag with priority alone)")
	}
	if err := p.cluster.Validate(); err != nil {
		return err
	}
	for _, flag := range []string{"mtu", "segment", "trains", "xdp-mode"} {
		if !p.cluster.Here() && p.cluster.Given(flag) {
			return cli.Misuse("--%s: has no effect on nodes that are started here (leave it out, or give --node, "+
				"and run the others elsewhere)", flag)
		}
	}
	return p.cluster.CheckSize(p.size)
}

// fits checks --size against the links.
func (p *pathFlags) fits(ep *mcd.Endpoint) error {
	if p.size > ep.MaxPayload() {
		return fmt.Errorf("--size %d: %w", p.size, &transport.SizeError{Size: p.size, Max: ep.MaxPayload()})
	}
	return nil
}

func (p *pathFlags) options() pathtest.Options {
	return pathtest.Options{Count: p.count, Size: p.size, Timeout: p.wait}
}

// open joins the cluster as one node, or makes all nodes in this process. The fabric is a fat tree
// with VIDs 1 and 2.
func (p *pathFlags) open(cmd *cobra.Command) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	if p.cluster.Here() {
		m, err := join(cmd, &p.cluster)
		if err != nil {
			return nil, nil, err
		}
		return []*mcd.Endpoint{m.Endpoint}, m.Close, nil
	}
	s, err := launch.OpenDemoNet(p.cluster.Kind, p.cluster.Nodes, nil)
	if err != nil {
		return nil, nil, err
	}
	links := make([][]transport.Link, len(s.Links))
	for k, l := range s.Links {
		links[k] = []transport.Link{l}
	}
	return p.cluster.Open(links, func() error { s.Close(); return nil })
}

// join finds the other nodes of a cluster, and says so meanwhile.
func join(cmd *cobra.Command, c *launch.ClusterFlags) (*launch.Member, error) {
	note := cli.NewProgress(cmd.ErrOrStderr())
	note.Say("looking for %s ...", cli.Count(c.Nodes, "node"))
	defer note.Clear()
	return c.Join(cmd.Context())
}

// pathRecord is the measurement of a path, as JSON.
type pathRecord struct {
	Schema          int           `json:"schema"`
	From            mcd.NodeID    `json:"from"`
	To              mcd.NodeID    `json:"to"`
	Tagged          bool          `json:"tagged"`
	VID             transport.VID `json:"vid"`
	PCP             transport.PCP `json:"pcp"`
	Bytes           int           `json:"size_bytes"`
	Sent            int           `json:"sent"`
	Answered        int           `json:"answered"`
	MinUS           float64       `json:"min_us"` // of round trips, as all of these
	P50US           float64       `json:"p50_us"`
	P99US           float64       `json:"p99_us"`
	MaxUS           float64       `json:"max_us"`
	MBPerS          float64       `json:"mb_per_s,omitempty"`          // in each direction at once
	PeerReceivedTag string        `json:"peer_received_tag,omitempty"` // the tag of arriving probes, if it differs
	ReceivedTag     string        `json:"received_tag,omitempty"`      // likewise of the replies
}

// pathSchema is the version of pathRecord.
const pathSchema = 1

// measure measures a path.
func (p *pathFlags) measure(ctx context.Context, ep *mcd.Endpoint, path mcd.Path) (pathRecord, error) {
	m, err := pathtest.Measure(ctx, ep, path, p.options(), nil)
	us := func(q float64) float64 { return float64(m.Quantile(q)) / 1e3 }
	r := pathRecord{
		Schema: pathSchema, From: ep.Node(), To: path.Node, Tagged: path.Tagged, VID: path.Tag.VID, PCP: path.Tag.PCP,
		Bytes: p.size, Sent: m.Sent, Answered: m.Answered,
		MinUS: us(0), P50US: us(0.5), P99US: us(0.99), MaxUS: us(1),
	}
	if m.Alive() && m.PeerReceivedTag != path.OptionalTag {
		r.PeerReceivedTag = m.PeerReceivedTag.String()
	}
	if m.Alive() && m.ReceivedTag != path.OptionalTag {
		r.ReceivedTag = m.ReceivedTag.String()
	}
	return r, err
}

// by returns the tag of the path.
func (r *pathRecord) by() transport.OptionalTag {
	if !r.Tagged {
		return transport.Untagged
	}
	return transport.Tagged(transport.Tag{VID: r.VID, PCP: r.PCP})
}

var errSilence = errors.New("no answer")
