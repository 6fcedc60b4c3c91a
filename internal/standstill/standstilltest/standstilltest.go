// Package standstilltest has the process of a test stand still.
package standstilltest

import (
	"os/exec"
	"testing"
)

// Stand has this process, and with it all that it runs, stand still for 1.5 s.
func Stand(t testing.TB) {
	t.Helper()
	out, err := exec.Command("sh", "-c", "kill -STOP $PPID; sleep 1.5; kill -CONT $PPID").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
