package traffic_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/vlan/traffic"
)

func ExampleRead() {
	t, err := traffic.Read("flows", strings.NewReader("0>3 1G # one way\n1-2 500M\n"), 4)
	fmt.Println(t, err)
	_, err = traffic.Read("flows", strings.NewReader("0>3 1G\n0>9 1G\n"), 4)
	fmt.Println(err)
	// Output:
	// [{0 3 1G} {1 2 500M} {2 1 500M}] <nil>
	// flows:2: "0>9": want two different nodes of 0 to 3
}

func TestReadNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"0>1":                              `flows:1: "0>1": want two nodes and a rate`,
		"0>1 1G 2":                         "want two nodes and a rate",
		"0 1 1G":                           "want two nodes and a rate",
		"\n\n0,1 1G":                       `flows:3: "0,1": want two nodes: 0>8`,
		"0>1 fast":                         `flows:1: rate "fast"`,
		"0>1 0":                            `flows:1: rate "0"`,
		"1-1 1G":                           "want two different nodes of 0 to 3",
		"0>-1 1G":                          "want two different nodes",
		"-1>0 1G":                          "want two different nodes",
		"0>x 1G\n1>4 1":                    "flows:2:",
		"# " + strings.Repeat("long", 300): "flows:1: a line of more than 1000 bytes",
	} {
		_, err := traffic.Read("flows", strings.NewReader(text), 4)
		if !errors.Is(err, traffic.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want ErrInvalid with %q", text, err, want)
		}
	}
	if _, err := traffic.Read("flows", iotest.ErrReader(io.ErrUnexpectedEOF), 4); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// What is written as lines reads as the same traffic.
func TestReadReadsPatterns(t *testing.T) {
	want := vlantest.Pattern(t, "random:7", 64)
	var b strings.Builder
	for _, f := range want {
		fmt.Fprintf(&b, "%d>%d %v\n", f.From, f.To, f.Rate)
	}
	got, err := traffic.Read("flows", strings.NewReader(b.String()), 64)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
