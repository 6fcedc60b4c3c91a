// Package strictyaml reads YAML files strictly, and names the line of each fault.
package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxFaults bounds the faults of a file that are reported at once: users do not read more than a
// screen.
const MaxFaults = 24

// SyntaxError is one fault in a file.
type SyntaxError struct {
	File string
	Line int
	Msg  string // what was found, and what was expected
	Kind error  // what errors.Is finds in it, such as plan.ErrInvalid
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Is reports whether target is the fault's kind.
func (e *SyntaxError) Is(target error) bool { return target == e.Kind }

// File is a YAML file that is being read. Whatever is not expected is a fault. Reading goes on
// after a fault, so that a user sees all of them.
type File struct {
	Name   string
	Kind   error // of all faults
	Faults []*SyntaxError
}

// FaultAt notes a fault. It drops those beyond MaxFaults, except one that shows that there are
// more.
func (f *File) FaultAt(line int, format string, args ...any) {
	if len(f.Faults) <= MaxFaults {
		f.Faults = append(f.Faults, &SyntaxError{f.Name, line, fmt.Sprintf(format, args...), f.Kind})
	}
}

// Fault notes a fault of a node.
func (f *File) Fault(n *yaml.Node, format string, args ...any) { f.FaultAt(n.Line, format, args...) }

// Read reads the file, which must be one document of at most limit bytes, by a function that takes
// its content. The error joins all faults in the order of their lines, or is r's.
func (f *File) Read(r io.Reader, limit int, content func(root *yaml.Node)) error {
	root, err := f.root(r, limit)
	if err != nil {
		return err
	}
	if root != nil {
		content(root)
	}
	slices.SortStableFunc(f.Faults, func(a, b *SyntaxError) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for i, e := range f.Faults {
		if i == MaxFaults {
			errs = append(errs, &SyntaxError{f.Name, e.Line, "and more (mend these first)", f.Kind})
			break
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// root returns the content of the file, or notes a fault and returns nil. The error is r's.
func (f *File) root(r io.Reader, limit int) (*yaml.Node, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if len(text) > limit {
		f.FaultAt(1, "too large (want at most %d bytes)", limit)
		return nil, nil
	}
	var document, second yaml.Node
	loader, err := yaml.NewLoader(strings.NewReader(string(text)))
	if err == nil {
		if err = loader.Load(&document); err == nil {
			err = loader.Load(&second)
		}
	}
	var where *yaml.LoadError
	switch {
	case err == nil:
		f.Fault(&second, "a second document (want one)")
	case errors.As(err, &where):
		f.FaultAt(max(1, where.Mark.Line), "not YAML: %s", where.Message)
	case !errors.Is(err, io.EOF):
		f.FaultAt(1, "not YAML: %v", err)
	case len(document.Content) == 0:
		f.FaultAt(1, "empty")
	default:
		return document.Content[0], nil
	}
	return nil, nil
}

// Field is a key of a mapping, and the function that reads its value.
type Field struct {
	key      string
	required bool
	read     func(*yaml.Node)
}

// Required is a key that a mapping must have.
func Required(key string, read func(*yaml.Node)) Field { return Field{key, true, read} }

// Optional is a key that a mapping may have.
func Optional(key string, read func(*yaml.Node)) Field { return Field{key, false, read} }

// Mapping reads a mapping of the given keys and no others, each once.
func (f *File) Mapping(n *yaml.Node, what string, fields ...Field) {
	lines := make(map[string]int)
	f.EachKey(n, what, func(key, value *yaml.Node) {
		i := slices.IndexFunc(fields, func(d Field) bool { return d.key == key.Value })
		switch first, twice := lines[key.Value]; {
		case i < 0:
			f.Fault(key, "%s: unknown key %.80q (want %s)", what, key.Value, fieldNames(fields))
		case twice:
			f.Fault(key, "%s: %q is on line %d, too (want it once)", what, key.Value, first)
		default:
			lines[key.Value] = key.Line
			fields[i].read(value)
		}
	})
	for _, d := range fields {
		if _, ok := lines[d.key]; d.required && !ok && n.Kind == yaml.MappingNode {
			f.Fault(n, "%s: no %s (want %s)", what, d.key, fieldNames(fields))
		}
	}
}

func fieldNames(fields []Field) string {
	var text []string
	for _, d := range fields {
		if d.required {
			text = append(text, d.key)
		} else {
			text = append(text, d.key+" if needed")
		}
	}
	return strings.Join(text, ", ")
}

// EachKey calls do with each key of a mapping, and its value.
func (f *File) EachKey(n *yaml.Node, what string, do func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.Fault(n, "%s: %s (want keys and values)", what, describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind != yaml.ScalarNode {
			f.Fault(key, "%s: %s as a key (want a word)", what, describe(key))
		} else {
			do(key, n.Content[i+1])
		}
	}
}

// List returns the entries of a list.
func (f *File) List(n *yaml.Node, what string, limit int) (entries []*yaml.Node, ok bool) {
	switch {
	case n.Kind != yaml.SequenceNode:
		f.Fault(n, "%s: %s (want a list)", what, describe(n))
		return nil, false
	case len(n.Content) > limit:
		f.Fault(n, "%s: %d entries (want at most %d)", what, len(n.Content), limit)
		return nil, false
	}
	return n.Content, true
}

// Text returns a text as it is written, whatever its YAML type: a name may be "on".
func (f *File) Text(n *yaml.Node, what string) (s string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		f.Fault(n, "%s: %s (want a text)", what, describe(n))
		return "", false
	}
	return n.Value, true
}

// Number returns a whole number of low to high. It refuses 010, which is 8 for some readers of
// YAML, and 10 for others.
func (f *File) Number(n *yaml.Node, what string, low, high int) (i int, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		f.Fault(n, "%s: %s (want a number of %d to %d)", what, describe(n), low, high)
		return 0, false
	}
	if err := n.Decode(&i); err != nil || i < low || i > high {
		f.Fault(n, "%s %.80s: want %d to %d", what, n.Value, low, high)
		return 0, false
	}
	if s := strings.TrimLeft(n.Value, "+-"); len(s) > 1 && s[0] == '0' && strings.ContainsAny(s[1:2], "0123456789_") {
		f.Fault(n, "%s %.80s: want no 0 before it", what, n.Value)
		return 0, false
	}
	return i, true
}

// describe names the kind of a value, or the value.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.80q", n.Value)
}

// Quote writes a text without control characters as a YAML text.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
