package decode_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
	netdecode "github.com/rawlane/rawlane/rawnet/decode"
)

const number = "00000000000012ab"

// golden are records as docs/wire-format.md has them, and what is read from them.
var golden = []struct{ name, bytes, text string }{
	{"open", "11 01 00 00" + number + "0000000000040000 6563686f", `stream 12ab, dialer: open "echo", accepts bytes before 262144`},
	{"accept", "12 00 00 00" + number + "0000000000040000", "stream 12ab, acceptor: accept, accepts bytes before 262144"},
	{"refuse", "13 00 01 00" + number, "stream 12ab, acceptor: refuse: nobody listens"},
	{"data", "14 01 00 00" + number + "6869", `stream 12ab, dialer: data, 2 bytes "hi"`},
	{"window", "15 00 00 00" + number + "0000000000060000", "stream 12ab, acceptor: window, accepts bytes before 393216"},
	{"fin", "16 01 00 00" + number, "stream 12ab, dialer: fin"},
	{"close", "17 00 00 00" + number, "stream 12ab, acceptor: close"},
	{"reset", "18 01 08 00" + number, "stream 12ab, dialer: reset: no such stream"},
	{"a refusal of another version", "23 00 04 00" + number, "stream 12ab, acceptor: refuse: another version of the stream protocol"},
	{"another version", "24 00 00 00" + number + "6869", `[malformed record of a stream, of another version, 14 bytes] "$"`},
	{"no kind", "10 00 00 00" + number, `[malformed record of a stream, 12 bytes] "\x10"`},
	{"no service", "11 01 00 00" + number + "0000000000040000", `[malformed record of a stream, 20 bytes] "\x11"`},
	{"a reset without a reason", "18 00 00 00" + number, `[malformed record of a stream, 12 bytes] "\x18"`},
	{"cut off", "14 00 00 00 00", `[malformed record of a stream, 5 bytes] "\x14"`},
}

// frame is one of a connection of remote memory, in which a record is pushed to handler 1.
func frame(t testing.TB, rec []byte) []byte {
	t.Helper()
	return decodetest.Frame(t, rec, len(rec))
}

func text(port uint8, payload []byte) string {
	return decodetest.Text(decodetest.Records(decode.Unicast, port, payload))
}

func TestRecords(t *testing.T) {
	for _, c := range golden {
		if got, want := text(251, frame(t, decodetest.Unhex(t, c.bytes))), "requests 7, ack 12|"+c.text; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
	// Data whose rest is in the next frame.
	data := frame(t, decodetest.Unhex(t, golden[3].bytes))
	data[21] = 2
	if got := text(251, data); got != `requests 7, ack 12|stream 12ab, dialer: data, 2 bytes and more "hi"` {
		t.Error(got)
	}
	// What is not for the handler of streams, or the beginning of anything else, is an operation.
	other := frame(t, []byte("hi"))
	other[25] = 2
	if got := text(251, other); got != `requests 7, ack 12|push id 2, 2 bytes "hi"` {
		t.Error(got)
	}
	part := frame(t, []byte("hi"))
	part[21] = 2
	if got := text(251, part); got != `requests 7, ack 12|push (first part) id 1 length 2, 2 bytes "hi"` {
		t.Error(got)
	}
}

func TestPackets(t *testing.T) {
	if got := text(250, []byte("\x01\x03\x06\x00dnsclientdata")); got != `packet from "client" to "dns", 4 bytes "data"` {
		t.Error(got)
	}
	if got := text(250, []byte("\x02\x03\x06\x00dnsclientdata")); got != `[malformed packet, 17 bytes] "\x02"` {
		t.Error(got)
	}
}

// Other ports are read once they are registered.
func TestRegister(t *testing.T) {
	accept := frame(t, decodetest.Unhex(t, golden[1].bytes))
	if got := text(17, accept); got != "" {
		t.Error(got)
	}
	netdecode.Register(17)
	netdecode.RegisterPackets(18)
	defer decode.RegisterPort(17, nil)
	defer decode.RegisterPort(18, nil)
	if got := text(17, accept); !strings.HasSuffix(got, golden[1].text) {
		t.Error(got)
	}
	if got := text(18, []byte("\x01\x01\x01\x00ab")); got != `packet from "b" to "a", 0 bytes` {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	m := decode.Message{Kind: decode.Unicast, DstPort: 251}
	m.Payload = frame(t, decodetest.Unhex(t, golden[0].bytes))
	b, err := json.Marshal(m.Records()[1])
	want := `{"record":"open","stream":"12ab","sender":"dialer","service":"echo","limit":262144,"bytes":0}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}

// FuzzRecords: whatever comes to the ports of connections and packets is shown, each record on one
// line.
func FuzzRecords(f *testing.F) {
	for _, c := range golden {
		f.Add(false, frame(f, decodetest.Unhex(f, c.bytes)))
	}
	for _, v := range fuzzseed.Variants(decodetest.Unhex(f, golden[0].bytes)) {
		f.Add(false, frame(f, v))
	}
	other := frame(f, nil)
	other[25] = 2
	f.Add(false, other)
	for _, b := range [][]byte{decodetest.Unhex(f, golden[3].bytes), []byte("hi")} {
		part := frame(f, b)
		part[21] = 2 // the first of two frames
		f.Add(false, part)
	}
	f.Add(true, []byte("\x01\x01\x01\x00ab"))
	f.Add(true, []byte{1})
	f.Fuzz(func(t *testing.T, packet bool, b []byte) {
		port := uint8(251)
		if packet {
			port = 250
		}
		decodetest.Check(t, b, decodetest.Records(decode.Unicast, port, b))
	})
}
