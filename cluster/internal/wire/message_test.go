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
	m := Message{Kind: Part, Number: 3, Offset: 1, Length: 9, Data: []byte("two")}
	const golden = "05000000" + "00000003" + "00000001" + "00000009" + "74776f"
	if got := hex.EncodeToString(m.Bytes()); got != golden {
		t.Errorf("%s, want %s", got, golden)
	}
	if again := Parse(m.Bytes()); !reflect.DeepEqual(again, m) {
		t.Errorf("%+v, want %+v", again, m)
	}
	none := Message{Kind: Part, Number: 3, Length: NotPosted, Data: []byte{}}
	if got := hex.EncodeToString(none.Bytes()); got != "05000000"+"00000003"+"00000000"+"ffffffff" || !reflect.DeepEqual(Parse(none.Bytes()), none) {
		t.Errorf("%s, %+v", got, Parse(none.Bytes()))
	}
	if short := Parse(none.Bytes()[:HeaderLen-1]); short.Kind != 0 {
		t.Errorf("15 bytes are %+v", short)
	}
	for _, k := range []Kind{0, kinds, 255} {
		if k.Valid() || k.String() != "?" {
			t.Errorf("kind %d is %v", k, k)
		}
	}
	if !Request.Valid() || !Done.Valid() || Request.String() != "request" || Done.String() != "done" {
		t.Errorf("first and last kind: %v, %v", Request, Done)
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
		if len(b) < HeaderLen && m.Kind != 0 {
			t.Fatalf("%x was read as %+v", b, m)
		}
		if len(b) < HeaderLen {
			return
		}
		if again := Parse(m.Bytes()); again.Kind != m.Kind || again.Number != m.Number || again.Offset != m.Offset ||
			again.Length != m.Length || !bytes.Equal(again.Data, m.Data) {
			t.Errorf("%+v, then %+v", m, again)
		}
	})
}
