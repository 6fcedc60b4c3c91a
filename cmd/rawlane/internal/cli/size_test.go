package cli

import (
	"fmt"
	"testing"

	"github.com/spf13/pflag"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]string{
		"4": "[4]", "4,64": "[4 64]", "1k,1M": "[1024 1048576]", "1:8": "[1 2 4 8]", "3:10": "[3 6 10]", "0": "[0]",
		"1k:1k": "[1024]", "1:4,100": "[1 2 4 100]", "1G": "[1073741824]",
		"": "error", "k": "error", "-1": "error", "1.5k": "error", "0:4": "error", "8:4": "error", "3G": "error", "9999999999G": "error",
	} {
		var sizes []int
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		SizesFlag(f, &sizes, "size", "", "sizes")
		got := "error"
		if err := f.Set("size", text); err == nil {
			got = fmt.Sprint(sizes)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
