package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
	"github.com/rawlane/rawlane/mpi/internal/consensus"
)

var value = consensus.Value{
	Flags: 0x3132333435363738, Context: 0x41424344, Failed: consensus.Set{1, 2}, Unacknowledged: consensus.Set{1},
}

// comms is records about communicators, with what is sent.
var comms = []struct {
	record Comm
	golden string
}{
	{Comm{Context: 0x01020304, Message: consensus.Message{
		Kind: consensus.State, Number: 9,
		Contribution: consensus.Contribution{Flags: 5, Context: 6, Acknowledged: consensus.Set{8}, Down: consensus.Set{0, 4}},
	}}, "\x2b\x01\x00\x00\x01\x02\x03\x04\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00\x00" +
		"\x00\x01\x08\x00\x02\x00\x04"},
	{Comm{Context: 1, Message: consensus.Message{Kind: consensus.State, Number: 9, Round: 7, Value: value}},
		"\x2b\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
			"\x00\x00\x00\x00\x31\x32\x33\x34\x35\x36\x37\x38\x41\x42\x43\x44\x00\x02\x01\x02\x00\x01\x01"},
	{Comm{Context: 1, Message: consensus.Message{Kind: consensus.Propose, Number: 9, Value: value}},
		"\x2b\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x31\x32\x33\x34\x35\x36\x37\x38\x41\x42\x43\x44\x00\x02\x01\x02\x00\x01\x01"},
	{Comm{Context: 1, Message: consensus.Message{Kind: consensus.Accept, Number: 9}},
		"\x2b\x03\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09"},
	{Comm{Context: 1, Message: consensus.Message{Kind: consensus.Decide, Number: 9, Value: consensus.Value{Flags: 1}}},
		"\x2b\x04\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
	{Comm{Context: 1, Revoke: true}, "\x2b\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"},
	{Comm{Context: 1, Left: true, Operation: 7}, "\x2b\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x07"},
	{Comm{Context: 1, Left: true, Operation: 7, Down: 0x5152}, "\x2b\x06\x51\x52\x00\x00\x00\x01\x00\x00\x00\x07"},
	{Comm{Context: 1, Left: true}, "\x2b\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"},
}

func TestComm(t *testing.T) {
	for _, c := range comms {
		b := AppendComm(nil, &c.record)
		if string(b) != c.golden {
			t.Errorf("%+v: %x, want %x", c.record, b, c.golden)
		}
		var got Comm
		if err := ParseComm(&got, b); err != nil || !IsComm(b) || !reflect.DeepEqual(got, c.record) {
			t.Errorf("%+v, %v, want %+v", got, err, c.record)
		}
		for n := range len(b) {
			if err := ParseComm(&got, b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%+v, cut to %d bytes: %v", c.record, n, err)
			}
		}
		if err := ParseComm(&got, append(b, 0)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v, and a byte more: %v", c.record, err)
		}
	}
	if IsComm(nil) || IsComm(bytesOf(&records[0])) {
		t.Error("a message is a record about a communicator")
	}
}

func TestComm_Malformed(t *testing.T) {
	decide := AppendComm(nil, &comms[4].record)
	for name, change := range map[string]func(b []byte){
		"says nothing":            func(b []byte) { b[1] = 0 },
		"says what is not known":  func(b []byte) { b[1] = revoke + 1 },
		"is of no agreement":      func(b []byte) { b[11] = 0 },
		"has what is reserved":    func(b []byte) { b[3] = 1 },
		"a set that ends with 0":  func(b []byte) { b[25] = 1 },
		"a set that is cut short": func(b []byte) { b[24] = 255 },
	} {
		b := bytes.Clone(decide)
		if change(b); name == "a set that ends with 0" {
			b = append(b, 0)
		}
		if err := ParseComm(new(Comm), b); !errors.Is(err, ErrMalformed) {
			t.Errorf("a record that %s: %v", name, err)
		}
	}
	b := AppendComm(nil, &comms[5].record)
	b[11] = 1
	if err := ParseComm(new(Comm), b); !errors.Is(err, ErrMalformed) {
		t.Errorf("a Revoke of an agreement: %v", err)
	}
}

// FuzzComm: whatever is parsed is what appending it gives.
func FuzzComm(f *testing.F) {
	for _, c := range comms {
		for _, b := range fuzzseed.Variants(AppendComm(nil, &c.record)) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Comm
		if !IsComm(b) || ParseComm(&r, b) != nil {
			return
		}
		if again := AppendComm(nil, &r); !bytes.Equal(again, b) {
			t.Errorf("%x was parsed as %+v, which is %x", b, r, again)
		}
	})
}
