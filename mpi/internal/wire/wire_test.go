package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

var (
	envelope = matching.Envelope{Context: 0x01020304, Tag: 0x05060708, Size: 3}
	memory   = matching.Memory{Window: 0x0a0b, Secret: 0x1112131415161718}
)

// records is one of each kind, and one of each flag.
var records = []matching.Record{
	{Kind: matching.Eager, Envelope: envelope},
	{Kind: matching.Eager, Envelope: envelope, ID: 0x2122232425262728, More: true},
	{Kind: matching.Request, Envelope: envelope, ID: 9, Memory: memory, More: true},
	{Kind: matching.Matched, ID: 0x2122232425262728},
	{Kind: matching.Matched, ID: 0x2122232425262728, Dropped: true},
	{Kind: matching.Offer, Envelope: envelope, ID: 9, Memory: memory, Seen: 0x31323334},
	{Kind: matching.Done, Envelope: envelope, ID: 9},
	{Kind: matching.Withdraw, ID: 9},
	{Kind: matching.Withdrawn, ID: 9},
	{Kind: matching.Credit, Headers: 5, Bytes: 6, Seen: 7},
	{Kind: matching.Waiting},
	{Kind: matching.Gone},
}

func bytesOf(r *matching.Record) []byte {
	b := Append(nil, r)
	if r.Kind == matching.Eager {
		b = append(b, "abc"...)
	}
	return b
}

func TestRecords(t *testing.T) {
	for _, want := range records {
		b := bytesOf(&want)
		var got matching.Record
		data, err := Parse(&got, b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v, want %+v", got, err, want)
		}
		if want.Kind == matching.Eager && string(data) != "abc" {
			t.Errorf("%q", data)
		}
		for n := range len(b) { // an eager message may be shorter
			if _, err := Parse(&got, b[:n]); !errors.Is(err, ErrMalformed) && (want.Kind != matching.Eager || n < HeadLen) {
				t.Errorf("%+v, cut to %d bytes: %v", want, n, err)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	for k, want := range []string{
		"\x21\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08abc",
		"\x21\x03\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x21\x22\x23\x24\x25\x26\x27\x28abc",
		"\x22\x01\x0a\x0b\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x09" +
			"\x00\x00\x00\x00\x00\x00\x00\x03\x11\x12\x13\x14\x15\x16\x17\x18\x00\x00\x00\x00",
		"\x23\x00\x00\x00\x21\x22\x23\x24\x25\x26\x27\x28",
		"\x23\x04\x00\x00\x21\x22\x23\x24\x25\x26\x27\x28",
		"\x24\x00\x0a\x0b\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x09" +
			"\x00\x00\x00\x00\x00\x00\x00\x03\x11\x12\x13\x14\x15\x16\x17\x18\x31\x32\x33\x34",
		"\x25\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x09" +
			"\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x26\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09",
		"\x27\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09",
		"\x28\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00\x07",
		"\x29\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if got := bytesOf(&records[k]); string(got) != want {
			t.Errorf("%+v: %x, want %x", records[k], got, want)
		}
	}
}

func TestMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"no kind":                  append([]byte{0x20}, make([]byte, 11)...),
		"an unknown kind":          append([]byte{0x2b}, make([]byte, 11)...),
		"an unknown flag":          append([]byte{0x21, 8}, make([]byte, 10)...),
		"a flag of another kind":   append([]byte{0x21, 4}, make([]byte, 10)...),
		"an id that is none":       append([]byte{0x21, 2}, make([]byte, 18)...),
		"an id where there is one": append([]byte{0x22, 2}, make([]byte, 38)...),
		"too long":                 append([]byte{0x23}, make([]byte, 12)...),
		"a size below 0":           append([]byte{0x22}, bytes.Repeat([]byte{0xff}, 39)...),
	} {
		if name == "a size below 0" {
			b[1] = 0
		}
		if _, err := Parse(new(matching.Record), b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse(new(matching.Record), append([]byte{0x31}, make([]byte, 11)...)); !errors.Is(err, ErrVersion) {
		t.Errorf("%v", err)
	}
}

// FuzzRecord: whatever is parsed is what appending it gives.
func FuzzRecord(f *testing.F) {
	for _, r := range records {
		for _, b := range fuzzseed.Variants(bytesOf(&r)) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r matching.Record
		data, err := Parse(&r, b)
		if err != nil {
			return
		}
		if again := append(Append(nil, &r), data...); !bytes.Equal(again, b) {
			t.Errorf("%x was parsed as %+v, which is %x", b, r, again)
		}
	})
}
