package start

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
)

// What is packed is unpacked, in lines that a server takes.
func TestPack(t *testing.T) {
	many := make([]string, 2048)
	for k := range many {
		many[k] = fmt.Sprintf("10.0.%d.%d:27401", k/256, k%256)
	}
	for _, c := range []struct {
		values []string
		lines  int // at most
	}{
		{[]string{"a"}, 1},
		{[]string{"a", "a", "b", "a"}, 1},
		{slices.Repeat([]string{"0123456789abcdef"}, 2048), 1},
		{many, 48},
	} {
		lines := pack(c.values)
		got, err := unpack(lines, len(c.values))
		if err != nil || !slices.Equal(got, c.values) || len(lines) > c.lines {
			t.Errorf("%d values in %d lines: %.80q, %v", len(c.values), len(lines), got, err)
		}
		for _, l := range lines {
			if len(l) > pmi.MaxValue {
				t.Errorf("a line of %d bytes", len(l))
			}
		}
	}
	for _, lines := range [][]string{{"a"}, {"a*3"}, {"a*x", "b"}, {"a*-1", "b"}, {"a*99999999999"}, {"a,b*9223372036854775807"}, {"a", "b", "c"}} {
		if got, err := unpack(lines, 2); !errors.Is(err, pmi.ErrProtocol) {
			t.Errorf("%q: %q, %v", lines, got, err)
		}
	}
}
