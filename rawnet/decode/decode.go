// Package decode reads rawnet's records and packets for tools that show captures: with it imported,
// mcd/decode's Message.Records returns them, for messages to rawnet's ports.
//
//	stream 1a2b, dialer: open "echo", accepts bytes before 262144
//	stream 1a2b, acceptor: accept, accepts bytes before 262144
//	stream 1a2b, dialer: data, 5 bytes
//	stream 1a2b, acceptor: reset: no such stream
package decode

import (
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd/decode"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/rawnet/internal/mux"
	"github.com/rawlane/rawlane/rawnet/internal/wire"
)

func init() {
	Register(uint8(rawnet.DefaultPort))
	RegisterPackets(uint8(rawnet.DefaultPacketPort))
}

// Register has messages to a port of connections read, for programs that set Config.Port. It is for
// initialisation, as decode.RegisterPort.
func Register(port uint8) { decode.RegisterPort(port, memdecode.Reader(pushed)) }

// RegisterPackets is Register for a port of packets: Config.PacketPort.
func RegisterPackets(port uint8) { decode.RegisterPort(port, readPacket) }

// Record is one of a stream. The sender of its frame is the stream's dialer or its acceptor.
type Record struct {
	Kind    string  `json:"record"`            // open, accept, refuse, data, window, fin, close, reset
	Stream  string  `json:"stream"`            // its number, which its dialer has given it, in hex
	Sender  string  `json:"sender"`            // dialer or acceptor
	Service string  `json:"service,omitempty"` // of open
	Limit   *uint64 `json:"limit,omitempty"`   // of open, accept, window: bytes before it are accepted
	Reason  string  `json:"reason,omitempty"`  // of refuse and reset
	Bytes   int     `json:"bytes"`             // of data, in this frame
	Partial bool    `json:"partial,omitempty"` // the rest of the data is in the frame behind

	data []byte
}

// String puts r on one line.
func (r *Record) String() string {
	s := fmt.Sprintf("stream %s, %s: %s", r.Stream, r.Sender, r.Kind)
	if r.Service != "" {
		s += fmt.Sprintf(" %q", r.Service)
	}
	if r.Limit != nil {
		s += fmt.Sprintf(", accepts bytes before %d", *r.Limit)
	}
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	if r.Bytes > 0 {
		s += fmt.Sprintf(", %d bytes", r.Bytes)
	}
	if r.Partial {
		s += " and more"
	}
	return s
}

// Data returns a stream's bytes that are in this frame.
func (r *Record) Data() []byte { return r.data }

// pushed reads what was pushed to the handler of streams. A record is never longer than a frame,
// but data may fill up a frame that others have begun, and have its rest in the next one.
func pushed(handler uint16, rec []byte, whole bool) decode.Record {
	if handler != activemsg.HandlerID {
		return nil
	}
	var m mux.Record
	switch err := m.Parse(rec); {
	case !whole && (err != nil || m.Kind != mux.Data):
		return nil
	case errors.Is(err, mux.ErrVersion):
		return decode.Malformed{Reason: "record of a stream, of another version", Rest: rec}
	case err != nil:
		return decode.Malformed{Reason: "record of a stream", Rest: rec}
	}
	r := &Record{Kind: m.Kind.String(), Stream: fmt.Sprintf("%x", m.Stream), Sender: "acceptor", Partial: !whole}
	if m.Dialer {
		r.Sender = "dialer"
	}
	switch m.Kind {
	case mux.Open, mux.Accept, mux.Window:
		r.Limit, r.Service = &m.Limit, string(m.Body)
	case mux.Refuse, mux.Reset:
		r.Reason = m.Reason.String()
	case mux.Data:
		r.Bytes, r.data = len(m.Body), m.Body
	}
	return r
}

// Packet is one of a PacketConn.
type Packet struct {
	To    string `json:"to_service"`
	From  string `json:"from_service"`
	Bytes int    `json:"bytes"`

	data []byte
}

// String puts p on one line.
func (p *Packet) String() string {
	return fmt.Sprintf("packet from %q to %q, %d bytes", p.From, p.To, p.Bytes)
}

// Data returns the packet's data.
func (p *Packet) Data() []byte { return p.data }

func readPacket(payload []byte) []decode.Record {
	to, from, data, ok := wire.ParsePacket(payload)
	if !ok {
		return []decode.Record{decode.Malformed{Reason: "packet", Rest: payload}}
	}
	return []decode.Record{&Packet{To: string(to), From: string(from), Bytes: len(data), data: data}}
}
