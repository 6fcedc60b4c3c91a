// Package decode reads the messages of discovery and exchanges for tools that show captures: with
// it imported, mcd/decode's Message.Records returns them, for messages to their ports.
//
//	announcement of one of 4 nodes, "alpha", network 0 of 02:00:00:00:00:01, seeking
//	exchange: part 3 of life 0000001a to 0000002b, 3 bytes from 1 on, of 9
package decode

import (
	"fmt"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/internal/discovery"
	"github.com/rawlane/rawlane/cluster/internal/wire"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

func init() {
	decode.RegisterPort(uint8(cluster.DiscoveryPort), readAnnouncement, decode.Broadcast, decode.Unicast)
	Register(uint8(cluster.ExchangePort))
}

// Register has messages to a port of an Exchanger read, for programs that set
// ExchangerConfig.Port. It is for initialisation, as decode.RegisterPort.
func Register(port uint8) { decode.RegisterPort(port, readExchange, decode.Unicast, decode.Broadcast) }

// Announcement is what a node says of itself.
type Announcement struct {
	Seeking  bool            `json:"seeking,omitempty"` // it does not know all nodes yet
	Failed   bool            `json:"failed,omitempty"`  // it is of no cluster
	Nodes    int             `json:"nodes"`             // how many it expects
	Network  int             `json:"network"`           // that this was sent over
	Networks []transport.MAC `json:"networks"`          // its address on each
	Host     string          `json:"host"`
	Place    *Place          `json:"place,omitempty"` // where it runs; nil: it does not say
}

// Place is where a node runs.
type Place struct {
	Host   string              `json:"host"`   // in hexadecimal; nodes that share a kernel have the same
	Cores  string              `json:"cores"`  // a bit for each that it may use, by number modulo 64
	Usable uint16              `json:"usable"` // how many it uses at one time
	Path   transport.LocalPath `json:"path"`   // to nodes of its host
}

// String puts a on one line.
func (a *Announcement) String() string {
	s := fmt.Sprintf("announcement of one of %d nodes, %q, network %d of", a.Nodes, a.Host, a.Network)
	for i, m := range a.Networks {
		if i > 0 {
			s += ","
		}
		s += " " + m.String()
	}
	if a.Seeking {
		s += ", seeking"
	}
	if a.Failed {
		s += ", failed"
	}
	if p := a.Place; p != nil {
		s += fmt.Sprintf(", host %s, cores %s, %d at one time, by %v", p.Host, p.Cores, p.Usable, p.Path)
	}
	return s
}

// Data returns nil: discovery carries nothing for the program.
func (a *Announcement) Data() []byte { return nil }

func readAnnouncement(payload []byte) []decode.Record {
	a, err := discovery.Parse(payload)
	if err != nil {
		return []decode.Record{decode.Malformed{Reason: "announcement", Rest: payload}}
	}
	r := &Announcement{
		Seeking: a.Seeking, Failed: a.Failed, Nodes: int(a.Size), Network: int(a.NIC), Networks: a.MACs, Host: a.Name,
	}
	if p := a.Place; p.Host != 0 {
		r.Place = &Place{fmt.Sprintf("%016x", p.Host), fmt.Sprintf("%016x", p.Cores), p.Usable, p.Path}
	}
	return []decode.Record{r}
}

// Exchange is a message of an Exchanger.
type Exchange struct {
	Kind        string `json:"exchange"`       // request, answer, pending, fetch, part, done, who, here, former
	Incarnation string `json:"incarnation"`    // of the sender, in hexadecimal
	Receiver    string `json:"receiver"`       // incarnation; 0: not heard yet, or all
	Number      uint32 `json:"number"`         // of the request or question, or the round
	Offset      uint32 `json:"offset"`         // in the answer or blob
	Length      uint32 `json:"length"`         // of the whole answer or blob
	None        bool   `json:"none,omitempty"` // of a part: there is no blob yet
	Bytes       int    `json:"bytes"`          // of data

	data []byte
}

// String puts e on one line.
func (e *Exchange) String() string {
	s := fmt.Sprintf("exchange: %s %d of life %s to %s", e.Kind, e.Number, e.Incarnation, e.Receiver)
	switch {
	case e.None:
		return s + ", there is none yet"
	case e.Kind == wire.Answer.String() || e.Kind == wire.Part.String():
		return s + fmt.Sprintf(", %d bytes from %d on, of %d", e.Bytes, e.Offset, e.Length)
	case e.Kind == wire.Fetch.String():
		return s + fmt.Sprintf(", from %d on", e.Offset)
	case e.Kind == wire.Request.String():
		return s + fmt.Sprintf(", from %d on, %d bytes", e.Offset, e.Bytes)
	}
	return s
}

// Data returns the request, or bytes of the answer or blob.
func (e *Exchange) Data() []byte { return e.data }

func readExchange(payload []byte) []decode.Record {
	m := wire.Parse(payload)
	if !m.Kind.Valid() {
		return []decode.Record{decode.Malformed{Reason: "message of an exchange", Rest: payload}}
	}
	e := &Exchange{Kind: m.Kind.String(), Number: m.Number, Offset: m.Offset, Length: m.Length,
		Incarnation: fmt.Sprintf("%08x", m.From), Receiver: fmt.Sprintf("%08x", m.To),
		Bytes: len(m.Data), data: m.Data}
	if m.Kind == wire.Part && m.Length == wire.NotPosted {
		e.None, e.Length = true, 0
	}
	return []decode.Record{e}
}
