package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
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
	if name, twice := repeated(json.NewDecoder(bytes.NewReader(b))); twice {
		return badRequest("%q is given twice (want it once)", name)
	}
	return nil
}

// repeated returns a name that an object of the next value has twice, in any spelling that stands
// for one field. The value is known to be valid.
func repeated(d *json.Decoder) (name string, twice bool) {
	token, _ := d.Token()
	start, nested := token.(json.Delim)
	if !nested {
		return "", false
	}
	seen := make(map[string]bool)
	for d.More() {
		if start == '{' {
			key, _ := d.Token()
			name, _ = key.(string)
			if seen[folded(name)] {
				return name, true
			}
			seen[folded(name)] = true
		}
		if name, twice := repeated(d); twice {
			return name, true
		}
	}
	_, _ = d.Token() // its end
	return "", false
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
