package diagnose

import (
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// dumpRecord is a frame as JSON.
type dumpRecord struct {
	Frame     int          `json:"frame"`
	Time      time.Time    `json:"time"`
	Interface int          `json:"interface"`
	Src       string       `json:"src"`
	Dst       string       `json:"dst"`
	Tags      []dumpTag    `json:"tags,omitempty"`
	Message   *dumpMessage `json:"message,omitempty"`
	Fault     string       `json:"fault,omitempty"`
	Bytes     int          `json:"bytes"` // of the whole frame
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
}

func (d *dumpVerb) record(n int, p gopacket.Packet, info gopacket.CaptureInfo, m *decode.Message) *dumpRecord {
	r := &dumpRecord{Frame: n, Time: info.Timestamp, Interface: info.InterfaceIndex, Bytes: info.Length}
	for _, t := range tags(p) {
		r.Tags = append(r.Tags, dumpTag(t))
	}
	if eth, ok := p.LinkLayer().(*layers.Ethernet); ok {
		r.Src, r.Dst = eth.SrcMAC.String(), eth.DstMAC.String()
	}
	if e := p.ErrorLayer(); e != nil {
		r.Fault = e.Error().Error()
	}
	if m == nil {
		return r
	}
	if m.Fault != nil {
		r.Fault = m.Fault.Error()
	}
	r.Message = &dumpMessage{
		Kind: m.Kind.String(), From: m.From, SrcPort: m.SrcPort, To: m.To, DstPort: m.DstPort,
		Cluster: m.Cluster, Length: m.Length, Payload: m.Payload[:min(len(m.Payload), d.payload)],
	}
	return r
}
