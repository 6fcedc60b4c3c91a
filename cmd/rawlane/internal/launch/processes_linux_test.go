package launch_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// Programs do not outlive a command that is killed.
func TestRunAll_ProgramsDieWithTheCommand(t *testing.T) {
	const asCommand = "RAWLANE_TEST_RUN_ALL"
	if os.Getenv(asCommand) != "" {
		program := exec.Command("sh", "-c", "echo $$; exec sleep 600")
		program.Stdout = os.Stdout
		_ = launch.RunAll(t.Context(), launch.StartHere, []*exec.Cmd{program}, 0) // it is killed before
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
