//go:build linux

package netpair

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// withC makes a pair of namespaces, and builds the programs in C.
func withC(t *testing.T) (p *Pair, program string) {
	t.Helper()
	p = &Pair{bed: testbed.ForTest(t, testbed.Config{})}
	program, err := baseline.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if program == "" {
		t.Skip("no C compiler")
	}
	return p, program
}

// An asking program that fails has the answering one end, also if that has not heard of it yet.
func TestRunC_TheOtherNeverComes(t *testing.T) {
	p, program := withC(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, mode := range []string{"ring", "udp", "tcp", "block-udp", "block-tcp"} {
		if _, _, err := p.RunC(ctx, program, mode+"-echo", mode+"-nothing", Interface, 64, 100); err == nil {
			t.Errorf("%s: no error of a mode that there is not", mode)
		}
	}
	for _, sink := range []string{"ring-both", "ring-sink", "gso-sink", "block-gso-sink", "tcp-sink", "tcp-sink-polled"} {
		if _, _, err := p.RunC(ctx, program, sink, "nothing", Interface, 64, 100, 1); err == nil {
			t.Errorf("%s: no error of a mode that there is not", sink)
		}
		if ctx.Err() != nil {
			t.Fatalf("%s goes on when it is told to end", sink)
		}
	}
}
