package decode_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
	rpcdecode "github.com/rawlane/rawlane/rpc/decode"
)

const (
	number = "00000000000012ab"
	none   = "0000000000000000"
)

// golden are records as docs/wire-format.md has them, and what is read from them.
var golden = []struct{ name, bytes, text string }{
	{"request", "11 00 04 00" + number + none + "6563686f 6869", `call 12ab: request "echo", 2 bytes "hi"`},
	{"request with a deadline", "11 00 04 00" + number + "00000000001e8480 6563686f", `call 12ab: request "echo", 2s left`},
	{"response", "12 00 00 00" + number + "6869", `call 12ab: response: done, 2 bytes "hi"`},
	{"response with an error", "12 01 00 00" + number + "6e6f", `call 12ab: response: failed, 2 bytes "no"`},
	{"nobody serves it", "12 02 00 00" + number, "call 12ab: response: nobody serves it"},
	{"too many", "12 03 00 00" + number, "call 12ab: response: too many requests wait"},
	{"too late", "12 04 00 00" + number, "call 12ab: response: the call is over"},
	{"closing", "12 06 00 00" + number, "call 12ab: response: closing"},
	{"another version's refusal", "22 05 00 00" + number, "call 12ab: response: another version"},
	{"cancellation", "13 00 00 00" + number, "call 12ab: cancellation"},
	{"another version", "21 00 04 00" + number + none + "6563686f", `[malformed record of a call, of another version, 24 bytes] "!"`},
	{"no kind", "10 00 00 00" + number, `[malformed record of a call, 12 bytes] "\x10"`},
	{"no service", "11 00 00 00" + number + none, `[malformed record of a call, 20 bytes] "\x11"`},
	{"cut off", "12 00 00 00", `[malformed record of a call, 4 bytes] "\x12"`},
}

func text(port uint8, payload []byte) string {
	return decodetest.Text(decodetest.Records(decode.Unicast, port, payload))
}

func TestRecords(t *testing.T) {
	for _, c := range golden {
		rec := decodetest.Unhex(t, c.bytes)
		if got, want := text(249, decodetest.Frame(t, rec, len(rec))), "requests 7, ack 12|"+c.text; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
}

// Of a record that is longer than a frame the first part says what it is; parts that do not, and
// what is for another handler, are operations.
func TestRecords_Parts(t *testing.T) {
	request := decodetest.Unhex(t, golden[0].bytes)
	for _, c := range []struct {
		rec  []byte
		text string
	}{
		{request, `call 12ab: request "echo", 2 bytes and more "hi"`},
		{request[:22], `push (first part) id 1 length 5000, 22 bytes`},
	} {
		if got := text(249, decodetest.Frame(t, c.rec, 5000)); !strings.HasPrefix(got, "requests 7, ack 12|"+c.text) {
			t.Errorf("got %s, want %s", got, c.text)
		}
	}
	later := decodetest.Frame(t, []byte("more"), 5000)
	later[21] = 1
	if got := text(249, later); got != `requests 7, ack 12|push (last part) id 1 length 5000, 4 bytes "more"` {
		t.Error(got)
	}
	other := decodetest.Frame(t, request, len(request))
	other[25] = 2
	if got := text(249, other); !strings.Contains(got, "|push id 2, 26 bytes") {
		t.Error(got)
	}
}

// Another port is read once it is registered.
func TestRegister(t *testing.T) {
	rec := decodetest.Unhex(t, golden[2].bytes)
	b := decodetest.Frame(t, rec, len(rec))
	if got := text(17, b); got != "" {
		t.Error(got)
	}
	rpcdecode.Register(17)
	defer decode.RegisterPort(17, nil)
	if got := text(17, b); !strings.HasSuffix(got, golden[2].text) {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	for i, want := range map[int]string{
		1: `{"record":"request","call":"12ab","service":"echo","left_ns":2000000000,"bytes":0}`,
		4: `{"record":"response","call":"12ab","status":"nobody serves it","bytes":0}`,
	} {
		rec := decodetest.Unhex(t, golden[i].bytes)
		m := decode.Message{Kind: decode.Unicast, DstPort: 249}
		m.Payload = decodetest.Frame(t, rec, len(rec))
		if b, err := json.Marshal(m.Records()[1]); err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
}

// FuzzRecords: whatever comes to the port of calls is shown, each record on one line.
func FuzzRecords(f *testing.F) {
	for _, c := range golden {
		rec := decodetest.Unhex(f, c.bytes)
		f.Add(decodetest.Frame(f, rec, len(rec)))
		f.Add(decodetest.Frame(f, rec, 5000))
	}
	for _, v := range fuzzseed.Variants(decodetest.Unhex(f, golden[0].bytes)) {
		f.Add(decodetest.Frame(f, v, len(v)))
	}
	other := decodetest.Frame(f, nil, 0)
	other[25] = 2
	f.Add(other)
	f.Fuzz(func(t *testing.T, b []byte) { decodetest.Check(t, b, decodetest.Records(decode.Unicast, 249, b)) })
}
