package launch_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// Programs do not outlive a command that is killed.
func TestRunAll_ProgramsDieWithTheCommand(t *testing.T) {
	const asCommand = "RAWLANE_TEST_RUN_ALL"
	if os.Getenv(asCommand) != "" {
		program := exec.Command("sh", "-c", "echo $$; exec sleep 600")
		program.Stdout = os.Stdout
		_ = launch.RunAll(t.Context(), launch.StartHere, []*exec.Cmd{program}, 0, nil) // it is killed before
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), asCommand+"=1")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	program, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(program) }()
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	ended := []unix.PollFd{{Fd: int32(program), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, int(10*time.Second/time.Millisecond))
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(ended, int(10*time.Second/time.Millisecond))
	}
	if n != 1 {
		_ = unix.PidfdSendSignal(program, unix.SIGKILL, nil, 0)
		t.Errorf("the program goes on after its command's death (%v)", err)
	}
}

// runPatience is far longer than a run takes to end its programs.
const runPatience = 30 * time.Second

// shell is a program whose output goes through this process.
func shell(out io.Writer, script string) *exec.Cmd {
	p := exec.Command("sh", "-c", script)
	p.Stdout = out
	return p
}

// runAll runs programs, and fails the test if that does not end.
func runAll(ctx context.Context, t *testing.T, grace time.Duration, programs ...*exec.Cmd) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- launch.RunAll(ctx, launch.StartHere, programs, grace, nil) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(runPatience):
		t.Fatal("the run does not end")
		return nil
	}
}

// A program that fails ends the others at once, though what it has started still has its output.
func TestRunAll_FailureIsSeenBehindAnOpenOutput(t *testing.T) {
	err := runAll(t.Context(), t, 0, shell(new(bytes.Buffer), "sleep 600 & exit 3"), shell(nil, "sleep 600"))
	var status *cli.StatusError
	if !errors.As(err, &status) || status.Node != 0 || status.Status != 3 {
		t.Errorf("%v, want node 0's exit status 3", err)
	}
}

// A program that can be asked to end is asked, and not sent a signal, while that is enough. It is
// the first, as none begins behind one that has failed.
func TestRunAll_AsksBeforeItSignals(t *testing.T) {
	out := new(bytes.Buffer)
	asked := exec.CommandContext(context.Background(), "sh", "-c", "trap 'echo signal' TERM; read line; echo $line")
	asked.Stdout = out
	in, err := asked.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	asked.Cancel = func() error { _, err := io.WriteString(in, "farewell\n"); return err }
	if err := runAll(t.Context(), t, 0, asked, shell(nil, "exit 3")); err == nil || out.String() != "farewell\n" {
		t.Errorf("%v, %q; want an error, and farewell", err, out)
	}
}

// A program whose own reader has had enough, and one that says so by its status, is one that fails:
// the others have their time.
func TestRunAll_ReaderOfItsOwn(t *testing.T) {
	out := new(bytes.Buffer)
	second := shell(out, "read line; echo done")
	in, err := second.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := func(k int, _ error) {
		if k == 0 {
			_ = in.Close()
		}
	}
	err = launch.RunAll(t.Context(), launch.StartHere, []*exec.Cmd{shell(nil, "exit 141"), second}, 2*runPatience, ended)
	var status *cli.StatusError
	if !errors.As(err, &status) || status.Node != 0 || status.Status != 141 || out.String() != "done\n" {
		t.Errorf("%v, %q; want node 0's exit status 141, and what node 1 has to say", err, out)
	}
}

// A program that fails ends the run also while another one waits for its start, as for a host that
// does not answer.
func TestRunAll_FailureIsSeenBeforeAllAreStarted(t *testing.T) {
	start := func(ctx context.Context, node int, p *exec.Cmd) error {
		if node == 0 {
			return p.Start()
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ended := make(chan error, 1)
	go func() {
		programs := []*exec.Cmd{shell(nil, "exit 3"), shell(nil, "sleep 600")}
		ended <- launch.RunAll(t.Context(), start, programs, 0, nil)
	}()
	select {
	case err := <-ended:
		var status *cli.StatusError
		if !errors.As(err, &status) || status.Node != 0 || status.Status != 3 {
			t.Errorf("%v, want node 0's exit status 3", err)
		}
	case <-time.After(runPatience):
		t.Error("the run does not end")
	}
}

// What a program that ends well has started may go on, and is printed.
func TestRunAll_OutputOfWhatAProgramHasStarted(t *testing.T) {
	goOn, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &watched{end: func(text string) {
		if text == "early\n" { // the program is about to end, and what it has started waits
			_ = release.Close()
		}
	}}
	p := shell(out, "(cat; echo late) <&3 3<&- & exec 3<&-; echo early")
	p.ExtraFiles = []*os.File{goOn}
	if err := runAll(t.Context(), t, 0, p); err != nil || out.text.String() != "early\nlate\n" {
		t.Errorf("%q, %v", &out.text, err)
	}
}

// watched is an output that is looked at whenever something is written.
type watched struct {
	text bytes.Buffer
	end  func(text string)
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.text.Write(b)
	w.end(w.text.String())
	return n, err
}

// A run that is told to end does so, though a process that has left its program's group holds the
// output open.
func TestRunAll_EndsBesideAProcessThatHasLeft(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := &cli.SignalError{Signal: unix.SIGTERM}
	var left int
	out := &watched{end: func(text string) {
		if line, ok := strings.CutSuffix(text, "\n"); ok {
			left, _ = strconv.Atoi(line)
			cancel(stop)
		}
	}}
	err := runAll(ctx, t, 0, shell(out, "setsid sh -c 'echo $$; exec sleep 600' & wait"))
	if left <= 0 || unix.Kill(left, unix.SIGKILL) != nil {
		t.Errorf("process %d is not there any more", left)
	}
	if !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

// A run that is told to end does so, though nobody takes what its programs print.
func TestRunAll_EndsBeforeABlockedReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() { // a reader that takes one line, and then stands still
		_, _ = bufio.NewReaderSize(reader, 16).ReadString('\n')
		cancel()
	}()
	if err := runAll(ctx, t, 0, shell(writer, "yes")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What a program has started ends with the run, also where it does not care about SIGTERM, and the
// program does.
func TestRunAll_EndsWhatIgnoresSIGTERM(t *testing.T) {
	const start = `trap "" TERM; sleep 600 > /dev/null & `
	for name, script := range map[string]string{
		"SIGTERM ends the program": start + "trap - TERM; echo $!; wait",
		"the program ends itself":  start + `trap "exit 0" TERM; echo $!; wait`,
		"the program fails":        start + "echo $!; read line; exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			started := -1 // a descriptor
			out := &watched{end: func(text string) {
				if line, ok := strings.CutSuffix(text, "\n"); ok {
					pid, _ := strconv.Atoi(line)
					started, _ = unix.PidfdOpen(pid, 0)
					if name != "the program fails" {
						stop()
					}
					_ = writer.Close()
				}
			}}
			p := shell(out, script)
			p.Stdin = reader
			if err := runAll(ctx, t, 0, p); err == nil || started < 0 {
				t.Fatalf("%v, process %d", err, started)
			}
			defer func() { _ = unix.Close(started) }()
			ended := []unix.PollFd{{Fd: int32(started), Events: unix.POLLIN}}
			n, err := unix.Poll(ended, int(time.Second/time.Millisecond)) // SIGKILL is on its way
			for errors.Is(err, unix.EINTR) {
				n, err = unix.Poll(ended, int(time.Second/time.Millisecond))
			}
			if n != 1 {
				_ = unix.PidfdSendSignal(started, unix.SIGKILL, nil, 0)
				t.Errorf("what the program has started goes on (%v)", err)
			}
		})
	}
}

// The number of a program that has ended is another one's soon: its group is left alone.
func TestRunAll_LeavesOtherGroupsAlone(t *testing.T) {
	bystander := exec.Command("sleep", "600")
	bystander.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	first := shell(nil, "exit 0")
	second := shell(nil, "read line; exit 3")
	in, err := second.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	third := shell(nil, "sleep 600")
	all := make(chan error, 1)
	go func() {
		all <- launch.RunAll(t.Context(), launch.StartHere, []*exec.Cmd{first, second, third}, 0, func(k int, _ error) {
			if k == 0 {
				first.Process.Pid = bystander.Process.Pid
				_ = in.Close()
			}
		})
	}()
	select {
	case err = <-all:
	case <-time.After(runPatience):
		t.Fatal("the run does not end")
	}
	if err == nil {
		t.Error("node 1 failed, and the run did not")
	}
	if err := bystander.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _ = bystander.Wait(); bystander.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("a group that is none of the run's ended with %v", bystander.ProcessState)
	}
}
