package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	out, errs, status := command(t, "demo")
	if status != exitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	for _, want := range []string{`1:7 answered "hello, raw Ethernet"`, `node 2, a member of group 5, received "members only"`,
		"node 2 received \"to all\" from 3:1", "drop_no_port 1", "VID 1 PCP 5, by way of top 1", "VID 2 PCP 5, by way of top 2",
		`wrote "put here" into node 1's memory at 16`, `"node 1, id 1: access refused: out of range"; nothing was written`, "100 times each: it is 300",
		"into 128 bytes of node 1, which popped", "\n1400 ", "\nDone."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The keys of docs/bench-json.md are those that are printed, in each benchmark.
func TestBenchJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bench := range []string{"latency", "bandwidth", "rate", "logp"} {
		t.Run(bench, func(t *testing.T) {
			out, errs, status := command(t, "bench", bench, "--nodes", "3", "--size", "0,4,1480", "--iters", "500", "--vid", "7", "--pcp", "2", "--json")
			if status != exitDone || errs != "" {
				t.Fatalf("status %d, said %s", status, errs)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != 3 {
				t.Fatalf("%d lines, want one for each size:\n%s", len(lines), out)
			}
			for i, line := range lines {
				var r benchResult
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				size := []int{0, 4, 1480}[i]
				if r.Schema != 1 || r.Bench != bench || r.Link != "fabric" || r.Nodes != 3 || r.NICs != 1 || r.SizeBytes != size || r.Iters != 500 ||
					!r.Tagged || r.VID != 7 || r.PCP != 2 || r.Pin != -1 || r.Lost != 0 || r.Host.Kernel != readLine("/proc/sys/kernel/osrelease") || r.Host.MTU != 1500 {
					t.Errorf("%s", line)
				}
				if !(0 < r.MinUS && r.MinUS <= r.P50US && r.P50US <= r.P99US && r.P99US <= r.MaxUS && r.MeanUS > 0 && r.MsgsPerS > 0 && r.TxPerS > 0) {
					t.Errorf("numbers out of order: %s", line)
				}
				var keys map[string]any
				_ = json.Unmarshal([]byte(line), &keys) // it did above
				for key := range keys {
					if !strings.Contains(string(doc), "`"+key+"`") {
						t.Errorf("%s is not in docs/bench-json.md", key)
					}
				}
			}
		})
	}
}

// The same of the benchmarks of remote memory.
func TestBenchMemoryJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bench := range []string{"put", "get", "fifo", "amo"} {
		t.Run(bench, func(t *testing.T) {
			out, errs, status := command(t, "bench", bench, "--iters", "50", "--bytes", "4000000", "--loss", "0.01", "--json")
			if status != exitDone || errs != "" {
				t.Fatalf("status %d, said %s", status, errs)
			}
			for line := range strings.Lines(out) {
				var r memoryResult
				var keys map[string]any
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				if !(r.Bench == bench && 0 < r.MinUS && r.MinUS <= r.P50US && r.P50US <= r.MaxUS && r.MsgsPerS > 0 && r.MBPerS > 0 && r.Frames > 0 && r.Loss == 0.01 &&
					(r.DuplexMBPerS > 0) == (bench == "put") && (r.BatchedPerS > 0) == (bench == "fifo")) {
					t.Errorf("%s", line)
				}
				_ = json.Unmarshal([]byte(line), &keys) // it did above
				for key := range keys {
					if !strings.Contains(string(doc), "`"+key+"`") {
						t.Errorf("%s is not in docs/bench-json.md", key)
					}
				}
			}
		})
	}
}

func TestBenchTable(t *testing.T) {
	out, errs, status := command(t, "bench", "latency", "--size", "4,64", "--iters", "100")
	lines := strings.Split(out, "\n")
	if status != exitDone || errs != "" || len(lines) != 5 || !strings.HasPrefix(lines[0], "# rawlane bench latency: fabric, 2 nodes, untagged, 100 iterations") ||
		!strings.HasPrefix(lines[1], "# Size     Latency (us)") || !strings.HasPrefix(lines[2], "4 ") || !strings.HasPrefix(lines[3], "64 ") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
}

// What --capture wrote, dump prints: every ping and its echo, under the tag that they were sent with.
func TestCaptureAndDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pcapng")
	if _, errs, status := command(t, "bench", "latency", "--size", "64", "--iters", "20", "--vid", "5", "--pcp", "3", "--capture", file); status != exitDone {
		t.Fatalf("status %d: %s", status, errs)
	}
	out, errs, status := command(t, "dump", file)
	if status != exitDone || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	const rounds = 20 // and those that warm up
	for _, want := range []string{"0:200 -> 1:200 unicast cluster 0x1 64 bytes sent with VID 5 PCP 3", "1:200 -> 0:200 unicast cluster 0x1 64 bytes sent with VID 5 PCP 3"} {
		if n := strings.Count(out, " VID 5 PCP 3: "+want); n < rounds {
			t.Errorf("%d times %q, want %d or more", n, want, rounds)
		}
	}
	if !strings.Contains(out, " 0 of them faulty; 0 other frames\n") {
		t.Errorf("the last line: %s", out[len(out)-80:])
	}
	out, _, _ = command(t, "dump", file, "--json", "--payload", "4")
	var r dumpRecord
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &r); err != nil || r.Frame != 1 || r.Message == nil || fmt.Sprint(r.Tags) != "[{5 3 false}]" {
		t.Errorf("%+v, %v", r, err)
	}

	// A file that is cut off is printed as far as it goes, and said to be.
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, status = command(t, "dump", file)
	if status != exitFailed || !strings.Contains(out, "0:200 -> 1:200") || !strings.Contains(errs, "is the file cut off?") {
		t.Errorf("cut off: status %d: %s", status, errs)
	}
}

func TestDoctor(t *testing.T) {
	out, errs, status := command(t, "doctor", "--json", "--interface", "lo")
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); status != exitDone || errs != "" || err != nil {
		t.Fatalf("status %d: %s %v", status, errs, err)
	}
	if len(d.Checks) != 4 || !d.Checks[0].OK || len(d.Interfaces) != 1 || d.Interfaces[0].Name != "lo" {
		t.Errorf("%s", out)
	}
	for _, f := range append(d.Checks, d.Interfaces[0].Links...) {
		if !f.OK && f.Reason == "" {
			t.Errorf("%s: no reason", f.Name)
		}
	}
	if out, _, _ := command(t, "doctor", "--interface", "lo"); !strings.Contains(out, "yes  fabric links (in memory)") || !strings.Contains(out, "not an Ethernet interface") {
		t.Errorf("%s", out)
	}
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		out, _, status := command(t, how)
		if status != exitDone || !strings.HasPrefix(out, "rawlane ") || !strings.HasSuffix(out, "wire format 1\n") {
			t.Errorf("%s: status %d: %s", how, status, out)
		}
	}
}
