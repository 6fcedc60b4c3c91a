package launch

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Where nobody reads any more what a command's programs print, the others are not given time to end.
func TestRunWhileRead_ReaderThatHasHadEnough(t *testing.T) {
	const patience = 30 * time.Second
	ended := make(chan error, 1)
	go func() {
		programs := []*exec.Cmd{exec.Command("sh", "-c", "exit 141"), exec.Command("sleep", "600")}
		ended <- runWhileRead(t.Context(), StartHere, programs, 2*patience)
	}()
	select {
	case err := <-ended:
		var status *cli.StatusError
		if !errors.As(err, &status) || status.Node != 0 || status.Status != 141 {
			t.Errorf("%v, want node 0's exit status 141", err)
		}
	case <-time.After(patience):
		t.Fatal("the run does not end")
	}
}
