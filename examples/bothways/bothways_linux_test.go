package bothways

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
)

const envProgram = "RAWLANE_TEST_PROGRAM" // set: this process is a program that goes both ways

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) == "" {
		os.Exit(testbed.Main(m))
	}
	Main(time.Minute, greet, greeted)
}

// greet is a server that greets.
func greet(listen Listen) (stop func(), err error) {
	l, err := listen("greet")
	if err != nil {
		return nil, err
	}
	Serving("greet", func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			_, err = io.WriteString(c, "hello")
			_ = c.Close()
			if err != nil {
				return err
			}
		}
	})
	return func() { _ = l.Close() }, nil
}

// greeted is its client.
func greeted(ctx context.Context, w Way) error {
	c, err := w.Dial(ctx, "tcp", w.Addr("greet"))
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	fmt.Printf("%s over %s\n", text, w.Name)
	return err
}

// The client reaches the server on another host also where nobody has named an interface.
func TestMain_TwoHosts(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 2})
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var cmds [2]*exec.Cmd
	var out [2]strings.Builder
	for node := range cmds {
		cmds[node] = exec.Command(program)
		cmds[node].Env = append(os.Environ(), envProgram+"=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=2",
			"SLURM_JOB_ID=8", "SLURM_STEP_ID=0", fmt.Sprintf("SLURM_PROCID=%d", node))
		cmds[node].Stdout, cmds[node].Stderr = &out[node], &out[node]
		if err := bed.Node(node).Start(cmds[node]); err != nil {
			t.Fatal(err)
		}
	}
	for node, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("node %d: %v: %s", node, err, &out[node])
		}
	}
	if want := "hello over rawlane\nhello over TCP\n"; out[0].String() != want {
		t.Errorf("node 0 printed %q, want %q", &out[0], want)
	}
}
