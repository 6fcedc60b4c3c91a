package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// windowRecords is one of each kind, and a lock of each kind, with the bytes that they are.
var windowRecords = []struct {
	record WindowRecord
	bytes  string
}{
	{
		WindowRecord{Kind: Accumulate, Context: 0x41424344, Update: 3, At: 0x0102030405060708, Data: []byte("abcd")},
		"\x21\x03\x00\x00ABCD\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08abcd",
	},
	{
		WindowRecord{Kind: Fetch, Context: 0x41424344, Update: 9, ID: 0x11121314, At: 7, Data: []byte("abcd")},
		"\x22\x09\x00\x00ABCD\x11\x12\x13\x14\x00\x00\x00\x00\x00\x00\x00\x07abcd",
	},
	{
		WindowRecord{Kind: CompareSwap, Context: 0x41424344, ID: 1, At: 7, Data: []byte("abcd")},
		"\x23\x00\x00\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07abcd",
	},
	{WindowRecord{Kind: Value, Context: 0x41424344, ID: 1, Data: []byte("ab")}, "\x24\x00\x00\x00ABCD\x00\x00\x00\x01ab"},
	{WindowRecord{Kind: Lock, Context: 0x41424344, ID: 2}, "\x25\x00\x00\x00ABCD\x00\x00\x00\x02"},
	{WindowRecord{Kind: Lock, Context: 0x41424344, ID: 2, Exclusive: true}, "\x25\x01\x00\x00ABCD\x00\x00\x00\x02"},
	{WindowRecord{Kind: Granted, Context: 0x41424344, ID: 2}, "\x26\x00\x00\x00ABCD\x00\x00\x00\x02"},
	{WindowRecord{Kind: Release, Context: 0x41424344, ID: 2}, "\x27\x00\x00\x00ABCD\x00\x00\x00\x02"},
	{WindowRecord{Kind: Post, Context: 0x41424344}, "\x28\x00\x00\x00ABCD\x00\x00\x00\x00"},
	{WindowRecord{Kind: Complete, Context: 0x41424344}, "\x29\x00\x00\x00ABCD\x00\x00\x00\x00"},
	{WindowRecord{Kind: Freed, Context: 0x41424344}, "\x2a\x00\x00\x00ABCD\x00\x00\x00\x00"},
}

func TestWindowRecords(t *testing.T) {
	for _, want := range windowRecords {
		b := AppendWindow(nil, &want.record)
		if string(b) != want.bytes {
			t.Errorf("%+v: %x, want %x", want.record, b, want.bytes)
		}
		var got WindowRecord
		if err := ParseWindow(&got, b); err != nil || !reflect.DeepEqual(got, want.record) {
			t.Errorf("%+v, %v, want %+v", got, err, want.record)
		}
		for n := range len(b) - len(want.record.Data) {
			if err := ParseWindow(&got, b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%+v, cut to %d bytes: %v", want.record, n, err)
			}
		}
	}
}

func TestWindowRecords_Malformed(t *testing.T) {
	for name, b := range map[string]string{
		"no kind":                "\x20\x00\x00\x00ABCD\x00\x00\x00\x01",
		"an unknown kind":        "\x2b\x00\x00\x00ABCD\x00\x00\x00\x00",
		"a lock of a third kind": "\x25\x02\x00\x00ABCD\x00\x00\x00\x01",
		"an update of none":      "\x26\x01\x00\x00ABCD\x00\x00\x00\x01",
		"bytes that are not 0":   "\x26\x00\x00\x01ABCD\x00\x00\x00\x01",
		"bytes that are not 0 ":  "\x26\x00\x01\x00ABCD\x00\x00\x00\x01",
		"no id":                  "\x26\x00\x00\x00ABCD\x00\x00\x00\x00",
		"an id of none":          "\x28\x00\x00\x00ABCD\x00\x00\x00\x01",
		"data of none":           "\x26\x00\x00\x00ABCD\x00\x00\x00\x01a",
		"no elements":            "\x24\x00\x00\x00ABCD\x00\x00\x00\x01",
		"no place":               "\x21\x00\x00\x00ABCD\x00\x00\x00\x00\x01",
		"nothing to update":      "\x21\x00\x00\x00ABCD\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
	} {
		if err := ParseWindow(new(WindowRecord), []byte(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ParseWindow(new(WindowRecord), []byte("\x36\x00\x00\x00ABCD\x00\x00\x00\x01")); !errors.Is(err, ErrVersion) {
		t.Errorf("%v", err)
	}
}

// FuzzWindowRecord: whatever is parsed is what appending it gives.
func FuzzWindowRecord(f *testing.F) {
	for _, r := range windowRecords {
		for _, b := range fuzzseed.Variants([]byte(r.bytes)) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r WindowRecord
		if ParseWindow(&r, b) != nil {
			return
		}
		if again := AppendWindow(nil, &r); string(again) != string(b) {
			t.Errorf("%x becomes %x", b, again)
		}
	})
}
