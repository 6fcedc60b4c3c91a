package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/plan"
)

// A plan survives its JSON; what is no plan is refused by an error with a code, and does not panic.
func FuzzPlanJSON(f *testing.F) {
	const good = `{"vids":[1,2],"nodes":[{"mac":"02:00:00:00:00:01","vid":1},{"mac":"02:00:00:00:00:02","vid":2}]}`
	for _, text := range []string{
		good, good + "{}", good[:len(good)-1], "", "x", `"x"`, `[]`,
		`{"vids":[1,2],"pcp":3,"topology":"vbft:1x1x1","nodes":[{"name":"a","mac":"02:00:00:00:00:01","vid":1,"priority":-1},{"mac":"02:00:00:00:00:02","vid":2}],"pairs":{"1-0":2}}`,
		`{"pairs":{"0-1":1,"1-0":2}}`, `{"pairs":{"0-1":1,"1-0":1}}`, `{"pairs":{"0-1":1,"0-1":2}}`, `{"pairs":{"x":1}}`, `{"pairs":[]}`, `{"vids":1}`, `{"vids":[-1]}`, `{"vids":[70000]}`,
		`{"pairs":{"0-1":1,"0-2":1,"0-3":1,"0-4":1,"0-5":1,"0-6":1,"0-7":1,"0-8":1,"0-9":1},"v\u0069ds":[1]}`, `{"vids":[1],"v\u0069ds":[1]}`,
		`{"nodes":[1]}`, `{"nodes":[{"mac":1}]}`, `{"nodes":[{"mac":"x"}]}`, `{"nodes":[{"priority":"x"}]}`, `{"topology":7}`, `{"more":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Plan
		if err := Decode(b, &p); err != nil {
			if !errors.Is(err, ErrBadRequest) && !errors.Is(err, ErrOneSided) {
				t.Errorf("%q: %v, which has no code", b, err)
			}
			return
		}
		if p.Validate() != nil {
			return
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Plan
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(text) {
			t.Errorf("%s\n%s, %v", text, twice, err)
		}
		if d := plan.Diff(&p.Plan, &again.Plan); !d.Empty() {
			t.Errorf("%+v", d)
		}
	})
}

// A version survives its text; any other text is refused.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"0.0", "3.17", "16777215.1099511627775", "16777216.0", "1.1099511627776", "", "1", "1.", ".1", "-1.1", "1.1.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v, again Version
		if err := v.UnmarshalText([]byte(text)); err != nil {
			if !errors.Is(err, ErrBadRequest) {
				t.Error(err)
			}
			return
		}
		if err := again.UnmarshalText([]byte(v.String())); err != nil || again != v || len(strings.Trim(v.String(), "0123456789.")) > 0 {
			t.Errorf("%q is %v, and again %v, %v", text, v, again, err)
		}
	})
}
