//go:build linux

package testbed_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) {
	if os.Getenv("TESTBED_HOLD") != "" {
		hold()
	}
	if os.Getenv("TESTBED_HANGUP") != "" {
		tellHangup()
	}
	os.Exit(testbed.Main(m))
}

func bed(t *testing.T, cfg testbed.Config) *testbed.Bed {
	t.Helper()
	testbed.Need(t)
	b, err := testbed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// talk sends a UDP datagram from one node to another and expects it there.
func talk(t *testing.T, b *testbed.Bed, from, to, nic int) {
	t.Helper()
	address := &net.UDPAddr{IP: testbed.IP(to, nic), Port: 7000}
	in, err := testbed.In(b.Node(to), func() (*net.UDPConn, error) { return net.ListenUDP("udp", address) })
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := testbed.In(b.Node(from), func() (*net.UDPConn, error) { return net.DialUDP("udp", nil, address) })
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	want := fmt.Sprintf("%d to %d by %d", from, to, nic)
	if _, err := out.Write([]byte(want)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	_ = in.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := in.Read(buf); err != nil || string(buf[:n]) != want {
		t.Errorf("%q, %v; want %q", buf[:n], err, want)
	}
}

func TestPairCarriesTraffic(t *testing.T) {
	b := bed(t, testbed.Config{})
	talk(t, b, 0, 1, 0)
	talk(t, b, 1, 0, 0)
}

func TestBridgeJoinsAllNodesOnEachNetwork(t *testing.T) {
	b := bed(t, testbed.Config{Nodes: 4, NICs: 2})
	for nic := range 2 {
		talk(t, b, 0, 3, nic)
		talk(t, b, 2, 1, nic)
	}
}

func TestTwoBedsAtOnce(t *testing.T) {
	a, b := bed(t, testbed.Config{Nodes: 3}), bed(t, testbed.Config{Nodes: 3})
	talk(t, a, 0, 2, 0)
	talk(t, b, 0, 2, 0)
}

func TestInterfaces(t *testing.T) {
	b := bed(t, testbed.Config{NICs: 2, MTU: 9000})
	for k := range b.Nodes() {
		for nic := range 2 {
			err := b.Node(k).Do(func() error {
				ifi, err := net.InterfaceByName(testbed.Interface(nic))
				if err != nil {
					return err
				}
				if ifi.MTU != 9000 || ifi.HardwareAddr.String() != testbed.MAC(k, nic).String() || ifi.Flags&net.FlagUp == 0 {
					return fmt.Errorf("%+v", ifi)
				}
				return nil
			})
			if err != nil {
				t.Errorf("node %d NIC %d: %v", k, nic, err)
			}
		}
	}
	if err := errors.Join(b.Node(0).SetUp(0, false), b.Node(0).SetMTU(1, 1500)); err != nil {
		t.Fatal(err)
	}
	err := b.Node(0).Do(func() error {
		down, _ := net.InterfaceByName("eth0")
		small, _ := net.InterfaceByName("eth1")
		if down.Flags&net.FlagUp != 0 || small.MTU != 1500 {
			return fmt.Errorf("%+v, %+v", down, small)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The test's own thread never leaves its namespace.
func TestDoStaysInside(t *testing.T) {
	b := bed(t, testbed.Config{})
	here, inside := namespace(t), ""
	if err := b.Node(0).Do(func() error { inside = namespace(t); return nil }); err != nil {
		t.Fatal(err)
	}
	if after := namespace(t); after != here || inside == here {
		t.Errorf("namespaces: before %s, inside %s, after %s", here, inside, after)
	}
}

func namespace(t *testing.T) string {
	s, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStartedProcessLivesInTheNodeAndDiesWithTheBed(t *testing.T) {
	b := bed(t, testbed.Config{})
	cmd := exec.Command("sh", "-c", "readlink /proc/self/ns/net; cat")
	in, err := cmd.StdinPipe() // kept open: cat ends only if it is killed
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Node(1).Start(cmd); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	want := ""
	_ = b.Node(1).Do(func() error { want = namespace(t); return nil })
	if err != nil || strings.TrimSpace(line) != want {
		t.Errorf("process is in %q (%v), node in %q", line, err, want)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended with %v, want killed", err)
	}
}

// hold is another process that makes a bed with a child in it, says so, and then only waits.
func hold() {
	b, err := testbed.New(testbed.Config{Nodes: 3})
	if err == nil {
		cmd := exec.Command("sleep", "1000")
		err = b.Node(1).Start(cmd)
		if err == nil {
			fmt.Println(cmd.Process.Pid)
			select {}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A process that is killed leaves nothing: neither its children nor, with them, its namespaces.
func TestNothingOutlivesAKilledProcess(t *testing.T) {
	testbed.Need(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TESTBED_HOLD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatalf("no bed: %v", err)
	}
	pidfd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}} // readable when the child has ended
	if n, err := unix.Poll(fds, 10_000); n != 1 {
		t.Errorf("the child of a killed process is still there (%v)", err)
	}
}

// tellHangup is the program of another user: it says, inside its user namespace, whether a hang-up
// would end it.
func tellHangup() {
	err := testbed.Reexec()
	fmt.Println("hang-up ignored:", signal.Ignored(unix.SIGHUP), err)
	os.Exit(0)
}

// Under nohup a hang-up is for no process of an ordinary user's program: neither the one outside of
// the user namespace nor the one inside.
func TestReexec_UnderNohup(t *testing.T) {
	testbed.Need(t)
	testbed.NeedNobody(t)
	program := testbed.ProgramForNobody(t, "hangup")
	without := strconv.FormatBool(signal.Ignored(unix.SIGHUP)) // as where the tests themselves run under nohup
	for how, want := range map[string]string{"trap '' HUP; ": "true", "": without} {
		cmd := exec.Command("sh", "-c", how+"exec "+program)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", append(os.Environ(), "TESTBED_HANGUP=1"), testbed.AsNobody()
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "make a user namespace") {
			t.Skipf("%s", out)
		}
		if err != nil || string(out) != "hang-up ignored: "+want+" <nil>\n" {
			t.Errorf("%q: %q, %v", how, out, err)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	for _, cfg := range []testbed.Config{{Nodes: -1}, {Nodes: 1000}, {NICs: 9}, {MTU: 10}} {
		if _, err := testbed.New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

// Over a slow line behind a short queue most of a burst is dropped, and counted.
func TestLineDropsWhatFindsNoRoom(t *testing.T) {
	b := bed(t, testbed.Config{Bridge: true})
	if _, err := b.LineCounts(0, 0); err == nil {
		t.Error("a bed without a line counts what has come to it")
	}
	talk(t, b, 1, 0, 0) // they know each other's addresses then
	const sent, queue, burst = 40, 5, 2
	if err := b.SetLine(0, 0, testbed.Line{BitsPerSecond: 8000, Queue: queue * 1514}); err != nil { // a frame takes 1.5 s
		t.Fatal(err)
	}
	var out *net.UDPConn
	err := b.Node(1).Do(func() (err error) {
		out, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: testbed.IP(0, 0), Port: 7001})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for range sent {
		_, _ = out.Write(make([]byte, 1472)) // nobody listens there
	}
	n, err := b.LineCounts(0, 0)
	if most := uint64(sent - queue - burst); err != nil || n.Sent == 0 || n.Dropped > most || n.Dropped < most-10 {
		t.Errorf("%+v, %v; want %d frames dropped", n, err, most)
	}
}
