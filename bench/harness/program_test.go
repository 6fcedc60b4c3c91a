//go:build linux

package harness

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// A program without a core of its own runs on any, also after one that had one.
func TestStart_Cores(t *testing.T) {
	cores, err := Cores(2)
	if err != nil {
		t.Fatal(err)
	}
	if cores == nil {
		t.Skip("one core")
	}
	bed := testbed.ForTest(t, testbed.Config{})
	allowedTo := func(on []int) string {
		t.Helper()
		p, err := Start(context.Background(), bed, 1, on, "cat", "/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Text()
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(out, "Cpus_allowed_list:")
		list, _, _ = strings.Cut(list, "\n")
		return strings.TrimSpace(list)
	}
	all := allowedTo(nil)
	if one := allowedTo(cores); one == all || strings.ContainsAny(one, ",-") {
		t.Errorf("on its core: %s of %s", one, all)
	}
	if again := allowedTo(nil); again != all {
		t.Errorf("after a program with a core of its own: %s, want %s", again, all)
	}
}
