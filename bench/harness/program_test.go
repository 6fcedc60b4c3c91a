//go:build linux

package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// A program without a core of its own runs on any, also after one that had one.
func TestStart_Cores(t *testing.T) {
	cores := Cores(2)
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

// The end of the context tells a program to end, so that it can end those that it has started. What
// it has printed by then is no result.
func TestStart_EndsWithItsContext(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	told := filepath.Join(t.TempDir(), "told")
	for name, script := range map[string]string{
		"a program that tidies up": "trap 'echo >" + told + "; exit 0' TERM; echo ready; echo 1; while :; do sleep 0.01; done",
		"a program that does not":  "echo ready; echo 1; exec sleep 60",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := Start(ctx, bed, 0, nil, "sh", "-c", script)
		if err == nil {
			err = p.AwaitReady()
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if numbers, err := p.Numbers(0); err == nil {
			t.Errorf("%s: the result %v, want an error", name, numbers)
		}
	}
	if _, err := os.Stat(told); err != nil {
		t.Errorf("the program was not told to end: %v", err)
	}
}

// A kind of link that there is not is misuse, and told before the others are measured.
func TestCheckLinks(t *testing.T) {
	program := filepath.Join(t.TempDir(), "rawlane")
	const tells = "#!/bin/sh\nprintf 'fabric\\nring\\n:4\\n'\n"
	if err := os.WriteFile(program, []byte(tells), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Programs{Rawlane: program}
	if err := p.CheckLinks(t.Context(), "links", "ring", "fabric"); err != nil {
		t.Error(err)
	}
	err := p.CheckLinks(t.Context(), "links", "ring", "fabrik")
	if !errors.As(err, new(misuse)) || err.Error() != `-links "fabrik": want fabric, ring` {
		t.Error(err)
	}
}
