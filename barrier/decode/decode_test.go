package decode_test

import (
	"encoding/json"
	"testing"

	barrierdecode "github.com/rawlane/rawlane/barrier/decode"
	"github.com/rawlane/rawlane/internal/decodetest"
	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mcd/decode"
)

const (
	group = "0102030405060708 00000005" // its identity and epoch
	tail  = "a1a2a3a4 b1b2b3b4"         // algorithm and incarnation
	is    = "group 0102030405060708 epoch 5"
	of7   = "barrier 7 of " + is + ", generation 9: "
)

// golden are messages as docs/wire-format.md has them, and what is read from them.
var golden = []struct{ name, bytes, text string }{
	{"notify", "41 07 03 00" + group + "00000009" + tail, of7 + "notify, label 3"},
	{"notify of the first generation", "41 07 03 00" + group + "00000001" + tail + "0003 00000000 b1b2b3b4 00000005",
		"barrier 7 of " + is + ", generation 1: notify, label 3"},
	{"nack", "42 07 ff 08" + group + "00000009" + tail, of7 + "nack, label 255, the receiver was heard"},
	{"not yet", "43 07 03 01" + group + "00000009" + tail + "00000008", of7 + "not yet, label 3, entered, itself at generation 8"},
	{"fail", "44 07 00 00" + group + "00000009" + tail + "05 00 0002 0001 0102", of7 + "fail: 1 another algorithm, 258 another algorithm"},
	{"bye", "45 00 00 00" + group + "00000000" + tail + "b5b6b7b8 0002 00 00000003 ff 00000004 0002 00000001 b5b6b7b8",
		is + ": bye, 0 completed to 3, 255 completed to 4"},
	{"bye ack", "46 00 00 00" + group + "00000000 00000000 00000000", is + ": bye ack"},
	{"status request", "47 07 00 00" + group + "00000009" + tail, of7 + "status request"},
	{"status reply", "48 07 00 01" + group + "00000009" + tail, of7 + "status reply, entered"},
	{"status reply, not entered", "48 07 00 00" + group + "00000009" + tail, of7 + "status reply, not entered"},
	{"no such group", "49 07 00 08" + group + "00000009 00000000 00000000 00000007 0a",
		of7 + "no such group, answers report, epoch 7 exists, the receiver was heard"},
	{"no such group, to an unknown kind", "49 07 00 00" + group + "00000009 00000000 00000000 00000000 ff",
		of7 + "no such group, answers ?"},
	{"report", "4a 00 00 0e" + group + "00000003" + tail + "b5b6b7b8 0002 0001 01 0102 04",
		is + ": report 3, the receiver was heard, decided, query: 1 silent, 258 restarted"},
	{"another version", "31 07 03 00" + group + "00000009" + tail, `[malformed message of a barrier, 28 bytes] "1"`},
	{"no kind", "4b 07 03 00" + group + "00000009" + tail, `[malformed message of a barrier, 28 bytes] "K"`},
	{"without incarnation", "42 07 ff 00" + group + "00000009 a1a2a3a4 00000000", `[malformed message of a barrier, 28 bytes] "B"`},
	{"cut off", "41 07", `[malformed message of a barrier, 2 bytes] "A"`},
}

func text(port uint8, payload []byte) string {
	return decodetest.Text(decodetest.Records(decode.Unicast, port, payload))
}

func TestRecords(t *testing.T) {
	for _, c := range golden {
		b := decodetest.Unhex(t, c.bytes)
		if got := text(254, b); got != c.text {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.text)
		}
		// A release is a multicast. Nothing is broadcast to a barrier.
		if n := len(decodetest.Records(decode.Multicast, 254, b)); n != 1 {
			t.Errorf("%s: %d records of a multicast", c.name, n)
		}
		if n := len(decodetest.Records(decode.Broadcast, 254, b)); n != 0 {
			t.Errorf("%s: %d records of a broadcast", c.name, n)
		}
	}
}

// Another port is read once it is registered.
func TestRegister(t *testing.T) {
	b := decodetest.Unhex(t, golden[0].bytes)
	if got := text(17, b); got != "" {
		t.Error(got)
	}
	barrierdecode.Register(17)
	defer decode.RegisterPort(17, nil)
	if got := text(17, b); got != golden[0].text {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	for i, want := range map[int]string{
		1: `{"message":"notify","number":7,"label":3,"group":"0102030405060708","epoch":5,"generation":1,` +
			`"algorithm":"a1a2a3a4","incarnation":"b1b2b3b4","known":["00000000","b1b2b3b4","00000005"]}`,
		3: `{"message":"not yet","number":7,"label":3,"group":"0102030405060708","epoch":5,"generation":9,` +
			`"algorithm":"a1a2a3a4","incarnation":"b1b2b3b4","entered":true,"own":8}`,
		5: `{"message":"bye","number":0,"label":0,"group":"0102030405060708","epoch":5,"generation":0,` +
			`"algorithm":"a1a2a3a4","incarnation":"b1b2b3b4","receiver":"b5b6b7b8","known":["00000001","b5b6b7b8"],` +
			`"completed":[{"number":0,"generation":3},{"number":255,"generation":4}]}`,
		10: `{"message":"no such group","number":7,"label":0,"group":"0102030405060708","epoch":5,"generation":9,` +
			`"algorithm":"00000000","incarnation":"00000000","heard":true,"lowest":7,"answers":"report"}`,
		12: `{"message":"report","number":0,"label":0,"group":"0102030405060708","epoch":5,"generation":3,` +
			`"algorithm":"a1a2a3a4","incarnation":"b1b2b3b4","receiver":"b5b6b7b8","heard":true,"decided":true,"query":true,` +
			`"gone":[{"rank":1,"reason":"silent"},{"rank":258,"reason":"restarted"}]}`,
	} {
		all := decodetest.Records(decode.Unicast, 254, decodetest.Unhex(t, golden[i].bytes))
		if b, err := json.Marshal(all[0]); err != nil || string(b) != want {
			t.Errorf("%s:\n%s, %v, want\n%s", golden[i].name, b, err, want)
		}
	}
}

// FuzzRecords: whatever comes to the port of barriers is shown on one line.
func FuzzRecords(f *testing.F) {
	for _, c := range golden {
		for _, v := range fuzzseed.Variants(decodetest.Unhex(f, c.bytes)) {
			f.Add(v)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { decodetest.Check(t, b, decodetest.Records(decode.Unicast, 254, b)) })
}
