// Package decode reads frames of memfifo's ports for tools that show captures: with it imported,
// mcd/decode's Message.Records returns a Frame and the Operations behind it.
//
// What is pushed to a public handler is the record of another package: those that have such
// handlers, as rawnet and rpc, read it with Reader.
package decode

import (
	"fmt"

	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
	"github.com/rawlane/rawlane/memfifo/internal/wire"
)

func init() { Register(uint8(memfifo.DefaultPort)) }

// Register has messages to a domain's port read, for programs that set Config.Port. It is for
// initialisation, as decode.RegisterPort.
func Register(port uint8) { decode.RegisterPort(port, Reader(nil)) }

// Frame is the header of a frame of a connection.
type Frame struct {
	Kind        string `json:"frame"`          // data, ack, hello, hello-ack, bye, bye-ack
	Lane        string `json:"lane,omitempty"` // requests or replies; of an ack: which it acknowledges
	Sequence    uint32 `json:"sequence"`       // of a hello and hello-ack: the challenge
	Ack         uint32 `json:"ack"`            // the next frame expected; of a hello-ack: the response
	Credit      uint16 `json:"credit"`
	Beyond      int    `json:"beyond,omitempty"` // frames that are here out of order
	Source      uint32 `json:"source"`           // incarnation of the sender
	Destination uint32 `json:"destination"`      // and of the receiver, as the sender knows it
}

// String puts f on one line: "requests 7, ack 12".
func (f *Frame) String() string {
	switch f.Kind {
	case reliable.Data.String():
		return fmt.Sprintf("%s %d, ack %d", f.Lane, f.Sequence, f.Ack)
	case reliable.Ack.String():
		s := fmt.Sprintf("ack of %s %d", f.Lane, f.Ack)
		if f.Beyond > 0 {
			s += fmt.Sprintf(" and %d beyond", f.Beyond)
		}
		return s
	}
	return fmt.Sprintf("%s from %08x to %08x", f.Kind, f.Source, f.Destination)
}

// Data returns nil: records follow as such.
func (f *Frame) Data() []byte { return nil }

var lanes = [...]string{reliable.Requests: "requests", reliable.Replies: "replies"}

// PushReader reads a record that was pushed to a public handler. rec is its first part if whole is
// false: a long one is in several frames.
type PushReader func(handler uint16, rec []byte, whole bool) decode.Record

// Reader returns a reader of a port's frames. pushed, if not nil, reads what is for public
// handlers; the parts of such a record behind the first are Operations.
func Reader(pushed PushReader) decode.RecordReader {
	return func(payload []byte) []decode.Record { return read(payload, pushed) }
}

func read(payload []byte, pushed PushReader) (all []decode.Record) {
	var h reliable.Header
	if err := reliable.Parse(payload, &h); err != nil {
		return append(all, decode.Malformed{Reason: "frame of remote memory", Rest: payload})
	}
	f := &Frame{
		Kind: h.Kind.String(), Sequence: h.Sequence, Ack: h.Ack, Credit: h.Credit, Source: h.Src, Destination: h.Dst,
		Beyond: h.SACK.Len(),
	}
	switch h.Kind {
	case reliable.Data:
		f.Lane = lanes[h.Lane]
	case reliable.Ack:
		f.Lane = lanes[h.AckLane]
	}
	all = append(all, f)
	if h.Kind != reliable.Data {
		return all
	}
	for b := payload[reliable.HeaderLen:]; len(b) > 0; {
		op, data, end, ok := wire.Split(b)
		if !ok {
			return append(all, decode.Malformed{Reason: "operation", Rest: b})
		}
		all = append(all, record(op, b[1], b[wire.HeadLen:data], b[data:end], pushed))
		b = b[end:]
	}
	return all
}

// record returns an operation, or what it pushes to a public handler.
func record(op wire.Opcode, flags byte, fields, data []byte, pushed PushReader) decode.Record {
	o := newOperation(op, flags, fields, data)
	if pushed == nil || op != wire.Push || o.secret != 0 || flags&wire.FlagFirst == 0 {
		return o
	}
	whole := flags&wire.FlagLast != 0
	if length := o.Fields["length"]; whole && length != uint64(len(data)) {
		return decode.Malformed{Reason: "push of another length", Rest: data}
	}
	if r := pushed(uint16(o.Fields["id"]), data, whole); r != nil {
		return r
	}
	return o
}
