package decode

import (
	"fmt"
	"slices"
)

// Record is a part of a message's payload as the owner of its port means it: memfifo's operations,
// rawnet's streams and packets, rpc's calls, barrier's and cluster's messages. Package json writes
// its fields.
type Record interface {
	String() string // on one line, without the data
	Data() []byte   // that it carries, for the program: a view of the payload, or nil
}

// RecordReader reads the payload of a message that is whole and in the clear. What makes no sense
// becomes a Malformed.
type RecordReader func(payload []byte) []Record

// portReader is what reads the messages of some kinds to a port.
type portReader struct {
	read  RecordReader
	kinds []Kind
}

var readers [256]portReader

// RegisterPort has a reader read what is sent to a port, as a message of one of some kinds; of
// Unicast, if none is named. Packages memfifo/decode, rawnet/decode, rpc/decode, barrier/decode and
// cluster/decode register themselves for the ports that are theirs unless a program says otherwise:
// importing them is enough. It is for initialisation: no message may be read at the same time.
func RegisterPort(port uint8, read RecordReader, kinds ...Kind) {
	if len(kinds) == 0 {
		kinds = []Kind{Unicast}
	}
	readers[port] = portReader{read, kinds}
}

// Records returns the records in m's payload: none of a port and kind that no reader is registered
// for, and none where the payload is encrypted or a node would drop the frame.
func (m *Message) Records() []Record {
	r := &readers[m.DstPort]
	if r.read == nil || !slices.Contains(r.kinds, m.Kind) || m.Fault != nil || m.Auth != nil && m.Auth.Encrypted {
		return nil
	}
	return r.read(m.Payload)
}

// Malformed is a record that its receiver drops, and all that is behind it.
type Malformed struct {
	Reason string `json:"malformed"`
	Rest   []byte `json:"-"`
}

// String says what is malformed.
func (m Malformed) String() string {
	return fmt.Sprintf("[malformed %s, %d bytes]", m.Reason, len(m.Rest))
}

// Data returns the malformed bytes.
func (m Malformed) Data() []byte { return m.Rest }
