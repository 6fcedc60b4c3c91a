package decode

import (
	"fmt"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/memfifo/internal/wire"
)

// Operation is a record of a frame: a request of an operation, a part of a long one, or a reply.
type Operation struct {
	Opcode string            `json:"op"`               // as docs/wire-format.md names it
	Part   string            `json:"part,omitempty"`   // of a long push: first, middle or last
	Notify bool              `json:"notify,omitempty"` // the owner is notified
	Fields map[string]uint64 `json:"fields,omitempty"` // as docs/wire-format.md names them; never the secret
	Reason string            `json:"reason,omitempty"` // of error and refused
	Bytes  int               `json:"bytes"`            // of data

	op     wire.Opcode
	secret uint64
	data   []byte
}

func newOperation(op wire.Opcode, flags byte, fields, data []byte) *Operation {
	o := &Operation{
		Opcode: op.String(), Bytes: len(data), op: op, data: data, Fields: map[string]uint64{},
		Notify: flags&wire.FlagNotify != 0 && (op == wire.Put || op == wire.PutContinue),
	}
	if op == wire.Push {
		o.Part = [...]string{
			0: "middle", wire.FlagFirst: "first", wire.FlagLast: "last", wire.FlagFirst | wire.FlagLast: "",
		}[flags&(wire.FlagFirst|wire.FlagLast)]
	}
	for _, f := range op.Fields() {
		value := uint64(0)
		for _, b := range fields[:f.Size] {
			value = value<<8 | uint64(b)
		}
		fields = fields[f.Size:]
		switch f.Name {
		case wire.Secret:
			o.secret = value
		case wire.Reason:
			o.Reason = memfifo.Refusal(value).String()
		default:
			o.Fields[f.Name] = value
		}
	}
	return o
}

// String puts o on one line: "put id 5 offset 64, 8 bytes".
func (o *Operation) String() string {
	s := o.Opcode
	if o.Part != "" {
		s += " (" + o.Part + " part)"
	}
	for _, f := range o.op.Fields() {
		whole := f.Name == "length" && o.op == wire.Push && o.Part == "" // then it is that of the data
		if value, shown := o.Fields[f.Name]; shown && !whole {
			s += fmt.Sprintf(" %s %d", f.Name, value)
		}
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	if o.Bytes > 0 {
		s += fmt.Sprintf(", %d bytes", o.Bytes)
	}
	if o.Notify {
		s += ", notify"
	}
	return s
}

// Data returns what is written, pushed or read.
func (o *Operation) Data() []byte { return o.data }
