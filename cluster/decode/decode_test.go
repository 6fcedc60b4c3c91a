package decode_test

import (
	"encoding/json"
	"testing"

	clusterdecode "github.com/rawlane/rawlane/cluster/decode"
	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
)

const discovery, exchange = 255, 252

const macs = "020000000001 020000000002"

// golden are messages as docs/wire-format.md has them, and what is read from them.
var golden = []struct {
	name        string
	port        uint8
	bytes, text string
}{
	{"an announcement", discovery, "01 01 02 01 0004 05" + macs + "616c706861",
		`announcement of one of 4 nodes, "alpha", network 1 of 02:00:00:00:00:01, 02:00:00:00:00:02, seeking`},
	{"of a node that knows all, without a name", discovery, "01 00 01 00 ffff 00 020000000001",
		`announcement of one of 65535 nodes, "", network 0 of 02:00:00:00:00:01`},
	{"a name with a line's end", discovery, "01 00 01 00 0002 02 020000000001 610a",
		`announcement of one of 2 nodes, "a?", network 0 of 02:00:00:00:00:01`},
	{"with a place", discovery, "01 02 01 00 0002 01 020000000001 61 0123456789abcdef 000000000000000f 0002 01 00",
		`announcement of one of 2 nodes, "a", network 0 of 02:00:00:00:00:01, host 0123456789abcdef, cores 000000000000000f, 2 at one time, by memory`},
	{"of a node that has failed", discovery, "01 05 01 00 0002 01 020000000001 61",
		`announcement of one of 2 nodes, "a", network 0 of 02:00:00:00:00:01, seeking, failed`},
	{"with a place cut off", discovery, "01 02 01 00 0002 00 020000000001 0123456789abcdef 000000000000000f 0002 01",
		`[malformed announcement, 32 bytes] "\x01"`},
	{"an announcement of another version", discovery, "02 01 02 01 0004 05" + macs + "616c706861", `[malformed announcement, 24 bytes] "\x02"`},
	{"without an address", discovery, "01 01 00 00 0004 00", `[malformed announcement, 7 bytes] "\x01"`},
	{"a request", exchange, "07 01 0000 0000001a 0000002b 00000007 00000000 00000000 6869", `exchange: request 7 of life 0000001a to 0000002b, from 0 on, 2 bytes "hi"`},
	{"an answer", exchange, "07 02 0000 0000001a 0000002b 00000007 00000001 00000003 6869", `exchange: answer 7 of life 0000001a to 0000002b, 2 bytes from 1 on, of 3 "hi"`},
	{"pending", exchange, "07 03 0000 0000001a 0000002b 00000007 00000000 00000000", "exchange: pending 7 of life 0000001a to 0000002b"},
	{"a fetch", exchange, "07 04 0000 0000001a 0000002b 00000003 00000005 00000000", "exchange: fetch 3 of life 0000001a to 0000002b, from 5 on"},
	{"a part", exchange, "07 05 0000 0000001a 0000002b 00000003 00000001 00000009 74776f", `exchange: part 3 of life 0000001a to 0000002b, 3 bytes from 1 on, of 9 "two"`},
	{"a part of none", exchange, "07 05 0000 0000001a 0000002b 00000003 00000000 ffffffff", "exchange: part 3 of life 0000001a to 0000002b, there is none yet"},
	{"done", exchange, "07 06 0000 0000001a 00000000 00000003 00000000 00000000", "exchange: done 3 of life 0000001a to 00000000"},
	{"former", exchange, "07 09 0000 0000001a 0000002b 00000000 00000000 00000000", "exchange: former 0 of life 0000001a to 0000002b"},
	{"of the version before", exchange, "05 000000 00000003 00000001 00000009 74776f 0000 0000 0000", `[malformed message of an exchange, 25 bytes] "\x05"`},
	{"no kind", exchange, "07 00 0000 0000001a 0000002b 00000003 00000000 00000000", `[malformed message of an exchange, 24 bytes] "\a"`},
	{"an unknown kind", exchange, "07 0a 0000 0000001a 0000002b 00000003 00000000 00000000", `[malformed message of an exchange, 24 bytes] "\a"`},
	{"cut off", exchange, "07 06 0000 0000001a 0000002b 00000003 00000000 000000", `[malformed message of an exchange, 23 bytes] "\a"`},
}

func TestRecords(t *testing.T) {
	for _, c := range golden {
		b := decodetest.Unhex(t, c.bytes)
		for _, kind := range []decode.Kind{decode.Unicast, decode.Broadcast} { // both are sent both ways
			if got := decodetest.Text(decodetest.Records(kind, c.port, b)); got != c.text {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.text)
			}
		}
		if n := len(decodetest.Records(decode.Multicast, c.port, b)); n != 0 {
			t.Errorf("%s: %d records of a multicast", c.name, n)
		}
	}
}

// Another port of exchanges is read once it is registered.
func TestRegister(t *testing.T) {
	done := golden[14]
	b := decodetest.Unhex(t, done.bytes)
	if n := len(decodetest.Records(decode.Unicast, 17, b)); n != 0 {
		t.Errorf("%d records", n)
	}
	clusterdecode.Register(17)
	defer decode.RegisterPort(17, nil)
	if got := decodetest.Text(decodetest.Records(decode.Unicast, 17, b)); got != done.text {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	for i, want := range map[int]string{
		0:  `{"seeking":true,"nodes":4,"network":1,"networks":["02:00:00:00:00:01","02:00:00:00:00:02"],"host":"alpha"}`,
		3:  `{"nodes":2,"network":0,"networks":["02:00:00:00:00:01"],"host":"a","place":{"host":"0123456789abcdef","cores":"000000000000000f","usable":2,"path":1}}`,
		12: `{"exchange":"part","incarnation":"0000001a","receiver":"0000002b","number":3,"offset":1,"length":9,"bytes":3}`,
		13: `{"exchange":"part","incarnation":"0000001a","receiver":"0000002b","number":3,"offset":0,"length":0,"none":true,"bytes":0}`,
	} {
		all := decodetest.Records(decode.Unicast, golden[i].port, decodetest.Unhex(t, golden[i].bytes))
		if b, err := json.Marshal(all[0]); err != nil || string(b) != want {
			t.Errorf("%s:\n%s, %v, want\n%s", golden[i].name, b, err, want)
		}
	}
}

// FuzzRecords: whatever comes to the ports of discovery and exchanges is shown on one line.
func FuzzRecords(f *testing.F) {
	for _, c := range golden {
		for _, v := range fuzzseed.Variants(decodetest.Unhex(f, c.bytes)) {
			f.Add(c.port == discovery, v)
		}
	}
	f.Fuzz(func(t *testing.T, announcement bool, b []byte) {
		port := uint8(exchange)
		if announcement {
			port = discovery
		}
		decodetest.Check(t, b, decodetest.Records(decode.Unicast, port, b))
	})
}
