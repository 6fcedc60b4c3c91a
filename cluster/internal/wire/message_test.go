package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// The bytes of docs/wire-format.md, both ways.
func TestMessage_Golden(t *testing.T) {
	m := Message{Kind: Part, From: 0x1a, To: 0x2b, Number: 3, Offset: 1, Length: 9, Data: []byte("two")}
	const golden = "07050000" + "0000001a" + "0000002b" + "00000003" + "00000001" + "00000009" + "74776f"
	if got := hex.EncodeToString(m.Bytes()); got != golden {
		t.Errorf("%s, want %s", got, golden)
	}
	if again := Parse(m.Bytes()); !reflect.DeepEqual(again, m) {
		t.Errorf("%+v, want %+v", again, m)
	}
	none := Message{Kind: Part, Number: 3, Length: NotPosted, Data: []byte{}}
	if got := hex.EncodeToString(none.Bytes()); got != "07050000"+"00000000"+"00000000"+"00000003"+"00000000"+"ffffffff" || !reflect.DeepEqual(Parse(none.Bytes()), none) {
		t.Errorf("%s, %+v", got, Parse(none.Bytes()))
	}
	if short := Parse(none.Bytes()[:HeaderLen-1]); short.Kind != 0 {
		t.Errorf("23 bytes are %+v", short)
	}
	before := append([]byte{5, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9}, "two and more"...)
	if m := Parse(before); m.Kind != 0 {
		t.Errorf("a message of the version before is %+v", m)
	}
	for _, k := range []Kind{0, kinds, 255} {
		if k.Valid() || k.String() != "?" {
			t.Errorf("kind %d is %v", k, k)
		}
	}
	if !Request.Valid() || !Former.Valid() || Request.String() != "request" || Former.String() != "former" {
		t.Errorf("first and last kind: %v, %v", Request, Former)
	}
}

// What is read is written the same.
func FuzzMessage(f *testing.F) {
	for _, v := range fuzzseed.Variants(Message{Kind: Part, Number: 3, Offset: 1, Length: 9, Data: []byte("two")}.Bytes()) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := Parse(b)
		if m.Kind.Valid() != (m.Kind.String() != "?") {
			t.Fatalf("kind %d: %v", m.Kind, m.Kind)
		}
		isOurs := len(b) >= HeaderLen && b[0] == Version
		if !isOurs && m.Kind != 0 {
			t.Fatalf("%x was read as %+v", b, m)
		}
		if !isOurs {
			return
		}
		if again := Parse(m.Bytes()); again.Kind != m.Kind || again.From != m.From || again.To != m.To ||
			again.Number != m.Number || again.Offset != m.Offset || again.Length != m.Length || !bytes.Equal(again.Data, m.Data) {
			t.Errorf("%+v, then %+v", m, again)
		}
	})
}
