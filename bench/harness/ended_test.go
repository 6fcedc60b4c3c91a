//go:build linux

package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// envEnds has this test be a program that signals are to end, and that says which one has.
const envEnds = "RAWLANE_HARNESS_ENDS"

// again is this test as a program, by a shell's command that ends in "exec "$0" "$@"".
func again(test, shell, env string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", shell, os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	return cmd
}

// The end of its terminal ends a benchmark, as an interrupt does, so that it removes what it has made;
// but not under nohup.
func TestUntilEnded(t *testing.T) {
	if os.Getenv(envEnds) != "" {
		ctx, stop := UntilEnded()
		defer stop()
		err := unix.Kill(os.Getpid(), unix.SIGHUP)
		if signal.Ignored(unix.SIGHUP) { // of two signals at once either may come first
			err = errors.Join(err, unix.Kill(os.Getpid(), unix.SIGTERM))
		}
		<-ctx.Done()
		fmt.Println(context.Cause(ctx), err)
		return
	}
	for shell, want := range map[string]string{`exec "$0" "$@"`: "hangup", `trap "" HUP; exec "$0" "$@"`: "terminated"} {
		if want == "hangup" && signal.Ignored(unix.SIGHUP) {
			continue
		}
		out, err := again("TestUntilEnded", shell, envEnds+"=1").Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, said %q, want %s", shell, err, out, want)
		}
	}
}

// envReaders has the next test be a benchmark whose output nobody reads.
const envReaders = "RAWLANE_HARNESS_NOBODY_READS"

// A benchmark whose reader has had enough keeps its results all the same.
func TestMain_NobodyReads(t *testing.T) {
	if file := os.Getenv(envReaders); file != "" {
		b := Bench{Name: "test", Rounds: 1, Iters: 1}
		b.Run = func(context.Context, *Bench) (Report, error) {
			return Report{Save: func() error { return os.WriteFile(file, []byte("kept"), 0o600) }}, nil
		}
		os.Args, flag.CommandLine = os.Args[:1], flag.NewFlagSet("test", flag.ExitOnError)
		b.Main()
	}
	file := filepath.Join(t.TempDir(), "results")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := again("TestMain_NobodyReads", `exec "$0" "$@"`, envReaders+"="+file)
	cmd.Stdout = writer
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	ended := cmd.Run()
	var exit *exec.ExitError
	if _, err := os.Stat(file); err != nil || !errors.As(ended, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("%v, and %v; want status %d, and what is kept", ended, err, exitFailed)
	}
	_ = writer.Close()
}
