package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// repeatedByTokens is repeated by package json's tokens.
func repeatedByTokens(d *json.Decoder) (name string, twice bool) {
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
		if name, twice := repeatedByTokens(d); twice {
			return name, true
		}
	}
	_, _ = d.Token() // its end
	return "", false
}

// anyJSON is a value with names that are few, spelled in many ways, and strings that look like them.
func anyJSON(rng *rand.Rand, depth int, names int) string {
	spellings := []string{"a%d", "A%d", `\u0061%d`, "s%d", "S%d", "ſ%d", `\u017f%d`, "k%d", "K%d", "\xff%d", `\"%d`, `\\%d`, "{%d", `}%d\\`, "ä%d", "Ä%d"}
	name := func() string {
		return fmt.Sprintf(`"`+spellings[rng.IntN(len(spellings))]+`"`, rng.IntN(names))
	}
	space := func() string { return []string{"", " ", "\n\t", "\r"}[rng.IntN(4)] }
	kind := rng.IntN(7)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return "12"
	case 1, 2:
		return name()
	case 3:
		return "null"
	}
	var parts []string
	for range rng.IntN(14) {
		value := anyJSON(rng, depth-1, names)
		if kind >= 5 {
			value = name() + space() + ":" + space() + value
		}
		parts = append(parts, space()+value+space())
	}
	text := strings.Join(parts, ",")
	if kind >= 5 {
		return "{" + text + "}"
	}
	return "[" + text + "]"
}

// The names that are given twice are those that package json's tokens show.
func TestCheckNames_AgreesWithTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	found := 0
	for k := range 5000 {
		text := []byte(anyJSON(rng, 3, 1+k%50))
		if !json.Valid(text) {
			t.Fatalf("%q is no JSON", text)
		}
		want, isTwice := repeatedByTokens(json.NewDecoder(bytes.NewReader(text)))
		if name, twice := repeated(text); name != want || twice != isTwice {
			t.Fatalf("%q: %q, %v; want %q, %v", text, name, twice, want, isTwice)
		}
		if isTwice {
			found++
		}
	}
	if found < 500 || found > 4500 {
		t.Errorf("%d of the values had a name twice: draw them otherwise", found)
	}
}

// The request of a change, which has few names, is looked at without allocation but for the list of
// the objects.
func TestCheckNames_AllocatesOnce(t *testing.T) {
	text := []byte(`{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":1}]}`)
	if n := testing.AllocsPerRun(100, func() { _ = CheckNames(text) }); n > 2 {
		t.Errorf("%v allocs, want 2 at most", n)
	}
}

func BenchmarkCheckNames(b *testing.B) {
	text := []byte(`{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":1}]}`)
	b.Run("by bytes", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			repeated(text)
		}
	})
	b.Run("by tokens", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			repeatedByTokens(json.NewDecoder(bytes.NewReader(text)))
		}
	})
}
