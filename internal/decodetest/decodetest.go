// Package decodetest is what tests of packages that read messages have in common: mcd/decode and
// those that register themselves there.
package decodetest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd/decode"
)

// Unhex returns the bytes that s says. Blanks are for the reader.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frame is one of a connection of remote memory, in which a record of so many bytes, or its first
// part, is pushed to handler 1: "requests 7, ack 12".
func Frame(t testing.TB, rec []byte, length int) []byte {
	t.Helper()
	b := Unhex(t, "21 00 0100 00000001 00000002 00000007 0000000c 02 03")
	if length > len(rec) {
		b[len(b)-1] = 2 // the first part
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(rec)))
	b = append(b, Unhex(t, "0001 0000000000000000")...)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	return append(b, rec...)
}

// Records are those of a message.
func Records(kind decode.Kind, port uint8, payload []byte) []decode.Record {
	m := decode.Message{Kind: kind, DstPort: port}
	m.Payload = payload
	return m.Records()
}

// Text shows records with their data, one behind the other; of malformed ones the first byte.
func Text(all []decode.Record) string {
	var s []string
	for _, r := range all {
		one, data := r.String(), r.Data()
		if _, malformed := r.(decode.Malformed); malformed {
			data = data[:min(len(data), 1)]
		}
		if len(data) > 0 {
			one += fmt.Sprintf(" %q", data)
		}
		s = append(s, one)
	}
	return strings.Join(s, "|")
}

// Check fails a test if a record is not on one line, or has data that is not the payload's.
func Check(t testing.TB, payload []byte, all []decode.Record) {
	t.Helper()
	data := 0
	for _, r := range all {
		data += len(r.Data())
		if s := r.String(); s == "" || strings.ContainsAny(s, "\n\r") {
			t.Errorf("%x: %q", payload, s)
		}
	}
	if data > len(payload) {
		t.Errorf("%x: %d bytes of data in %d", payload, data, len(payload))
	}
}
