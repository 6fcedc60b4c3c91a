package cluster

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// What is read is written the same.
func FuzzExchangeMessage(f *testing.F) {
	for _, v := range fuzzseed.Variants(message{kind: kindPart, number: 3, offset: 1, length: 9, data: []byte("two")}.bytes()) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := parseMessage(b)
		if len(b) < messageHeaderLen && m.kind != 0 {
			t.Fatalf("%x was read as %+v", b, m)
		}
		if len(b) < messageHeaderLen {
			return
		}
		if again := parseMessage(m.bytes()); again.kind != m.kind || again.number != m.number || again.offset != m.offset ||
			again.length != m.length || !bytes.Equal(again.data, m.data) {
			t.Errorf("%+v, then %+v", m, again)
		}
	})
}
