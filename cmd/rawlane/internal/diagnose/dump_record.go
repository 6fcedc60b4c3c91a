package diagnose

import (
	"fmt"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// dumpFrame is a captured frame, and its headers as far as they are passed: a datagram has several
// frames.
type dumpFrame struct {
	gopacket.Packet
	n    int // its number in the file
	info gopacket.CaptureInfo

	eth    *layers.Ethernet // the last one
	tags   []dumpTag        // behind it
	behind uint16           // the EtherType of what is behind them, or in a train
}

// pass notes the headers in a layer.
func (f *dumpFrame) pass(l gopacket.Layer) {
	switch l := l.(type) {
	case *layers.Ethernet:
		f.eth, f.tags, f.behind = l, nil, uint16(l.EthernetType)
	case *layers.Dot1Q:
		f.tags = append(f.tags, dumpTag{transport.VID(l.VLANIdentifier), transport.PCP(l.Priority), l.DropEligible})
		f.behind = uint16(l.Type)
	case *layers.UDP:
		f.behind = uint16(l.DstPort)
	}
}

// inPart says whether a message, or the frame if m is nil, is cut off because the capture has less
// of the frame than there was, as with tcpdump -s: no node would drop it for that.
func (f *dumpFrame) inPart(m *decode.Message) bool {
	if f.info.CaptureLength >= f.info.Length {
		return false
	}
	if m == nil {
		return f.ErrorLayer() != nil
	}
	return f.Metadata().Truncated && m.Length > len(m.Payload)
}

// addresses shows the Ethernet header: 02:00:00:00:00:01 > 02:00:00:00:00:02 VID 5 PCP 1.
func (r *dumpRecord) addresses() string {
	if r.Src == "" {
		return "no Ethernet header"
	}
	s := r.Src + " > " + r.Dst
	for _, t := range r.Tags {
		s += " " + transport.Tag(t).String()
	}
	return s
}

// describe shows what is behind the header.
func (r *dumpRecord) describe(f *dumpFrame, m *decode.Message) string {
	inPart := fmt.Sprintf("captured in part (%d of %d bytes)", r.Captured, r.Bytes)
	if r.Captured > 0 && m != nil {
		cut := *m
		cut.Fault = nil
		return fmt.Sprintf("%v [%s] %q", &cut, inPart, r.Message.Payload)
	}
	switch {
	case r.Captured > 0:
		return inPart
	case m == nil && r.Fault != "":
		return r.Fault
	case m == nil:
		all := f.Layers()
		if len(all) == 0 {
			return fmt.Sprintf("%d bytes", len(f.Data()))
		}
		return fmt.Sprintf("%v, %d bytes", all[len(all)-1].LayerType(), len(f.Data()))
	case len(r.Message.Records) > 0:
		return m.String() + r.Message.describeRecords()
	case len(r.Message.Payload) > 0:
		return fmt.Sprintf("%v %q", m, r.Message.Payload)
	}
	return m.String()
}

// dumpSchema is the version of dumpRecord. docs/bench-json.md describes it.
const dumpSchema = 1

// dumpRecord is a frame as JSON.
type dumpRecord struct {
	Schema    int          `json:"schema"`
	Frame     int          `json:"frame"`
	Time      time.Time    `json:"time"`
	Interface int          `json:"interface"`
	Src       string       `json:"src"`
	Dst       string       `json:"dst"`
	Tags      []dumpTag    `json:"tags,omitempty"`
	Message   *dumpMessage `json:"message,omitempty"`
	Fault     string       `json:"fault,omitempty"`
	Bytes     int          `json:"bytes"`              // of the whole frame
	Captured  int          `json:"captured,omitempty"` // of these, where they are too few for the message
}

type dumpTag struct {
	VID transport.VID `json:"vid"`
	PCP transport.PCP `json:"pcp"`
	DEI bool          `json:"dei,omitempty"`
}

type dumpMessage struct {
	Kind    string `json:"kind"`
	From    uint16 `json:"from"`
	SrcPort uint8  `json:"src_port"`
	To      uint16 `json:"to"`
	DstPort uint8  `json:"dst_port"`
	Cluster uint32 `json:"cluster"`
	Length  int    `json:"length"`
	Payload []byte `json:"payload"` // the first bytes

	Records []decode.Record `json:"records,omitempty"`
	shown   int             // how many bytes of each record's data
}

func (d *dumpVerb) record(f *dumpFrame, m *decode.Message) *dumpRecord {
	r := &dumpRecord{
		Schema: dumpSchema, Frame: f.n, Time: f.info.Timestamp, Interface: f.info.InterfaceIndex,
		Tags: f.tags, Bytes: f.info.Length,
	}
	if f.eth != nil {
		r.Src, r.Dst = f.eth.SrcMAC.String(), f.eth.DstMAC.String()
	}
	switch e := f.ErrorLayer(); {
	case f.inPart(m):
		r.Captured = f.info.CaptureLength
	case m != nil && m.Fault != nil:
		r.Fault = m.Fault.Error()
	case m == nil && e != nil:
		r.Fault = e.Error().Error()
	}
	if m == nil {
		return r
	}
	r.Message = &dumpMessage{
		Kind: m.Kind.String(), From: m.From, SrcPort: m.SrcPort, To: m.To, DstPort: m.DstPort,
		Cluster: m.Cluster, Length: m.Length, Payload: m.Payload[:min(len(m.Payload), d.payload)],
		Records: m.Records(), shown: d.payload,
	}
	return r
}
