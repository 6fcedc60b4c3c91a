//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killedVariable makes TestCommand_EndsWithTheCampaign the campaign that is killed.
const killedVariable = "RAWLANE_CAMPAIGN_KILLED"

// A campaign that is killed leaves no test behind.
func TestCommand_EndsWithTheCampaign(t *testing.T) {
	if os.Getenv(killedVariable) != "" {
		jobs(1, func() {
			cmd := new(workshop).command(t.Context(), "sh", "-c", "echo $$; exec sleep 600")
			cmd.Stdout = os.Stdout
			_ = cmd.Run() // this process is killed before
		})
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	campaign := exec.Command(os.Args[0], "-test.run", "^TestCommand_EndsWithTheCampaign$")
	campaign.Env, campaign.Stdout = append(os.Environ(), killedVariable+"=1"), w
	if err := campaign.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the children have it
	in := bufio.NewReader(r)
	line, err := in.ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	_ = campaign.Process.Kill()
	_ = campaign.Wait()
	if err != nil || bad != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // its end comes with that of all who have the pipe
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("a test goes on: %v", err)
	}
}
