package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decodeStrict decodes one JSON object and refuses what it does not know: a name misspelt must not be a wish ignored. The error is
// a bad request, unless the object itself says what else it is.
func decodeStrict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return badRequest("JSON: something follows the object, at byte %d (want one object)", d.InputOffset())
		}
		return nil
	}
	var typed *Error
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, errBadRequest):
		return err
	case errors.Is(err, io.EOF):
		return badRequest("JSON: nothing there (want an object)")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("JSON: ends too early, after %d bytes", len(b))
	case errors.As(err, &syntax):
		return badRequest("JSON: byte %d: %v", syntax.Offset, syntax)
	case errors.As(err, &kind):
		return badRequest("JSON: %s: %s (want %s)", fieldName(kind.Field), kind.Value, wanted(kind))
	}
	return badRequest("%s", strings.TrimPrefix(err.Error(), "json: "))
}

func fieldName(path string) string {
	if path == "" {
		return "the whole"
	}
	return fmt.Sprintf("%q", path)
}

// wanted says in words what a field takes.
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
