//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// envCrowd has this test be a benchmark with a busy process, whose number it prints.
const envCrowd = "RAWLANE_CROWD_BUSY"

// A benchmark that is killed leaves no process behind that keeps a core busy for ever.
func TestCompute_EndsWithTheBenchmark(t *testing.T) {
	if os.Getenv(envCrowd) != "" {
		busy := compute(t.Context())
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println(busy.Process.Pid)
		select {}
	}
	bench := exec.Command(os.Args[0], "-test.run=^TestCompute_EndsWithTheBenchmark$")
	bench.Env = append(os.Environ(), envCrowd+"=1")
	out, err := bench.StdoutPipe()
	if err == nil {
		err = bench.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var busy int
	if err == nil {
		_, err = fmt.Sscan(line, &busy)
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(busy, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	_ = bench.Process.Kill()
	_ = bench.Wait()        // killed
	const patience = 10_000 // ms
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience); n != 1 || err != nil {
		t.Errorf("the busy process goes on: %v", err)
		_ = unix.Kill(busy, unix.SIGKILL)
	}
}
