package cli

import "testing"

// Names and values of objects within, lists, texts with commas, and what is not there.
func TestCSVLines(t *testing.T) {
	type inner struct {
		CPU string `json:"cpu"`
	}
	v := struct {
		A    int64     `json:"a"`
		Host inner     `json:"host"`
		List []float64 `json:"list"`
		None *int      `json:"none"`
		Gone *int      `json:"gone,omitempty"`
		Flag bool      `json:"flag"`
	}{A: 12345678901, Host: inner{`x, "y"`}, List: []float64{1.5, 2}}
	head, line, err := csvLines(&v)
	if err != nil || head != "a,host.cpu,list,none,flag\n" || line != "12345678901,\"x, \"\"y\"\"\",1.5 2,,false\n" {
		t.Errorf("%v\n%s%s", err, head, line)
	}
}
