package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
)

// csvLines returns v as comma-separated values: a line of names and one of values. Names are those
// of its JSON; a field of an object in it has both names, with a dot between; the values of a list
// have blanks between them.
func csvLines(v any) (head, line string, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", "", err
	}
	var names, values []string
	from := json.NewDecoder(bytes.NewReader(text))
	from.UseNumber()
	if err := flatten(from, "", func(name, value string) {
		names, values = append(names, name), append(values, value)
	}); err != nil {
		return "", "", fmt.Errorf("write %T as comma-separated values: %w", v, err)
	}
	if head, err = csvLine(names); err != nil {
		return "", "", err
	}
	line, err = csvLine(values)
	return head, line, err
}

func csvLine(fields []string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	err := w.Write(fields)
	w.Flush()
	return b.String(), err
}

// flatten calls found with each value of the next JSON value, in its order.
func flatten(from *json.Decoder, name string, found func(name, value string)) error {
	token, err := from.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		for from.More() {
			key, err := from.Token()
			if err != nil {
				return err
			}
			if err := flatten(from, strings.TrimPrefix(name+"."+key.(string), "."), found); err != nil {
				return err
			}
		}
		_, err = from.Token() // the end
	case json.Delim('['):
		var all []string
		for from.More() {
			if err := flatten(from, name, func(_, value string) { all = append(all, value) }); err != nil {
				return err
			}
		}
		_, err = from.Token() // the end
		found(name, strings.Join(all, " "))
	case nil:
		found(name, "")
	default:
		found(name, fmt.Sprint(token))
	}
	return err
}
