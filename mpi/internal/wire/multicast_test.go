package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// multicasts is one of each kind, with the bytes that they are.
var multicasts = []struct {
	record Multicast
	bytes  string
}{
	{Multicast{Kind: Data, Context: 0x41424344, Number: 0x01020304, Incarnation: 0x61626364,
		Operation: Operation{Bcast, 0x31323334}, Data: []byte("xyz")},
		"\x2c\x01\x01\x00ABCD\x01\x02\x03\x04abcd1234xyz"},
	{Multicast{Kind: Data, Context: 1, Number: 2, Incarnation: 3, Operation: Operation{Allreduce, 4}},
		"\x2c\x01\x02\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04"},
	{Multicast{Kind: Data, Context: 1, Number: 2, Incarnation: 3, Operation: Operation{Allgather, 4}, Told: []byte("abcdefgh"), Data: []byte("x")},
		"\x2c\x01\x03\x02\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04abcdefghx"},
	{Multicast{Kind: Ask, Context: 1, Number: 2}, "\x2c\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00"},
	{Multicast{Kind: Ask, Context: 1, Number: 9, Ended: 7}, "\x2c\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x07"},
	{Multicast{Kind: Have, Context: 1, Number: 2, Missed: 0x0304},
		"\x2c\x03\x03\x04\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00"},
	{Multicast{Kind: Withdrawn, Context: 1, Number: 2}, "\x2c\x04\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00"},
	{Multicast{Kind: Left, Context: 1}, "\x2c\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
	{Multicast{Kind: Waiting, Context: 1, Number: 2}, "\x2c\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00"},
}

func TestMulticast(t *testing.T) {
	for _, want := range multicasts {
		b := AppendMulticast(nil, &want.record)
		if string(b) != want.bytes {
			t.Errorf("%+v: %x, want %x", want.record, b, want.bytes)
		}
		var got Multicast
		if err := ParseMulticast(&got, b); err != nil || !IsMulticast(b) || got.Kind != want.record.Kind || got.Missed != want.record.Missed ||
			got.Context != want.record.Context || got.Number != want.record.Number ||
			got.Incarnation != want.record.Incarnation || got.Ended != want.record.Ended || !bytes.Equal(got.Told, want.record.Told) ||
			!bytes.Equal(got.Data, want.record.Data) || got.Operation != want.record.Operation {
			t.Errorf("%+v, %v, want %+v", got, err, want.record)
		}
		for n := range len(b) - len(want.record.Data) {
			if err := ParseMulticast(&got, b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%+v, cut to %d bytes: %v", want.record, n, err)
			}
		}
	}
	if IsMulticast(nil) || IsMulticast(bytesOf(&records[0])) || IsMulticast(AppendComm(nil, &comms[0].record)) {
		t.Error("another record is a multicast")
	}
}

func TestMulticast_Malformed(t *testing.T) {
	for name, b := range map[string]string{
		"says nothing":                "\x2c\x00\x00\x00ABCD\x00\x00\x00\x01abcd",
		"says what is not known":      "\x2c\x07\x00\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x00",
		"tells more than it has":      "\x2c\x01\x01\x02ABCD\x00\x00\x00\x01abcd00001234123",
		"asks, and has what Have has": "\x2c\x02\x01\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x00",
		"has what is reserved, too":   "\x2c\x02\x00\x01ABCD\x00\x00\x00\x01\x00\x00\x00\x00",
		"is of no incarnation":        "\x2c\x01\x01\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x001234",
		"is of no operation":          "\x2c\x01\x00\x00ABCD\x00\x00\x00\x01abcd1234",
		"is of one without":           "\x2c\x01\x04\x00ABCD\x00\x00\x00\x01abcd1234",
		"has one's incarnation":       "\x2c\x03\x00\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x01",
		"asks for one, and says more": "\x2c\x02\x00\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x00a",
		"says who has left, and what": "\x2c\x05\x00\x00ABCD\x00\x00\x00\x01\x00\x00\x00\x00",
	} {
		if err := ParseMulticast(new(Multicast), []byte(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("a record that %s: %v", name, err)
		}
	}
	if err := ParseMulticast(new(Multicast), AppendComm(nil, &comms[0].record)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a record about a communicator: %v", err)
	}
	if err := ParseMulticast(new(Multicast), []byte("\x3c")); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

// What each is told is found by rank, and by nobody in a communicator of another size.
func TestMulticast_ToldTo(t *testing.T) {
	m := Multicast{Told: AppendTold(AppendTold(AppendTold(nil, 7), 0), 1<<32-1)}
	for rank, want := range []uint32{7, 0, 1<<32 - 1} {
		if got, ok := m.ToldTo(rank, 3); got != want || !ok {
			t.Errorf("rank %d is told %d, %v, want %d", rank, got, ok, want)
		}
	}
	for _, processes := range []int{2, 4} {
		if got, ok := m.ToldTo(1, processes); ok {
			t.Errorf("one of %d is told %d of 3", processes, got)
		}
	}
}

// FuzzMulticast: whatever is parsed is what appending it gives.
func FuzzMulticast(f *testing.F) {
	for _, c := range multicasts {
		for _, b := range fuzzseed.Variants(AppendMulticast(nil, &c.record)) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Multicast
		if ParseMulticast(&m, b) != nil {
			return
		}
		if again := AppendMulticast(nil, &m); !bytes.Equal(again, b) {
			t.Errorf("%x was parsed as %+v, which is %x", b, m, again)
		}
	})
}
