package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// The fabric's nodes are on two leaves, and VID 1 and 2 lead from one to the other; VID 3 does not.
func TestPing(t *testing.T) {
	out, errs, status := command(t, "ping", "1", "--vids", "untagged,1-3", "--count", "3")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != cli.ExitDone || errs != "" || len(lines) != 6 {
		t.Fatalf("status %d, said %s, printed\n%s", status, errs, out)
	}
	for i, want := range []string{"no tag ", "VID 1 ", "VID 2 ", "VID 3 "} {
		if line := lines[2+i]; !strings.HasPrefix(line, want) || strings.Contains(line, "no answer") != (i == 3) || strings.Contains(line, "3/3") == (i == 3) {
			t.Errorf("%q: want %s, and no answer by VID 3 alone", line, want)
		}
	}
	out, errs, status = command(t, "ping", "1", "--vid", "3", "--count", "2", "--wait", "100ms")
	if status != cli.ExitFailed || !strings.Contains(out, "no answer") ||
		errs != "rawlane ping: node 1 by VID 3: no answer (rawlane ping 1 --all-vids shows by which VIDs it answers)\n" {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
	out, errs, status = command(t, "ping", "3", "--nodes", "4", "--all-vids", "--count", "2")
	if status != cli.ExitDone || errs != "" || !strings.HasPrefix(out, "# node 3 answers by VIDs untagged,1-2\n") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
	out, _, _ = command(t, "ping", "1", "--vid", "2", "--pcp", "5", "--size", "1480", "--count", "4", "--json")
	var r pathRecord
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Schema != 1 || r.From != 0 || r.To != 1 || !r.Tagged || r.VID != 2 || r.PCP != 5 ||
		r.Bytes != 1480 || r.Sent != 4 || r.Answered != 4 || !(0 < r.MinUS && r.MinUS <= r.P50US && r.P50US <= r.MaxUS) || r.PeerReceivedTag != "" {
		t.Errorf("%s (%v)", out, err)
	}
}

func TestMatrix(t *testing.T) {
	out, errs, status := command(t, "matrix", "--nodes", "3", "--vids", "2,3", "--count", "2", "--wait", "100ms", "--rate", "2ms")
	if status != cli.ExitDone || errs != "" || strings.Count(out, "# from\\to") != 4 {
		t.Fatalf("status %d, said %s, printed\n%s", status, errs, out)
	}
	tables := strings.Split(out, "# rawlane matrix: ")
	if strings.Contains(tables[1], "dead") || strings.Contains(tables[2], "dead") || strings.Count(tables[3], "dead") != 4 {
		t.Errorf("want nobody dead by VID 2, and the two pairs between the leaves by VID 3:\n%s", out)
	}
	out, errs, status = command(t, "matrix", "--nodes", "3", "--json", "--count", "2", "--rate", "2ms")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != cli.ExitDone || errs != "" || len(lines) != 6 {
		t.Fatalf("status %d, said %s, printed\n%s", status, errs, out)
	}
	for _, line := range lines {
		var r pathRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Answered != 2 || r.MBPerS <= 0 || r.From == r.To {
			t.Errorf("%s (%v)", line, err)
		}
	}
	if out, errs, status = command(t, "matrix", "--vids", "3", "--count", "1", "--wait", "10ms"); status != cli.ExitFailed || !strings.Contains(errs, "all pairs, by these tags: no answer") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
}

func TestMatrixCheck(t *testing.T) {
	out, errs, status := command(t, "matrix", "--check", "--nodes", "3", "--vids", "untagged,1,2", "--wait", "100ms")
	if status != cli.ExitDone || errs != "" || out != "no fault found: 3 nodes, by VIDs untagged,1-2\n" {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
	out, errs, status = command(t, "matrix", "--check", "--nodes", "3", "--vids", "1,3", "--wait", "100ms")
	if status != cli.ExitFailed || errs != "rawlane matrix: faults found: 2\n" || strings.Count(out, "black hole: ") != 2 || !strings.Contains(out, "by VID 3") {
		t.Errorf("status %d, said %s, printed\n%s", status, errs, out)
	}
	out, _, _ = command(t, "matrix", "--check", "--vids", "1,3", "--wait", "100ms", "--json")
	var r map[string]any
	if err := json.Unmarshal([]byte(out), &r); err != nil || r["kind"] != "black hole" || r["vid"] != 3.0 || r["to"] != 1.0 || r["text"] == "" {
		t.Errorf("%s (%v): want one line for the pair, though both ends see it", out, err)
	}
}

// What nodes have found is printed, also where one that has not had its turn is gone; nothing is said of
// the whole then.
func TestMatrix_NodeIsGone(t *testing.T) {
	for name, m := range map[string]*matrixVerb{
		"tables": {}, "json": {pathFlags: pathFlags{json: true}}, "check": {check: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m.tags, m.count, m.size, m.wait = tagList{transport.Untagged}, 1, mcd.MinProbe, time.Second
				eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
				go func() { _, _ = m.inTurn(t.Context(), eps[1], cli.Progress{}) }() // it fails, too
				go func() {
					x, err := cluster.OpenExchanger(eps[2], cluster.ExchangerConfig{})
					if err != nil {
						return
					}
					for range 2 {
						_, _ = x.Gather(t.Context(), 0, nil)
					}
					_ = x.Close()
					_ = eps[2].Close()
				}()
				cmd, out := new(cobra.Command), new(strings.Builder)
				cmd.SetOut(out)
				rows, failed := m.inTurn(t.Context(), eps[0], cli.Progress{})
				err := m.print(cmd, rows, failed)
				if failed == nil || !errors.Is(err, failed) {
					t.Errorf("%v, want %v", err, failed)
				}
				want := map[string]string{
					"tables": "# from\\to         0         1         2\n0 ", "json": `"from":1,"to":2,`, "check": "",
				}[name]
				if !strings.Contains(out.String(), want) || m.check && out.Len() > 0 {
					t.Errorf("printed %s, want %s", out, want)
				}
				synctest.Wait()
			})
		})
	}
}

// What a node has found before it failed is printed with the failure.
func TestMatrix_NodeFails(t *testing.T) {
	m := &matrixVerb{pathFlags: pathFlags{json: true}}
	for text, rows := range map[string][]row{
		`"answered":1`: {{Paths: []pathRecord{{To: 1, Answered: 1}}}, {Error: "link is down"}},
		"":             {{}, {Error: "link is down"}},
	} {
		cmd, out := new(cobra.Command), new(strings.Builder)
		cmd.SetOut(out)
		err := m.print(cmd, rows, nil)
		if err == nil || err.Error() != "node 1: link is down" || !strings.Contains(out.String(), text) || text == "" && out.Len() > 0 {
			t.Errorf("%v, printed %s, want %s", err, out, text)
		}
	}
}

// Flags of links that nodes which are started here do not have are refused, and not ignored.
func TestPing_FlagsOfOtherNodes(t *testing.T) {
	for _, verb := range [][]string{{"ping", "1"}, {"matrix"}} {
		for flag, link := range map[string]string{
			"--mtu=9000": "fabric", "--trains=false": "ring", "--xdp-mode=generic": "xdp", "--segment=x": "ring",
		} {
			out, errs, status := command(t, append(verb, flag, "--link", link)...)
			name, _, _ := strings.Cut(flag, "=")
			want := "rawlane " + verb[0] + ": " + name + ": has no effect on nodes that are started here"
			if status != cli.ExitMisused || !strings.HasPrefix(errs, want) || out != "" {
				t.Errorf("%s: status %d, said %s, printed %s; want %s", flag, status, errs, out, want)
			}
		}
	}
}

// A matrix that is interrupted says so, as each verb does, and ends with the signal's status.
func TestMatrix_Interrupted(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	end(&cli.SignalError{Signal: syscall.SIGTERM})
	for _, args := range [][]string{{"matrix", "--nodes", "3"}, {"matrix", "--nodes", "3", "--check"}} {
		var out, errs bytes.Buffer
		status := cli.Execute(ctx, cli.NewRoot(verbs), args, strings.NewReader(""), &out, &errs)
		if status != cli.ExitSignal+int(syscall.SIGTERM) || errs.String() != "rawlane matrix: interrupted\n" || out.Len() > 0 {
			t.Errorf("%v: status %d, said %q, printed %q", args, status, &errs, &out)
		}
	}
}

func TestTagListsArePrintedAsTheyAreParsed(t *testing.T) {
	for _, text := range []string{"untagged", "0", "1-4094", "untagged,1-3,7,9-10", "5,4"} {
		var l tagList
		if err := l.Set(text); err != nil || l.String() != text {
			t.Errorf("%s became %v (%v)", text, &l, err)
		}
	}
}

// A node that a host file tells its number only as it joins does not look for itself by all VIDs.
func TestPing_Itself(t *testing.T) {
	ep := mcdtest.Open(t, 1, mcdtest.Config{})[0]
	for _, all := range []bool{false, true} {
		p := &pingVerb{pathFlags: pathFlags{tags: tagList{transport.Untagged}, count: 1, wait: time.Millisecond}, allVIDs: all}
		if err := p.ask(t.Context(), new(cobra.Command), ep); err == nil || !strings.Contains(err.Error(), "node 0: is the one that asks") {
			t.Errorf("by all VIDs: %v: %v", all, err)
		}
	}
}

// Who interrupts a ping sees what it has measured.
func TestPing_Interrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			f, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(node))),
				fault.Config{Delay: 1, DelayMin: 3 * time.Millisecond, DelayMax: 3 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		ep := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}, Wrap: slow})[0]
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var out bytes.Buffer
		cmd := new(cobra.Command)
		cmd.SetOut(&out)
		p := &pingVerb{pathFlags: pathFlags{tags: tagList{transport.Untagged}, size: mcd.MinProbe, count: 1000, wait: time.Second}, node: 1}
		err := p.ask(ctx, cmd, ep)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out.String(), " 3/3 ") {
			t.Errorf("%v, printed %q; want that three were answered", err, &out)
		}
	})
}
