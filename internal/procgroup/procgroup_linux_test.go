package procgroup

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Processes that have ended are not left, though nobody has waited for them: what ends a group does
// not wait for them, either. Those are that the program has started, and that go on.
func TestLeft(t *testing.T) {
	for script, want := range map[string]bool{"exit": false, "sleep 600 & exit": true} {
		p := exec.Command("sh", "-c", script)
		Own(p)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Waitid(unix.P_PID, p.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err) // else the program has ended, and is not waited for
		}
		if got := Left(p); got != want {
			t.Errorf("%s: left is %v, want %v", script, got, want)
		} else if !got {
			EndWithin(p, time.Hour) // has nothing to wait for
		}
		End(p, true)
		_ = p.Wait() // it has ended well
		if !want && Left(p) {
			t.Errorf("%s: left, though nothing of it is there", script)
		}
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 7 12 12 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 " // but for the state and the threads
	for stat, runs := range map[string]bool{
		"34 (sh) S" + rest + "1 0 99":      true,
		"34 (sh) Z" + rest + "1 0 99":      false,
		"34 (sh) X" + rest + "1 0 99":      false,
		"34 (a) R 1) Z" + rest + "1 0 99":  false,
		"34 (first) Z" + rest + "2 0 99":   true, // of three threads one has ended
		"34 (first) Z" + rest + "10 0 99":  true,
		"34 (stopped) T" + rest + "1 0 99": true,
	} {
		if group, got := parseStat([]byte(stat)); group != 12 || got != runs {
			t.Errorf("%s: group %d, runs %v, want 12 and %v", stat, group, got, runs)
		}
	}
	for _, stat := range []string{"", "34", "34 (sh", "34 (sh)", "34 (sh) S 7 12"} {
		if group, runs := parseStat([]byte(stat)); group != 0 || runs {
			t.Errorf("%q: group %d, runs %v, want neither", stat, group, runs)
		}
	}
}
