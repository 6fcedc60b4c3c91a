package rpc

import (
	"bytes"
	"testing"
	"time"
)

// FuzzRecord: whatever is parsed is what appending it gives; views lie in the record.
func FuzzRecord(f *testing.F) {
	f.Add(appendRequest(nil, 7, "echo", time.Second, []byte("data")))
	f.Add(append(appendHead(nil, response, failed, 1<<63), "no such file"...))
	f.Add(appendHead(nil, cancellation, ok, 0))
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
