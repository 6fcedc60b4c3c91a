package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
)

// FuzzRecord: whatever is parsed is what appending it gives; views lie in the record.
func FuzzRecord(f *testing.F) {
	f.Add(AppendRequest(nil, 7, "echo", time.Second, []byte("data")))
	f.Add(append(AppendHead(nil, Response, Failed, 1<<63), "no such file"...))
	f.Add(AppendHead(nil, Cancellation, OK, 0))
	for _, malformed := range malformedRecords() {
		f.Add(malformed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		if r.Parse(b) != nil {
			return
		}
		var again []byte
		if r.Kind == Request {
			again = AppendRequest(nil, r.Call, string(r.Service), r.Left, r.Data)
		} else {
			again = append(AppendHead(nil, r.Kind, r.Status, r.Call), r.Data...)
		}
		again[0] = b[0] // a refusal of another version is taken
		if !bytes.Equal(again, b) {
			t.Errorf("%x is parsed as %+v, which is %x", b, r, again)
		}
	})
}

// malformedRecords is one for each reason to refuse a record.
func malformedRecords() map[string][]byte {
	good := AppendRequest(nil, 7, "echo", time.Second, []byte("data"))
	with := func(at int, values ...byte) []byte {
		return slices.Replace(slices.Clone(good), at, at+len(values), values...)
	}
	return map[string][]byte{
		"cut off":                     good[:HeadLen-1],
		"a request cut off":           good[:RequestLen+3],
		"no kind":                     with(0, Version<<4),
		"an unknown kind":             with(0, Version<<4|byte(kinds)),
		"a request with a status":     with(1, byte(Failed)),
		"an unknown status":           AppendHead(nil, Response, statuses, 1),
		"another version":             with(0, (Version+1)<<4|byte(Request)),
		"a reserved byte":             with(3, 1),
		"no service":                  with(2, 0),
		"a deadline in 300,000 years": with(HeadLen, 0xff),
		"a response with a service":   append(AppendHead(nil, Response, OK, 1)[:2], 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
		"a cancellation with data":    append(AppendHead(nil, Cancellation, OK, 1), 'x'),
	}
}

func TestParse_Malformed(t *testing.T) {
	for what, b := range malformedRecords() {
		if err := new(Record).Parse(b); err == nil {
			t.Errorf("%s is taken", what)
		} else if want := ErrMalformed; what != "another version" && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

// The names of kinds and statuses are for people.
func TestNames(t *testing.T) {
	for k, want := range []string{"?", "request", "response", "cancellation", "?", "?"} {
		if is := Kind(k).String(); is != want {
			t.Errorf("kind %d is %q, want %q", k, is, want)
		}
	}
	for s, want := range []string{
		"done", "failed", "nobody serves it", "too many requests wait", "the call is over", "another version", "closing", "?", "?",
	} {
		if is := Status(s).String(); is != want {
			t.Errorf("status %d is %q, want %q", s, is, want)
		}
	}
}
