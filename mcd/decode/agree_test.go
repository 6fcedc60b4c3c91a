package decode_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	barrierdecode "github.com/rawlane/rawlane/barrier/decode"
	clusterdecode "github.com/rawlane/rawlane/cluster/decode"
	"github.com/rawlane/rawlane/mcd/decode"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
	netdecode "github.com/rawlane/rawlane/rawnet/decode"
	rpcdecode "github.com/rawlane/rawlane/rpc/decode"
)

// summaryFields are the dissector's fields of records, in the order in which both readers tell them.
var summaryFields = []string{
	"frame", "lane", "op", "stream.kind", "stream.limit", "call.kind",
	"barrier.kind", "barrier.number", "barrier.label", "barrier.entered", "barrier.decided", "barrier.query",
	"barrier.heard", "barrier.group", "barrier.epoch", "barrier.generation", "barrier.algorithm",
	"barrier.incarnation", "barrier.receiver", "barrier.known", "barrier.own", "barrier.lowest", "barrier.answers",
	"barrier.completed", "barrier.completed_to", "barrier.rank", "barrier.reason",
	"discovery.seeking", "discovery.failed", "discovery.nodes", "discovery.network", "discovery.address",
	"discovery.place", "discovery.cores", "discovery.usable", "discovery.path",
	"exchange.kind", "exchange.incarnation", "exchange.receiver", "exchange.number", "exchange.offset",
	"exchange.length", "data",
}

// summary is what a reader says of a message: the values of fields, and how often something is
// malformed.
type summary struct {
	fields    map[string][]string
	malformed int
}

func (s *summary) add(field string, values ...any) {
	for _, v := range values {
		s.fields[field] = append(s.fields[field], fmt.Sprint(v))
	}
}

// String has the fields between bars, as tshark prints them.
func (s *summary) String() string {
	var all []string
	for _, f := range summaryFields {
		all = append(all, strings.Join(s.fields[f], ","))
	}
	return strings.Join(all, "|") + "|" + strings.TrimSuffix(strings.Repeat("Malformed record,", s.malformed), ",")
}

// summarise is what our reader says.
func summarise(t *testing.T, m *decode.Message) string {
	s := &summary{fields: make(map[string][]string)}
	for _, r := range m.Records() {
		switch r := r.(type) {
		case *memdecode.Frame:
			s.add("frame", r.Kind)
			if r.Lane != "" {
				s.add("lane", r.Lane)
			}
		case *memdecode.Operation:
			s.add("op", r.Opcode)
		case *netdecode.Record:
			s.add("stream.kind", r.Kind)
			if r.Limit != nil {
				s.add("stream.limit", *r.Limit)
			}
		case *rpcdecode.Record:
			s.add("call.kind", r.Kind)
		case *netdecode.Packet:
		case *barrierdecode.Message:
			s.addBarrier(r)
		case *clusterdecode.Announcement:
			s.add("discovery.seeking", r.Seeking)
			s.add("discovery.failed", r.Failed)
			s.add("discovery.nodes", r.Nodes)
			s.add("discovery.network", r.Network)
			for _, mac := range r.Networks {
				s.add("discovery.address", mac)
			}
			if p := r.Place; p != nil {
				s.add("discovery.place", "0x"+p.Host)
				s.add("discovery.cores", "0x"+p.Cores)
				s.add("discovery.usable", p.Usable)
				s.add("discovery.path", uint8(p.Path))
			}
		case *clusterdecode.Exchange:
			s.add("exchange.kind", r.Kind)
			s.add("exchange.incarnation", "0x"+r.Incarnation)
			s.add("exchange.receiver", "0x"+r.Receiver)
			s.add("exchange.number", r.Number)
			s.add("exchange.offset", r.Offset)
			length := r.Length
			if r.None {
				length = 1<<32 - 1
			}
			s.add("exchange.length", length)
		case decode.Malformed:
			s.malformed++
			continue
		default:
			t.Errorf("%T is not compared", r)
		}
		if b := r.Data(); len(b) > 0 {
			s.add("data", hex.EncodeToString(b))
		}
	}
	return s.String()
}

var reasons = []string{"", "silent", "unreachable", "left", "restarted", "another algorithm"}

func (s *summary) addBarrier(m *barrierdecode.Message) {
	s.add("barrier.kind", m.Kind)
	s.add("barrier.number", m.Number)
	s.add("barrier.label", m.Label)
	s.add("barrier.entered", m.Entered)
	s.add("barrier.heard", m.Heard)
	s.add("barrier.group", "0x"+m.Group)
	s.add("barrier.epoch", m.Epoch)
	s.add("barrier.generation", m.Generation)
	s.add("barrier.algorithm", "0x"+m.Algorithm)
	s.add("barrier.incarnation", "0x"+m.Incarnation)
	for _, known := range m.Known {
		s.add("barrier.known", "0x"+known)
	}
	switch m.Kind {
	case "not yet":
		s.add("barrier.own", m.Own)
	case "no such group":
		s.add("barrier.lowest", m.Lowest)
		s.add("barrier.answers", m.Answers)
	case "report":
		s.add("barrier.decided", m.Decided)
		s.add("barrier.query", m.Query)
	}
	if m.Receiver != "" {
		s.add("barrier.receiver", "0x"+m.Receiver)
	}
	for _, d := range m.Completed {
		s.add("barrier.completed", d.Number)
		s.add("barrier.completed_to", d.Generation)
	}
	for i, g := range m.Gone {
		s.add("barrier.rank", g.Rank)
		if i == 0 || m.Kind == "report" { // a fail has one reason for all
			s.add("barrier.reason", slices.Index(reasons, g.Reason))
		}
	}
}

// The dissector of docs/rawlane.lua reads records as we do, those that make no sense too.
func TestWiresharkDissector_Records(t *testing.T) {
	var frames [][]byte
	var want []string
	all := payloads(t)
	for i := range all {
		frames = append(frames, frame(t, &all[i], string(all[i].Payload)))
		want = append(want, summarise(t, &all[i]))
	}
	var fields []string
	for _, field := range summaryFields {
		fields = append(fields, "rawlane."+field)
	}
	got := tsharkFields(t, write(t, frames), append(fields, "_ws.expert.message")...)
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	said := make(map[int]bool) // fields that some message has
	for i := range want {
		values := strings.Split(got[i], "|")
		for k, v := range values[:len(values)-1] {
			said[k] = said[k] || v != ""
			if flag := summaryFields[k]; flags[flag] { // older versions print numbers
				values[k] = strings.NewReplacer("True", "true", "False", "false", "1", "true", "0", "false").Replace(v)
			}
		}
		// Wireshark has remarks of its own, such as on a name with a zero byte.
		n := strings.Count(values[len(values)-1], "Malformed record")
		values[len(values)-1] = strings.TrimSuffix(strings.Repeat("Malformed record,", n), ",")
		if got := strings.Join(values, "|"); got != want[i] {
			t.Errorf("frame %d, port %d, %x:\n got %s\nwant %s", i+1, all[i].DstPort, all[i].Payload, got, want[i])
		}
	}
	for k, field := range summaryFields {
		if !said[k] {
			t.Errorf("no message has rawlane.%s", field)
		}
	}
}

// flags are fields that are true or false.
var flags = map[string]bool{"barrier.entered": true, "barrier.decided": true, "barrier.query": true,
	"barrier.heard": true, "discovery.seeking": true, "discovery.failed": true}
