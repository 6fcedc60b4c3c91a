package bench

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
)

// The keys of docs/bench-json.md are those that are printed, in each benchmark.
func TestBenchJSON(t *testing.T) {
	// The fabric loses nothing, but an echo that is 100 ms late counts as lost, and a busy machine
	// may stand still for longer.
	const late = 5
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bench := range []string{"latency", "bandwidth", "rate", "logp"} {
		t.Run(bench, func(t *testing.T) {
			out, errs, status := command(t, "bench", bench, "--nodes", "3", "--size", "0,4,1480", "--iters", "500", "--vid", "7", "--pcp", "2", "--json")
			if status != cli.ExitDone || errs != "" {
				t.Fatalf("status %d, said %s", status, errs)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != 3 {
				t.Fatalf("%d lines, want one for each size:\n%s", len(lines), out)
			}
			for i, line := range lines {
				var r result
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				size, iters := []int{0, 4, 1480}[i], 500
				if bench == "bandwidth" {
					iters = 7 * 64 // in whole windows
				}
				if r.Schema != resultSchema || r.Bench != bench || r.Link != "fabric" || r.Nodes != 3 || r.NICs != 1 || r.SizeBytes != size || r.Iters != iters ||
					!r.Tagged || r.VID != 7 || r.PCP != 2 || r.Pin != -1 || r.Lost > late || r.Host.Kernel != launch.ReadLine("/proc/sys/kernel/osrelease") || r.Host.MTU != 1500 {
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

// A line says what was sent, where that is another number than was asked for.
func TestBench_WhatWasSent(t *testing.T) {
	for _, c := range []struct {
		args         string
		iters, batch int
	}{
		{"bandwidth --iters 1", 64, 32},
		{"bandwidth --iters 100 --window 8", 96, 8},
		{"rate --iters 5", 5, 5},
		{"rate --iters 100", 100, 32},
		{"logp --iters 101", 110, 1},
	} {
		out, errs, status := command(t, append([]string{"bench"}, strings.Fields(c.args+" --nodes 2 --size 4 --json")...)...)
		var r result
		if err := json.Unmarshal([]byte(out), &r); err != nil || status != cli.ExitDone {
			t.Fatalf("%s: %v, status %d, said %s", c.args, err, status, errs)
		}
		if r.Iters != c.iters || r.Batch != c.batch {
			t.Errorf("%s: %d in batches of %d, want %d of %d", c.args, r.Iters, r.Batch, c.iters, c.batch)
		}
	}
}

// The same of the benchmarks of remote memory.
func TestBenchMemoryJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	bytes := "4000000"
	if testing.Short() {
		bytes = "200000"
	}
	for _, bench := range []string{"put", "get", "fifo", "amo", "conn", "rpc"} {
		t.Run(bench, func(t *testing.T) {
			out, errs, status := command(t, "bench", bench, "--iters", "50", "--bytes", bytes, "--loss", "0.01", "--json")
			if status != cli.ExitDone || errs != "" {
				t.Fatalf("status %d, said %s", status, errs)
			}
			for line := range strings.Lines(out) {
				var r memoryResult
				var keys map[string]any
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				if !(r.Bench == bench && 0 < r.MinUS && r.MinUS <= r.P50US && r.P50US <= r.MaxUS && r.MsgsPerS > 0 && r.MBPerS > 0 && r.Frames > 0 && r.Loss == 0.01 &&
					(r.Streamed > 0) == (bench == "put" || bench == "fifo" || bench == "conn") && (r.DuplexMBPerS > 0) == (bench == "put") && (r.BatchedPerS > 0) == (bench == "fifo") &&
					(r.PushUS > 0) == (bench == "conn" || bench == "rpc") && (r.InlineUS > 0) == (bench == "rpc")) {
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

// The same of message passing.
func TestBenchMPIJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range mpiBenches {
		t.Run(b.name, func(t *testing.T) {
			args := []string{"bench", "mpi", b.name, "--nodes", "3", "--iters", "130", "--loss", "0.01", "--json"}
			want := []int{0}
			if b.unit > 0 {
				args, want = append(args, "-m", "4,20000"), []int{4, 20000}
			}
			out, errs, status := command(t, args...)
			if status != cli.ExitDone || errs != "" || strings.Count(out, "\n") != len(want) {
				t.Fatalf("status %d, said %s, printed %s", status, errs, out)
			}
			for line := range strings.Lines(out) {
				var r mpiResult
				var keys map[string]any
				if err := errors.Join(json.Unmarshal([]byte(line), &r), json.Unmarshal([]byte(line), &keys)); err != nil {
					t.Fatal(err)
				}
				iters, window := 130, 0
				if r.SizeBytes > largeMessage {
					iters = 13
				}
				if b.name == "bandwidth" || b.name == "bibw" {
					iters, window = max(1, iters/mpiWindow), mpiWindow
				}
				if r.Bench != "mpi "+b.name || r.SizeBytes != want[0] || r.Iters != iters || r.Window != window ||
					r.Frames == 0 || r.Loss != 0.01 ||
					window == 0 && (r.MinUS <= 0 || r.MinUS > r.MeanUS || r.MeanUS > r.MaxUS) ||
					window > 0 && (r.MsgsPerS <= 0 || math.Abs(r.MBPerS*1e6/r.MsgsPerS-float64(r.SizeBytes)) > 1e-6) {
					t.Errorf("%s", line)
				}
				want = want[1:]
				for key := range keys {
					if !strings.Contains(string(doc), "`"+key+"`") {
						t.Errorf("%s is not in docs/bench-json.md", key)
					}
				}
			}
		})
	}
}

func TestBenchMPI_Misuse(t *testing.T) {
	for what, flags := range map[string][]string{
		"which benchmark? (latency, bandwidth, bibw, put, allreduce, allgather, alltoall, bcast or barrier)": nil,
		`unknown verb "osu_latency"`:                      {"osu_latency"},
		"--size 0: want 1 to 1073741824":                  {"bandwidth", "-m", "0"},
		"--size 6: want 4 to 1073741824, a multiple of 4": {"allreduce", "-m", "4,6"},
		`--algorithm "ring": want recursive doubling or multicast by each or multicast or halving and doubling`: {"allreduce", "--algorithm", "ring"},
		"--iters 0: want 1 to 1000000": {"bcast", "--iters", "0"},
		"unknown flag: --size":         {"barrier", "--size", "4"},
	} {
		out, errs, status := command(t, append([]string{"bench", "mpi"}, flags...)...)
		if status != cli.ExitMisused || out != "" || !strings.Contains(errs, what) {
			t.Errorf("%v: status %d, said %s", flags, status, errs)
		}
	}
}

// Idle connections use a processor and memory, at either node. The keys are those of
// docs/bench-json.md, too.
func TestBenchIdleJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "bench", "idle", "--conns", "500", "--iters", "1", "--json")
	if status != cli.ExitDone || errs != "" || strings.Count(out, "\n") != 1 {
		t.Fatalf("status %d, said %s, printed %s", status, errs, out)
	}
	var r idleResult
	var keys map[string]any
	if err := errors.Join(json.Unmarshal([]byte(out), &r), json.Unmarshal([]byte(out), &keys)); err != nil {
		t.Fatal(err)
	}
	if r.Bench != "idle" || r.Conns != 500 || r.Iters != 1 || r.CPUPercent[0] <= 0 || r.CPUPercent[1] <= 0 ||
		r.BytesPerConn[0] < 500 || r.BytesPerConn[1] < 500 {
		t.Errorf("%s", out)
	}
	for key := range keys {
		if !strings.Contains(string(doc), "`"+key+"`") {
			t.Errorf("%s is not in docs/bench-json.md", key)
		}
	}
}

func TestBenchIdle_Misuse(t *testing.T) {
	for _, flags := range [][]string{{"--conns", "-1"}, {"--conns", "65536"}, {"--conns", "x"}, {"--nodes", "3"}, {"--iters", "0"}} {
		out, errs, status := command(t, append([]string{"bench", "idle"}, flags...)...)
		if status != cli.ExitMisused || out != "" || !strings.Contains(errs, flags[0]) || !strings.Contains(errs, "want ") {
			t.Errorf("%v: status %d, said %s", flags, status, errs)
		}
	}
}

// Barriers have numbers that go together: of one distribution, and allocations that are counted. A
// key that would always be 0 is not there.
func TestBenchBarrierJSON(t *testing.T) {
	out, errs, status := command(t, "bench", "barrier", "--nodes", "4", "--iters", "30", "--algo", "tree:3,auto", "--json")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	for line := range strings.Lines(out) {
		var r barrierResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if !(0 < r.MinUS && r.MinUS <= r.MeanMinUS && r.MinUS <= r.P50US && r.P50US <= r.P99US && r.P99US <= r.MaxUS && r.MeanMaxUS <= r.MaxUS &&
			r.MinUS <= r.MeanUS && r.MeanUS <= r.MaxUS) {
			t.Errorf("numbers out of order: %s", line)
		}
		if strings.Contains(line, `"lost"`) {
			t.Errorf("barriers do not count what is lost: %s", line)
		}
	}
}

// Where node 0 has no unit a line says why, and the schedule runs in the processes.
func TestBenchBarrier_OffloadFallsBack(t *testing.T) {
	out, errs, status := command(t, "bench", "barrier", "--nodes", "3", "--iters", "30", "--algo", "offload", "--json")
	if status != cli.ExitDone || errs != "rawlane: offload: node 0 counts in its process: its link has no interface\n" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	if n := strings.Count(out, "\n"); n != 2 {
		t.Errorf("%d lines, want one for each loop: %s", n, out)
	}
}

// auto is what an empty config chooses where the nodes run: in this process, on its cores. Its
// predicted time is that of the model by which it was chosen.
func TestBenchBarrier_AutoKnowsWhereNodesRun(t *testing.T) {
	const nodes = 20
	out, errs, status := command(t, "bench", "barrier", "--nodes", strconv.Itoa(nodes), "--iters", "30", "--algo", "auto", "--json")
	if status != cli.ExitDone || errs != "" {
		t.Fatalf("status %d, said %s", status, errs)
	}
	place := mcd.Here()
	shape := schedule.OneHost(nodes, int(place.Usable), schedule.FabricCosts)
	for line := range strings.Lines(out) {
		var r barrierResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		want := shape.Choose(nodes)
		if r.Chosen != want.String() || r.ModelUS != cli.Micros(shape.Cost(want)) {
			t.Errorf("%s, %v us by the model; want %v, %v", r.Chosen, r.ModelUS, want, shape.Cost(want))
		}
	}
}

// All lines of comma-separated values have one head, without a key and with it.
func TestBenchCSV_OneHead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.New().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "bench", "latency", "--size", "4,8", "--iters", "10", "--key-file", file, "--csv")
	if status != cli.ExitDone || strings.Count(out, "schema,") != 1 || strings.Count(out, "\n2,latency,") < 4 {
		t.Errorf("status %d, %s, printed\n%s", status, errs, out)
	}
}

// Comma-separated values have the names of the JSON's keys, and as many values as names.
func TestBenchCSV(t *testing.T) {
	out, errs, status := command(t, "bench", "latency", "--size", "4:16", "--iters", "50", "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if status != cli.ExitDone || errs != "" || err != nil || len(rows) != 4 {
		t.Fatalf("status %d, said %s, %v, %d rows\n%s", status, errs, err, len(rows), out)
	}
	size, p50 := slices.Index(rows[0], "size_bytes"), slices.Index(rows[0], "p50_us")
	if size < 0 || p50 < 0 || !slices.Contains(rows[0], "host.kernel") {
		t.Fatalf("columns %v", rows[0])
	}
	for i, row := range rows[1:] {
		if us, err := strconv.ParseFloat(row[p50], 64); err != nil || us <= 0 || row[size] != []string{"4", "8", "16"}[i] {
			t.Errorf("%v", row)
		}
	}
}

// Nodes that are threads of this process are on no core of their own, and are not said to be.
func TestBench_ThreadsAreNotPinned(t *testing.T) {
	flags := []string{"bench", "amo", "--link", "shm", "--mode", "threads", "--iters", "5", "--bytes", "64"}
	out, errs, status := command(t, append(flags, "--json")...)
	var r memoryResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != cli.ExitDone || errs != "" || r.Pin != notPinned {
		t.Errorf("status %d, said %s, printed %s", status, errs, out)
	}
	if out, errs, status = command(t, flags...); status != cli.ExitDone || !strings.Contains(out, ", threads, one process, ") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
	_, errs, status = command(t, append(flags, "--pin", "0,1")...)
	if status != cli.ExitMisused || !strings.Contains(errs, "--pin: with --mode threads the nodes share one process") {
		t.Errorf("status %d, said %s", status, errs)
	}
}

// A file of --capture that cannot be made leaves no folder of segments behind.
func TestBench_FailedCaptureLeavesNothing(t *testing.T) {
	dir := testbed.SocketDir(t)
	t.Setenv(launch.EnvSegmentDir, dir)
	_, errs, status := command(t, "bench", "amo", "--link", "shm", "--mode", "threads", "--capture", filepath.Join(dir, "none", "x"))
	if status != cli.ExitFailed || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("status %d, said %s", status, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchTable(t *testing.T) {
	out, errs, status := command(t, "bench", "latency", "--size", "4,64", "--iters", "100")
	lines := strings.Split(out, "\n")
	if status != cli.ExitDone || errs != "" || len(lines) != 5 || !strings.HasPrefix(lines[0], "# rawlane bench latency: fabric, 2 nodes, untagged, one process, 100 iterations") ||
		!strings.HasPrefix(lines[1], "# Size         p50 (us) ") || !strings.HasPrefix(lines[2], "4 ") || !strings.HasPrefix(lines[3], "64 ") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
}

// Without the key and with it a benchmark runs in turn. The rounds share the round trips, and the
// last one's results are those of all.
func TestKeyCost_Rounds(t *testing.T) {
	for _, iters := range []int{1, 3, keyRounds, 7, 20_000} {
		k, whole := newKeyCost(iters), result{}
		for ; k.round < k.rounds; k.round++ {
			h, n := newTimes(), k.share(iters)
			for range n {
				_ = h.RecordValue(int64(k.round+1) * 125)
			}
			r := result{Iters: n, Lost: 1, Allocs: 2}
			r.recordPingPong(h, time.Second)
			if k.round > 0 {
				r.addPingPong(&whole)
			}
			whole = r
		}
		rounds := uint64(k.rounds)
		if whole.Iters != iters || whole.halves.TotalCount() != int64(iters) || whole.Lost != rounds || whole.Allocs != 2 ||
			whole.MinUS != .125 || whole.MaxUS != .125*float64(k.rounds) || whole.elapsed != time.Duration(rounds)*time.Second {
			t.Errorf("%d round trips: %+v", iters, whole)
		}
	}
}

// A size that is given twice has two rows without the key, and two with it, each of its own round trips.
func TestBenchLatency_ASizeTwiceWithAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.New().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "bench", "latency", "--size", "4,4", "--iters", "20", "--key-file", file, "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != cli.ExitDone || len(lines) != 4 {
		t.Fatalf("status %d, said %s, printed %s", status, errs, out)
	}
	for _, line := range lines {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Iters != 20 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// With a key file each size is measured without the key and with it, in one run. What node 0 takes
// is authenticated, and both ends of the comparison are in the output.
func TestBenchLatency_WhatAKeyCosts(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []bool{true, false}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, encrypt := range kinds {
		file := filepath.Join(t.TempDir(), "key")
		ring := keyring.New()
		ring.Encrypt = encrypt
		if err := ring.WriteFile(file); err != nil {
			t.Fatal(err)
		}
		with := map[bool]string{false: "authenticated", true: "encrypted"}[encrypt]
		out, errs, status := command(t, "bench", "latency", "--nodes", "3", "--size", "4,1452", "--iters", "200", "--key-file", file, "--json")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if status != cli.ExitDone || errs != "" || len(lines) != 4 {
			t.Fatalf("status %d, said %s, printed\n%s", status, errs, out)
		}
		plain := map[int]float64{}
		for i, line := range lines {
			var r result
			var keys map[string]any
			if err := errors.Join(json.Unmarshal([]byte(line), &r), json.Unmarshal([]byte(line), &keys)); err != nil || r.KeyTimes == nil {
				t.Fatal(line, err)
			}
			for key := range keys {
				if !strings.Contains(string(doc), "`"+key+"`") {
					t.Errorf("%s is not in docs/bench-json.md", key)
				}
			}
			if r.Iters != 200 || r.Refused != 0 || r.PlainUS <= 0 || r.Ratio != r.P50US/r.PlainUS {
				t.Errorf("%s", line)
			}
			if i < 2 {
				plain[r.SizeBytes] = r.P50US
				if r.Keys != "none" || r.Ratio != 1 || r.Authenticated != 0 {
					t.Errorf("without the key: %s", line)
				}
				continue
			}
			if r.Keys != with || r.PlainUS != plain[r.SizeBytes] || r.Authenticated < 2*200 {
				t.Errorf("with the key: %s", line)
			}
		}
		out, errs, status = command(t, "bench", "latency", "--size", "4", "--iters", "50", "--key-file", file)
		if status != cli.ExitDone || errs != "" || !strings.Contains(out, ", without the key, ") || !strings.Contains(out, ", "+with+", ") ||
			strings.Count(out, "  / plain  authenticated  refused\n") != 2 {
			t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
		}
		for _, other := range [][]string{{"rate"}, {"put", "--bytes", "64K"}, {"barrier"}} {
			out, errs, status := command(t, slices.Concat([]string{"bench"}, other, []string{"--iters", "50", "--key-file", file})...)
			if status != cli.ExitDone || errs != "" || strings.Count(out, ", "+with+", ") != 1 || strings.Contains(out, "without") {
				t.Errorf("%s: status %d, said %s, printed\n%s", other, status, errs, out)
			}
		}
	}
}

// A size for which there is no room with the key is refused before anything is measured.
func TestBenchLatency_RoomWithAKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.New().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "bench", "latency", "--size", "4,1453", "--iters", "50", "--key-file", file)
	if status != cli.ExitMisused || out != "" || !strings.Contains(errs, "--size 1453: too large: 1453 bytes, at most 1452 fit") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
}
