package decode

import "fmt"

// Record is a part of a message's payload as the owner of its port means it: memfifo's operations,
// rawnet's streams and packets, rpc's calls. Package json writes its fields.
type Record interface {
	String() string // on one line, without the data
	Data() []byte   // that it carries, for the program: a view of the payload, or nil
}

// RecordReader reads the payload of a message that is whole and in the clear. What makes no sense
// becomes a Malformed.
type RecordReader func(payload []byte) []Record

var readers [256]RecordReader

// RegisterPort has a reader read what is sent to a port. Packages memfifo/decode, rawnet/decode and
// rpc/decode register themselves for the ports that are theirs unless a program says otherwise:
// importing them is enough. It is for initialisation: no message may be read at the same time.
func RegisterPort(port uint8, read RecordReader) { readers[port] = read }

// Records returns the records in m's payload: none of a port that no reader is registered for, and
// none where the payload is encrypted or a node would drop the frame.
func (m *Message) Records() []Record {
	read := readers[m.DstPort]
	if read == nil || m.Kind != Unicast || m.Fault != nil || m.Auth != nil && m.Auth.Encrypted {
		return nil
	}
	return read(m.Payload)
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
