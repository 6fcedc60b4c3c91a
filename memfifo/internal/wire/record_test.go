package wire

import (
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// The layouts are those of docs/wire-format.md.
func TestOpcodes(t *testing.T) {
	for _, c := range []struct {
		op   Opcode
		name string
		size int
	}{
		{1, "put", 22}, {2, "push", 18}, {3, "try push", 18}, {4, "get", 30}, {5, "fetch and add", 34}, {6, "swap", 34},
		{7, "compare and swap", 42}, {8, "fence", 8}, {9, "data", 12}, {10, "value", 16}, {11, "error", 9}, {12, "refused", 7},
		{13, "put continue", 4},
	} {
		if c.op.String() != c.name || c.op.Size(0) != c.size || c.op.Size(5) != c.size+5 {
			t.Errorf("opcode %d: %v, %d bytes, want %s, %d", c.op, c.op, c.op.Size(0), c.name, c.size)
		}
	}
	if Opcodes != 14 || Opcode(0).String() != "?" || Opcodes.String() != "?" || Opcode(255).String() != "?" {
		t.Error("there are others")
	}
}

func TestSplit(t *testing.T) {
	b := append([]byte{byte(Error), 0, 0, 2, 1, 2, 3, 4, 5, 'h', 'i'}, "more"...)
	op, data, end, ok := Split(b)
	if op != Error || string(b[HeadLen:data]) != "\x01\x02\x03\x04\x05" || string(b[data:end]) != "hi" || !ok {
		t.Errorf("%v, %d, %d, %v", op, data, end, ok)
	}
	for n := range end {
		if _, _, _, ok := Split(b[:n]); ok {
			t.Errorf("%d bytes are a record", n)
		}
	}
	for _, op := range []byte{0, byte(Opcodes), 255} {
		b[0] = op
		if _, _, _, ok := Split(b); ok {
			t.Errorf("opcode %d is one", op)
		}
	}
}

// FuzzSplit: what is a record lies in the bytes, and its fields have their length.
func FuzzSplit(f *testing.F) {
	for _, v := range fuzzseed.Variants([]byte{byte(Refused), 0, 0, 1, 0, 7, 1, 'x'}) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		op, data, end, ok := Split(b)
		if !ok {
			return
		}
		fields := 0
		for _, field := range op.Fields() {
			fields += field.Size
		}
		if data != HeadLen+fields || end < data || end > len(b) || op.String() == "?" {
			t.Errorf("%v: data at %d, end at %d of %d", op, data, end, len(b))
		}
	})
}
