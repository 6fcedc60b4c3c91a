package strictyaml

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"go.yaml.in/yaml/v4"
)

var errKind = errors.New("bad file")

// Any bytes are read, or have faults with lines of the file, at most MaxFaults and one.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"name: x\nnumbers: [1, 2]\n", "numbers: [010, 2]", "", "# nothing", "name: [", "name: x\n---\nname: y\n", "x", "[]", "name: x", "numbers: [x]",
		"{name: {a: b}, numbers: x}", "name: null\nnumbers: null", "name: &a x\nnumbers: *a", "name: x\nname: y\nnumbers: []", "[a]: b",
		"more: 1\nname: a\nnumbers: [0, 10, 11, 99999999999999999999]", "name: \"\\xff\"\nnumbers: [0x5]", "a: &a [*a]\nname: *a",
		"numbers: [" + strings.Repeat("1, ", 40) + "1]", "numbers: [" + strings.Repeat("x, ", 29) + "x]\nname: x", "name: x\x00", strings.Repeat("# long\n", 200),
	} {
		f.Add([]byte(text))
	}
	broken := errors.New("broken")
	if err := (&File{Name: "f", Kind: errKind}).Read(iotest.ErrReader(broken), 1000, nil); !errors.Is(err, broken) {
		f.Error(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := &File{Name: "f", Kind: errKind}
		var name string
		numbers := 0
		err := file.Read(bytes.NewReader(text), 1000, func(root *yaml.Node) {
			file.Mapping(root, "file",
				Required("numbers", func(n *yaml.Node) {
					entries, _ := file.List(n, "numbers", 30)
					for _, n := range entries {
						if i, ok := file.Number(n, "number", 1, 10); ok && (i < 1 || i > 10) {
							t.Errorf("%d is taken", i)
						}
						numbers++
					}
				}),
				Optional("name", func(n *yaml.Node) { name, _ = file.Text(n, "name") }))
		})
		if len(text) > 1000 && err == nil {
			t.Error("a file that is too large is read")
		}
		if numbers > 30 || len(file.Faults) > MaxFaults+1 {
			t.Errorf("%d entries, %d faults", numbers, len(file.Faults))
		}
		if err == nil {
			return
		}
		if !errors.Is(err, errKind) {
			t.Errorf("%v", err)
		}
		for _, fault := range file.Faults {
			if lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 2; fault.Line < 1 || fault.Line > lines && !bytes.ContainsAny(text, "\u0085\u2028\u2029") {
				t.Errorf("line %d of %d: %v", fault.Line, lines, fault)
			}
		}
		if strings.Count(err.Error(), "f:") < min(1, len(file.Faults)) {
			t.Errorf("%v", err)
		}
		_ = name
	})
}
