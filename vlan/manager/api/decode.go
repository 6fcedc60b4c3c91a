package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Decode decodes one JSON object and refuses unknown fields: a misspelt name must not become a
// setting that is left out. The error is ErrBadRequest, unless the object's own UnmarshalJSON
// returns another one.
func Decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return badRequest("JSON: something follows the object, at byte %d (want one object)", d.InputOffset())
		}
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return badRequest("JSON: nothing there (want an object)")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("JSON: ends too early, after %d bytes", len(b))
	case errors.As(err, &syntax):
		return badRequest("JSON: byte %d: %v", syntax.Offset, syntax)
	case errors.As(err, &kind):
		return badRequest("JSON: %s: %s (want %s)", fieldName(kind.Field), kind.Value, wanted(kind))
	case errors.Is(err, ErrOneSided), errors.Is(err, ErrBadRequest):
		return err
	}
	return badRequest("%s", strings.TrimPrefix(err.Error(), "json: "))
}

// CheckNames refuses a JSON value, which is known to be valid, with an object in it that has a name
// twice: package json takes the second one, or a bit of both.
func CheckNames(b []byte) error {
	if name, twice := repeated(b); twice {
		return badRequest("%q is given twice (want it once)", name)
	}
	return nil
}

// repeated returns a name that an object in b has twice, in any spelling that stands for one field.
// It looks at strings and braces alone: package json's tokens take four times as long and 60
// allocations for the change of a route (BenchmarkCheckNames).
func repeated(b []byte) (name string, twice bool) {
	var objects []names // those around, the innermost last
	for at := 0; at < len(b); at++ {
		switch b[at] {
		case '{':
			objects = append(objects, names{})
		case '}':
			objects = objects[:len(objects)-1]
		case '"':
			begin := at
			at = endOfString(b, at)
			next := bytes.TrimLeft(b[at+1:], " \t\r\n")
			if len(next) == 0 || next[0] != ':' {
				continue // a value
			}
			if text := b[begin : at+1]; objects[len(objects)-1].add(text) {
				return unquoted(text), true
			}
		}
	}
	return "", false
}

// endOfString returns the place of the quote that ends the string which begins at a quote.
func endOfString(b []byte, at int) int {
	for at++; b[at] != '"'; at++ {
		if b[at] == '\\' {
			at++
		}
	}
	return at
}

// unquoted is the text of a JSON string.
func unquoted(quoted []byte) (text string) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &text) // it is known to be valid
	return text
}

// names are the names of an object: of few a list, which needs no memory of its own for each.
type names struct {
	few  [8][]byte // quoted
	n    int
	many map[string]bool // folded; nil: they are few
}

// add adds a name, and reports whether it is there already.
func (o *names) add(quoted []byte) (twice bool) {
	isPlain := bytes.IndexByte(quoted, '\\') < 0
	if o.many == nil && o.n < len(o.few) && isPlain {
		for _, other := range o.few[:o.n] {
			if bytes.EqualFold(other, quoted) {
				return true
			}
		}
		o.few[o.n] = quoted
		o.n++
		return false
	}
	if o.many == nil {
		o.many = make(map[string]bool)
		for _, other := range o.few[:o.n] {
			o.many[folded(unquoted(other))] = true
		}
	}
	key := folded(unquoted(quoted))
	twice = o.many[key]
	o.many[key] = true
	return twice
}

// folded is the same text for all spellings of a field's name: package json also takes those of
// other scripts' letters, such as the long s and the sign for kelvin.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

func fieldName(path string) string {
	if path == "" {
		return "the whole"
	}
	return fmt.Sprintf("%q", path)
}

// wanted says in words which values a field takes.
func wanted(e *json.UnmarshalTypeError) string {
	switch kind := e.Type.Kind().String(); {
	case strings.HasPrefix(kind, "uint"):
		return fmt.Sprintf("a whole number of 0 to %d", uint64(1)<<e.Type.Bits()-1)
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case kind == "slice":
		return "a list"
	case kind == "struct", kind == "map":
		return "an object"
	default:
		return "a " + kind
	}
}
