package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant"
)

// grantTimeout is far longer than any of the commands here takes.
const grantTimeout = 2 * time.Minute

// Without root: a user who has no right but what the file of rules gives takes the whole tour on
// real interfaces, by sockets that the service has opened, and measures messages, remote memory and
// barriers between two machines.
func TestWithoutRoot(t *testing.T) {
	testbed.Need(t)
	testbed.NeedNobody(t)
	bed, err := testbed.New(testbed.Config{Bridge: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bed.Close() })
	for k, name := range []string{"lan0", "lan1", "lan2", "lan3"} {
		addPort(t, bed, name, fmt.Sprintf("sw%d", k))
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil { // nobody passes by
		t.Fatal(err)
	}
	rules := filepath.Join(dir, "grants")
	text := fmt.Sprintf("allow user %d interface eth0,lan0,lan1,lan2,lan3 cluster 0-1 ports any xdp yes\n", testbed.Nobody)
	if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		startGrant(t, bed.Node(k), rules, socketOf(dir, k))
	}
	for _, kind := range []string{"ring", "packet"} {
		out := runNobody(t, bed, dir, 0, "demo", "--link", kind, "--interface", "lan0,lan1,lan2,lan3")
		for _, want := range []string{"interfaces lan0, lan1, lan2, lan3 of this machine", `received "members only"`, "100 times each: it is 300", "\nDone."} {
			if !strings.Contains(out, want) {
				t.Errorf("demo --link %s: no %q in\n%s", kind, want, out)
			}
		}
	}
	for _, args := range [][]string{
		{"bench", "latency", "--iters", "200"},
		{"bench", "latency", "--iters", "200", "--link", "xdp"},
		{"bench", "barrier", "--iters", "200"},
		{"bench", "put", "--iters", "200", "--bytes", "300000"},
		{"bench", "fifo", "--iters", "200", "--bytes", "300000"},
	} {
		both(t, bed, dir, args...)
	}
	refused := nobodyCommand(dir, 0, "node", "--node", "0", "--interface", "eth0", "--cluster", "2", "--nodes", "2")
	var said bytes.Buffer
	refused.Stderr = &said
	if err := bed.Node(0).Start(refused); err != nil {
		t.Fatal(err)
	}
	if err := refused.Wait(); err == nil || !strings.Contains(said.String(), "may not use port 255 of cluster 2 on eth0") {
		t.Errorf("cluster 2: %v, %s", err, said.String())
	}
}

// addPort gives node 0 a further interface on a bridge of its own namespace.
func addPort(t *testing.T, bed *testbed.Bed, name, port string) {
	t.Helper()
	err := bed.Node(0).Do(func() error {
		off := false
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "lan"}, MulticastSnooping: &off}
		if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, syscall.EEXIST) {
			return err
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, PeerName: port}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		for _, up := range []string{"lan", name, port} {
			l, err := netlink.LinkByName(up)
			if err != nil {
				return err
			}
			if up == port {
				if err := netlink.LinkSetMaster(l, bridge); err != nil {
					return err
				}
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		return awaitUp(name)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitUp waits until an interface can carry frames.
func awaitUp(name string) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		l, err := netlink.LinkByName(name)
		if err != nil || l.Attrs().OperState == netlink.OperUp {
			return err
		}
		if time.Since(start) > grantTimeout {
			return fmt.Errorf("%s is still %v", name, l.Attrs().OperState)
		}
	}
}

func socketOf(dir string, node int) string { return filepath.Join(dir, fmt.Sprintf("socket%d", node)) }

// startGrant runs the service in a node, for as long as the test.
func startGrant(t *testing.T, node *testbed.Node, rules, socket string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "grant", "--rules", rules, "--socket", socket)
	cmd.Args[0] = "rawlane"
	var journal bytes.Buffer
	cmd.Stderr = &journal
	if err := node.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || !strings.Contains(journal.String(), fmt.Sprintf("msg=granted uid=%d", testbed.Nobody)) {
			t.Errorf("the service: %v, %s", err, journal.String())
		}
	})
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return
		}
		if time.Since(start) > grantTimeout {
			t.Fatal("the service does not listen")
		}
	}
}

// nobodyCommand is the command as run by nobody on a node.
func nobodyCommand(dir string, node int, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "rawlane"
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), grant.EnvSocket+"="+socketOf(dir, node))
	cmd.SysProcAttr = testbed.AsNobody()
	return cmd
}

// runNobody runs the command on a node and returns what it printed.
func runNobody(t *testing.T, bed *testbed.Bed, dir string, node int, args ...string) string {
	t.Helper()
	cmd := nobodyCommand(dir, node, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := bed.Node(node).Start(cmd); err != nil {
		t.Error(err)
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), grantTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		t.Errorf("node %d: rawlane %v: %v\n%s", node, args, err, said.String())
	}
	return out.String()
}

// both runs the command on two nodes at the same time; the first one's output has results.
func both(t *testing.T, bed *testbed.Bed, dir string, args ...string) {
	t.Helper()
	var running sync.WaitGroup
	for k := range 2 {
		running.Go(func() {
			out := runNobody(t, bed, dir, k, append(args, "--interface", "eth0", "--nodes", "2", "--node", fmt.Sprint(k))...)
			if k == 0 && len(strings.Split(strings.TrimSpace(out), "\n")) < 3 {
				t.Errorf("rawlane %v printed\n%s", args, out)
			}
		})
	}
	running.Wait()
}
