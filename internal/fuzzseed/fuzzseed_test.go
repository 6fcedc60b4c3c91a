package fuzzseed

import "testing"

func TestVariants(t *testing.T) {
	all := map[string]bool{}
	for _, v := range Variants([]byte{1, 2}) {
		all[string(v)] = true
	}
	for _, want := range []string{"", "\x01", "\x01\x02", "\x00\x02", "\xff\x02", "\x02\x02", "\x81\x02", "\x01\x00", "\x01\x03"} {
		if !all[want] {
			t.Errorf("%q is missing", want)
		}
	}
}
