package diagnose

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
)

// A file of any bytes is printed or refused, and never ends the program.
func FuzzDump(f *testing.F) {
	file := filepath.Join(f.TempDir(), "run.pcapng")
	var out bytes.Buffer
	if status := cli.Execute(f.Context(), cli.NewRoot(verbs), []string{"bench", "latency", "--size", "8", "--iters", "1", "--vid", "5", "--capture", file}, nil, &out, &out); status != cli.ExitDone {
		f.Fatal(out.String())
	}
	capture, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(capture[:min(len(capture), 600)])
	f.Add([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, asJSON := range []bool{false, true} {
			d := &dumpVerb{etherType: uint16(transport.EtherTypeDefault), out: bufio.NewWriter(io.Discard), all: true, payload: 8, json: asJSON}
			_ = d.print(bytes.NewReader(b)) // that it returns is the point
		}
	})
}
