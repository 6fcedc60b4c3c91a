package testbed

import (
	"slices"
	"strings"
	"testing"
)

// A list of hosts is read as mpirun's are; what is not one is refused, with its line.
func TestParseHosts(t *testing.T) {
	for text, want := range map[string][]slots{
		"a\n":                        {{"a", 1}},
		"a:2\nb slots=3\n":           {{"a", 2}, {"b", 3}},
		"# none\n\n  a  # one\nb:1":  {{"a", 1}, {"b", 1}},
		"a\nb\na:2\n":                {{"a", 3}, {"b", 1}},
		"user@a:4\n":                 {{"user@a", 4}},
		"fd00::1\nfd00::2 slots=2\n": {{"fd00::1", 1}, {"fd00::2", 2}},
	} {
		if got, err := parseHosts("f", strings.NewReader(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                      "f: no hosts",
		"# none\n":              "f: no hosts",
		"a\nb:0\n":              `f:2: "b:0" (want`,
		"a:x":                   `f:1: "a:x" (want`,
		"a slots=-1":            `f:1: "a slots=-1" (want`,
		"a b":                   `f:1: "a b" (want`,
		"a slots=1 b":           `f:1: "a slots=1 b" (want`,
		"a:1 slots=2":           `f:1: "a:1 slots=2" (want`,
		":2":                    `f:1: ":2" (want`,
		"-oProxyCommand=reboot": `f:1: "-oProxyCommand=reboot" (want`,
	} {
		if got, err := parseHosts("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// Programs fill the slots of one host after another.
func TestSpread(t *testing.T) {
	all := []slots{{"a", 2}, {"b", 3}}
	for n, want := range map[int]string{0: "", 1: "a", 2: "a a", 3: "a a b", 5: "a a b b b", 9: "a a b b b"} {
		if got := strings.Join(spread(all, n), " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
