// Package decode reads rpc's records for tools that show captures: with it imported, mcd/decode's
// Message.Records returns them, for messages to rpc's port.
//
//	call 1a2b: request "echo", 2s left, 5 bytes
//	call 1a2b: response: done, 5 bytes
//	call 1a2b: cancellation
package decode

import (
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/internal/activemsg"
	"github.com/rawlane/rawlane/mcd/decode"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

func init() { Register(uint8(rpc.DefaultPort)) }

// Register has messages to a port of calls read, for programs that set Config.Port. It is for
// initialisation, as decode.RegisterPort.
func Register(port uint8) { decode.RegisterPort(port, memdecode.Reader(pushed)) }

// Record is a request, a response or a cancellation.
type Record struct {
	Kind    string        `json:"record"`            // request, response, cancellation
	Call    string        `json:"call"`              // its number, which its caller has given it, in hex
	Service string        `json:"service,omitempty"` // of a request
	Left    time.Duration `json:"left_ns,omitempty"` // of a request: until its deadline; 0: it has none
	Status  string        `json:"status,omitempty"`  // of a response
	Bytes   int           `json:"bytes"`             // of data, in this frame
	Partial bool          `json:"partial,omitempty"` // the rest of the data is in frames behind

	data []byte
}

// String puts r on one line.
func (r *Record) String() string {
	s := fmt.Sprintf("call %s: %s", r.Call, r.Kind)
	if r.Service != "" {
		s += fmt.Sprintf(" %q", r.Service)
	}
	if r.Left != 0 {
		s += fmt.Sprintf(", %v left", r.Left)
	}
	if r.Status != "" {
		s += ": " + r.Status
	}
	if r.Bytes > 0 {
		s += fmt.Sprintf(", %d bytes", r.Bytes)
	}
	if r.Partial {
		s += " and more"
	}
	return s
}

// Data returns the data that is in this frame.
func (r *Record) Data() []byte { return r.data }

func pushed(handler uint16, rec []byte, whole bool) decode.Record {
	if handler != activemsg.HandlerID {
		return nil
	}
	var w wire.Record
	switch err := w.Parse(rec); {
	case err != nil && !whole: // the first frame may not have all of what comes before the data
		return nil
	case errors.Is(err, wire.ErrVersion):
		return decode.Malformed{Reason: "record of a call, of another version", Rest: rec}
	case err != nil:
		return decode.Malformed{Reason: "record of a call", Rest: rec}
	}
	r := &Record{
		Kind: w.Kind.String(), Call: fmt.Sprintf("%x", w.Call), Service: string(w.Service), Left: w.Left,
		Bytes: len(w.Data), Partial: !whole, data: w.Data,
	}
	if w.Kind == wire.Response {
		r.Status = w.Status.String()
	}
	return r
}
