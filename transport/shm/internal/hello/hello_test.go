package hello

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

var good = Hello{MAC: transport.MAC{2, 1, 2, 3, 4, 5}, MTU: 9000, Data: 512 << 10, Bit: 447}

// Golden bytes, both ways.
func TestHello_Bytes(t *testing.T) {
	want := []byte("rwlnshm\x01\x02\x01\x02\x03\x04\x05\x00\x00\x28\x23\x00\x00\x00\x00\x08\x00\xbf\x01\x00\x00\x00\x00\x00\x00")
	got := good.AppendTo(nil)
	if !bytes.Equal(got, want) || len(got) != Len {
		t.Errorf("%q, want %q", got, want)
	}
	if h, err := Parse(want); h != good || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
}

// Each bit of a bell may be a link's: the first one and the last are taken, too.
func TestParse_EveryBit(t *testing.T) {
	for bit := range records.Rings {
		h := good
		h.Bit = bit
		if got, err := Parse(h.AppendTo(nil)); got != h || err != nil {
			t.Errorf("bit %d: %+v, %v", bit, got, err)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	with := func(change func(h *Hello)) []byte {
		h := good
		change(&h)
		return h.AppendTo(nil)
	}
	at := func(i int, v byte) []byte {
		b := good.AppendTo(nil)
		b[i] = v
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":               nil,
		"too short":             good.AppendTo(nil)[:Len-1],
		"too long":              append(good.AppendTo(nil), 0),
		"another version":       at(7, 2),
		"not zero behind MAC":   at(15, 1),
		"not zero at the end":   at(Len-1, 1),
		"no MAC":                with(func(h *Hello) { h.MAC = transport.MAC{} }),
		"a group's MAC":         with(func(h *Hello) { h.MAC[0] = 3 }),
		"no MTU":                with(func(h *Hello) { h.MTU = 0 }),
		"a ring too small":      with(func(h *Hello) { h.Data = records.MinData }),
		"no power of two":       with(func(h *Hello) { h.Data++ }),
		"a bit that is not":     with(func(h *Hello) { h.Bit = records.Rings }),
		"a bit below the first": with(func(h *Hello) { h.Bit = -1 }),
	} {
		if h, err := Parse(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", name, h, err)
		}
	}
}

// What is taken is what its bytes say, and can be used.
func FuzzParse(f *testing.F) {
	f.Add(good.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Parse(b)
		if err != nil {
			return
		}
		if !bytes.Equal(h.AppendTo(nil), b) {
			t.Errorf("%+v has other bytes than it came from", h)
		}
		if !records.Valid(h.Data, h.MTU) || h.Bit < 0 || h.Bit >= records.Rings {
			t.Errorf("%+v is taken", h)
		}
	})
}
