package bench

import (
	"bytes"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// pipeWithoutReader is an output whose reader has had enough.
type pipeWithoutReader struct{ io.Writer }

func (pipeWithoutReader) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// A benchmark of message passing whose reader has had enough is quiet: that node 0 ends is no
// failure of the others.
func TestBenchMPI_ReaderThatHasHadEnough(t *testing.T) {
	for _, args := range []string{
		"bench mpi latency --size 1,2 --iters 1", "bench mpi allreduce --size 4,8 --iters 1 --nodes 3",
	} {
		var errs bytes.Buffer
		status := cli.Execute(t.Context(), cli.NewRoot(verbs), strings.Fields(args), nil, pipeWithoutReader{}, &errs)
		if status != cli.ExitSignal+int(syscall.SIGPIPE) || errs.Len() > 0 {
			t.Errorf("%s: status %d, said %q", args, status, &errs)
		}
	}
}
