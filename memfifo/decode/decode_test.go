package decode_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
)

const (
	requests = "21 00 0100 00000001 00000002 00000007 0000000c"
	replies  = "21 01 0100 00000001 00000002 00000007 0000000c"
	key      = "4142 5152535455565758"
	public   = "0001 0000000000000000"
)

// golden are frames as docs/wire-format.md has them, and what is read from them.
var golden = []struct{ name, bytes, text string }{
	{"a hello", "23 00 0000 01020304 00000000 00000005 00000000", "hello from 01020304 to 00000000"},
	{"a hello-ack", "24 00 0000 0a0b0c0d 01020304 00000009 00000005", "hello-ack from 0a0b0c0d to 01020304"},
	{"a bye", "25 00 0000 0a0b0c0d 01020304 00000000 00000000", "bye from 0a0b0c0d to 01020304"},
	{"an ack", "22 00 0040 00000001 00000002 00000000 00000007", "ack of requests 7"},
	{"an ack of replies, of which others are here", "22 03 0100 00000001 00000002 00000000 00000007 0000000000000000 8000000000000001",
		"ack of replies 7 and 2 beyond"},
	{"a frame without records", replies, "replies 7, ack 12"},
	{"put", requests + "01 01 0003" + key + "0000000000000061 707574", `requests 7, ack 12|put id 16706 offset 97, 3 bytes "put"`},
	{"put continue", requests + "0d 05 0002 6974", `requests 7, ack 12|put continue, 2 bytes, notify "it"`},
	{"signal", requests + "01 05 0000" + key + "0000000000000000", "requests 7, ack 12|put id 16706 offset 0, notify"},
	{"push", requests + "02 03 0004" + key + "00000004 70757368", `requests 7, ack 12|push id 16706, 4 bytes "push"`},
	{"the parts of a push", requests + "02 02 0002" + key + "00000004 7061 02 00 0001" + key + "00000004 72 02 01 0001" + key + "00000004 74",
		`requests 7, ack 12|push (first part) id 16706 length 4, 2 bytes "pa"|push (middle part) id 16706 length 4, 1 bytes "r"` +
			`|push (last part) id 16706 length 4, 1 bytes "t"`},
	{"try push", requests + "03 04 0003" + key + "00000001 747279", `requests 7, ack 12|try push id 16706 request 1, 3 bytes "try"`},
	{"get", requests + "04 00 0000" + key + "0000000000000062 00000002 00000123", "requests 7, ack 12|get id 16706 offset 98 request 2 length 291"},
	{"fetch and add", requests + "05 00 0000" + key + "0000000000000068 00000003 0000000000000071",
		"requests 7, ack 12|fetch and add id 16706 offset 104 request 3 operand 113"},
	{"swap", requests + "06 00 0000" + key + "0000000000000068 00000004 0000000000000072",
		"requests 7, ack 12|swap id 16706 offset 104 request 4 operand 114"},
	{"compare and swap", requests + "07 00 0000" + key + "0000000000000068 00000005 0000000000000074 0000000000000073",
		"requests 7, ack 12|compare and swap id 16706 offset 104 request 5 operand 116 expected 115"},
	{"fence", requests + "08 00 0000 00000006", "requests 7, ack 12|fence request 6"},
	{"data", replies + "09 00 0002 00000011 00000007 3275", `replies 7, ack 12|data request 17 at 7, 2 bytes "2u"`},
	{"value and error", replies + "0a 00 0000 00000012 0000000000000005 0b 00 0000 00000019 06",
		"replies 7, ack 12|value request 18 value 5|error request 25: full"},
	{"refused", replies + "0c 00 0000 4143 02", "replies 7, ack 12|refused id 16707: wrong key"},
	{"pushed to a public handler", requests + "02 03 0002" + public + "00000002 6869", `requests 7, ack 12|handler 1, whole true: "hi"`},
	{"in parts", requests + "02 02 0002" + public + "00000009 6869", `requests 7, ack 12|handler 1, whole false: "hi"`},
	{"the last part", requests + "02 01 0002" + public + "00000009 6869", `requests 7, ack 12|push (last part) id 1 length 9, 2 bytes "hi"`},
	{"one that the handler does not know", requests + "02 03 0002 0002 0000000000000000 00000002 6869", `requests 7, ack 12|push id 2, 2 bytes "hi"`},
	{"of another length than it says", requests + "02 03 0002" + public + "00000003 6869",
		`requests 7, ack 12|[malformed push of another length, 2 bytes] "h"`},
	{"an unknown opcode", requests + "08 00 0000 00000006 0e 00 0000", `requests 7, ack 12|fence request 6|[malformed operation, 4 bytes] "\x0e"`},
	{"a record that is cut off", requests + "08 00 0001 00000006", `requests 7, ack 12|[malformed operation, 8 bytes] "\b"`},
	{"another version", "31 00 0100", `[malformed frame of remote memory, 4 bytes] "1"`},
	{"nothing", "", "[malformed frame of remote memory, 0 bytes]"},
}

// pushed is a record of handler 1.
type pushed struct {
	handler uint16
	rec     []byte
	whole   bool
}

func (p pushed) String() string {
	return fmt.Sprintf("handler %d, whole %v: %q", p.handler, p.whole, p.rec)
}
func (p pushed) Data() []byte { return nil }

func readPushed(handler uint16, rec []byte, whole bool) decode.Record {
	if handler != 1 {
		return nil
	}
	return pushed{handler, rec, whole}
}

func TestReader(t *testing.T) {
	read := memdecode.Reader(readPushed)
	for _, c := range golden {
		if got := decodetest.Text(read(decodetest.Unhex(t, c.bytes))); got != c.text {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.text)
		}
	}
}

// A domain's own port has a reader as soon as the package is imported, in which no record is
// another package's.
func TestRegistered(t *testing.T) {
	m := decode.Message{Kind: decode.Unicast, DstPort: 253}
	m.Payload = decodetest.Unhex(t, requests+"02 03 0002"+public+"00000002 6869")
	if got := decodetest.Text(m.Records()); got != `requests 7, ack 12|push id 1, 2 bytes "hi"` {
		t.Error(got)
	}
	memdecode.Register(17)
	defer decode.RegisterPort(17, nil)
	m.DstPort = 17
	if got := len(m.Records()); got != 2 {
		t.Errorf("%d records on another port", got)
	}
}

// JSON has numbers, and never a secret.
func TestJSON(t *testing.T) {
	all := memdecode.Reader(nil)(decodetest.Unhex(t, requests+"07 00 0000"+key+"0000000000000068 00000005 0000000000000074 0000000000000073"))
	b, err := json.Marshal(all)
	want := `[{"frame":"data","lane":"requests","sequence":7,"ack":12,"credit":256,"source":1,"destination":2},` +
		`{"op":"compare and swap","fields":{"expected":115,"id":16706,"offset":104,"operand":116,"request":5},"bytes":0}]`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v, want\n%s", b, err, want)
	}
}

// FuzzReader: whatever comes, each record is on one line, and its data is a part of what came.
func FuzzReader(f *testing.F) {
	for _, c := range golden {
		f.Add(decodetest.Unhex(f, c.bytes))
	}
	for _, v := range fuzzseed.Variants(decodetest.Unhex(f, requests+"02 03 0002"+public+"00000002 6869")) {
		f.Add(v)
	}
	read := memdecode.Reader(readPushed)
	f.Fuzz(func(t *testing.T, b []byte) {
		all := read(b)
		for _, r := range all {
			if p, ok := r.(pushed); ok && len(p.rec) > len(b) {
				t.Errorf("%x: %d bytes are pushed", b, len(p.rec))
			}
		}
		decodetest.Check(t, b, all)
	})
}
