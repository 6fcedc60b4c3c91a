package rpc

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
)

// FuzzRecord: whatever is parsed is what appending it gives; views lie in the record.
func FuzzRecord(f *testing.F) {
	f.Add(appendRequest(nil, 7, "echo", time.Second, []byte("data")))
	f.Add(append(appendHead(nil, response, failed, 1<<63), "no such file"...))
	f.Add(appendHead(nil, cancellation, ok, 0))
	for _, malformed := range malformedRecords() {
		f.Add(malformed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r record
		if r.parse(b) != nil {
			return
		}
		var again []byte
		if r.kind == request {
			again = appendRequest(nil, r.call, string(r.service), r.left, r.data)
		} else {
			again = append(appendHead(nil, r.kind, r.status, r.call), r.data...)
		}
		again[0] = b[0] // a refusal of another version is taken
		if !bytes.Equal(again, b) {
			t.Errorf("%x is parsed as %+v, which is %x", b, r, again)
		}
	})
}

// malformedRecords is one for each reason to refuse a record.
func malformedRecords() map[string][]byte {
	good := appendRequest(nil, 7, "echo", time.Second, []byte("data"))
	with := func(at int, values ...byte) []byte {
		return slices.Replace(slices.Clone(good), at, at+len(values), values...)
	}
	return map[string][]byte{
		"cut off":                     good[:headLen-1],
		"a request cut off":           good[:requestLen+3],
		"no kind":                     with(0, version<<4),
		"an unknown kind":             with(0, version<<4|byte(kinds)),
		"a request with a status":     with(1, byte(failed)),
		"an unknown status":           appendHead(nil, response, statuses, 1),
		"another version":             with(0, (version+1)<<4|byte(request)),
		"a reserved byte":             with(3, 1),
		"no service":                  with(2, 0),
		"a deadline in 300,000 years": with(headLen, 0xff),
		"a response with a service":   append(appendHead(nil, response, ok, 1)[:2], 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
		"a cancellation with data":    append(appendHead(nil, cancellation, ok, 1), 'x'),
	}
}

func TestParse_Malformed(t *testing.T) {
	for what, b := range malformedRecords() {
		if err := new(record).parse(b); err == nil {
			t.Errorf("%s is taken", what)
		} else if want := errMalformed; what != "another version" && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}
