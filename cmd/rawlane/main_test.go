package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", scriptsAtOnce); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"rawlane": main, "within": within})
}

// scriptsAtOnce is the number of scripts that run at one time, unless -parallel is given: most of
// their time is waiting.
const scriptsAtOnce = "6"

// TestGuide runs the commands of docs/routing-guide.md. It takes longest, and so it begins first.
func TestGuide(t *testing.T) {
	t.Parallel()
	runScripts(t, filepath.Join("testdata", "guide"))
}

// TestScripts runs testdata/script: what users do at a shell, on kernel links.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, filepath.Join("testdata", "script"))
}

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "namespaces":
				return namespaces(t), nil
			case "race":
				return raceDetector(), nil
			case "openmpi":
				_, err := mpi.Find(t.Context())
				return err == nil, nil
			case "tshark":
				_, err := exec.LookPath("tshark")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_RUNTIME_DIR", e.WorkDir)   // where a test bed's socket is
			e.Setenv("GORACE", "atexit_sleep_ms=10") // the race detector keeps each command for a second
			docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
			if err != nil {
				return err
			}
			e.Setenv("DOCS", docs)
			short, err := os.MkdirTemp("/tmp", "rl") // for sockets, whose paths have 107 bytes
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(short) })
			e.Setenv("SHORT", short)
			e.Defer(func() { takeDown(e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jsonkeys": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
					var record map[string]any
					ts.Check(json.Unmarshal([]byte(line), &record))
					for _, key := range args[1:] {
						if _, ok := record[key]; !ok {
							ts.Fatalf("no key %q in %s", key, line)
						}
					}
				}
			},
			"mpiratio": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(checkMPIRatios(ts.ReadFile(args[0])))
			},
		},
	})
}

// raceDetector reports whether the commands of scripts run under the race detector. Each takes half a
// second to start then, and a script has dozens: one whose commands the tests of their packages run
// as well skips itself.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// takeDown removes the beds that a failed script may have left.
func takeDown(runtimeDir string) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	run := func(args ...string) string {
		command := exec.Command(self)
		command.Args = append([]string{"rawlane", "testbed"}, args...)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+runtimeDir)
		out, _ := command.Output() // where there are no beds there may be no namespaces either
		return string(out)
	}
	for _, name := range strings.Fields(run("list")) {
		run("down", "--name", name)
	}
}

// The beds of a script that fails go, whatever their names are.
func TestTakeDown(t *testing.T) {
	if !namespaces(t) {
		t.Skip("no network namespaces")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		command := exec.Command(self)
		command.Args = append([]string{"rawlane", "testbed"}, args...)
		out, err := command.Output()
		if err != nil {
			t.Fatal(args, err)
		}
		return string(out)
	}
	run("up")
	run("up", "--name", "two")
	takeDown(os.Getenv("XDG_RUNTIME_DIR"))
	if left := run("list"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// namespaces reports whether this user can have test beds; root must.
func namespaces(t *testing.T) bool {
	err := testbed.Available()
	if err != nil && os.Geteuid() != 0 {
		err = launch.TryUserNamespace()
	} else if err != nil {
		t.Fatalf("no namespaces, though we are root: %v", err)
	}
	return err == nil
}

// Command runs the command in this process.
func Command(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cli.Execute(context.Background(), cli.NewRoot(verbs), args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}

// checkMPIRatios checks that each line of bench barrier is compared with Open MPI's line of its
// loop.
func checkMPIRatios(lines string) error {
	mpi := make(map[string]float64)
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		var r struct {
			Algo   string
			Loop   string
			MeanUS float64 `json:"mean_us"`
			MPIUS  float64 `json:"mpi_us"`
			ToMPI  float64 `json:"mpi_ratio"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return err
		}
		if r.Algo == "openmpi" {
			mpi[r.Loop] = r.MeanUS
		}
		if r.MPIUS != mpi[r.Loop] || r.MPIUS <= 0 || math.Abs(r.ToMPI-r.MeanUS/r.MPIUS) > 1e-9 {
			return fmt.Errorf("mpi_us %v, mpi_ratio %v: want %v and %v: %s", r.MPIUS, r.ToMPI, mpi[r.Loop], r.MeanUS/mpi[r.Loop], line)
		}
	}
	return nil
}
