package xdp_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/xdp"
)

func TestOpen_RefusesConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  xdp.Config
		want string
	}{
		{xdp.Config{EtherType: transport.EtherTypeAny}, "Config.EtherType"},
		{xdp.Config{Mode: 7}, "Config.Mode 7"},
		{xdp.Config{Mode: -1}, "Config.Mode -1"},
		{xdp.Config{Slots: 1}, "Config.Slots 1: out of range"},
		{xdp.Config{Slots: xdp.MaxSlots + 1}, "out of range (2 to 65536)"},
	} {
		if _, err := xdp.Open("eth0", c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []xdp.Mode{xdp.ModeAuto, xdp.ZeroCopy, xdp.Native, xdp.Generic} {
		if got, err := xdp.ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	for _, name := range []string{"", "unknown", "Native"} {
		if _, err := xdp.ParseMode(name); err == nil || !strings.Contains(err.Error(), "want auto, zero-copy, native or generic") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Frames have to fit a page of memory: the error says which MTU would do.
func TestOpen_MTU(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{MTU: 9000})
	cfg := xdp.Config{}
	open := func() error {
		l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", cfg) })
		if err != nil {
			return err
		}
		return l.Close()
	}
	err := open()
	var size *transport.SizeError
	if !errors.Is(err, transport.ErrTooLarge) || !errors.As(err, &size) || size.Size != 9000 {
		t.Fatalf("%v, want ErrTooLarge", err)
	}
	if errors.Is(err, unix.EBADF) {
		t.Errorf("%v: what was not opened is not closed", err)
	}
	if want := fmt.Sprintf("ip link set eth0 mtu %d", size.Max); !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
	if err := bed.Node(0).SetMTU(0, size.Max+1); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("MTU %d: %v", size.Max+1, err)
	}
	if err := bed.Node(0).SetMTU(0, size.Max); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("with the MTU of the error: %v", err)
	}
	cfg.Mode = xdp.ZeroCopy // NICs may have room for less, and would cut frames
	if err := errors.Join(bed.Node(0).SetMTU(0, 3100), bed.Node(1).SetMTU(0, 3100)); err != nil {
		t.Fatal(err) // the driver looks at that of its peer
	}
	err = open()
	if !errors.As(err, &size) || size.Size <= size.Max || !strings.Contains(err.Error(), "zero-copy") {
		t.Fatalf("zero-copy: %v", err)
	}
	if err := bed.Node(0).SetMTU(0, size.Max); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, transport.ErrNotSupported) {
		t.Errorf("zero-copy with the MTU of the error: %v, want that veth has none", err)
	}
}

// An interface has one link: the second Open says who has it.
func TestOpen_Occupied(t *testing.T) {
	bed, a, _ := pair(t, xdp.Config{})
	err := bed.Node(0).Do(func() error { _, err := xdp.Open("eth0", xdp.Config{Mode: xdp.Generic}); return err })
	var occupied *xdp.OccupiedError
	if !errors.As(err, &occupied) || occupied.PID != os.Getpid() || occupied.Program != "rawlane_link" {
		t.Fatalf("%+v: %v", occupied, err)
	}
	want := fmt.Sprintf("process %d (end that one; programs that share an interface all use link ring", os.Getpid())
	if !strings.Contains(err.Error(), want) || !occupied.Ours() {
		t.Errorf("%v, want %q in it", err, want)
	}
	if _, err := testbed.In(bed.Node(0), func() (xdp.Mode, error) { return xdp.Probe("eth0") }); !errors.As(err, &occupied) {
		t.Errorf("Probe: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// envHold has this test binary open a link on an interface and wait for its end.
const envHold = "RAWLANE_XDP_HOLD"

// envLimit has it do so with so many bytes of locked memory, behind a Probe.
const envLimit = "RAWLANE_XDP_LIMIT"

func hold(ifname string) {
	if limit, err := strconv.ParseUint(os.Getenv(envLimit), 10, 64); err == nil {
		err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit})
		_, probed := xdp.Probe(ifname)
		fmt.Println(errors.Join(err, probed))
	}
	l, err := xdp.Open(ifname, xdp.Config{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open", l.Mode())
	select {}
}

// program returns the id of the XDP program on eth0 of a node, or 0.
func program(t *testing.T, n *testbed.Node) (id uint32) {
	t.Helper()
	err := n.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err == nil && l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
			id = max(l.Attrs().Xdp.ProgId, 1)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A process that is killed leaves no program on the interface, and its queue free.
func TestKill_LeavesNothing(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envHold+"=eth0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bed.Node(0).Start(cmd); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "open generic\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	if program(t, bed.Node(0)) == 0 {
		t.Error("no program on the interface while the link is open")
	}
	// This process has the interface of the same number in another namespace.
	other, err := testbed.In(bed.Node(1), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	var occupied *xdp.OccupiedError
	if !errors.As(err, &occupied) || occupied.PID != cmd.Process.Pid {
		t.Errorf("while process %d has it: %v", cmd.Process.Pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if id := program(t, bed.Node(0)); id != 0 {
		t.Errorf("program %d is left on the interface", id)
	}
	l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if id := program(t, bed.Node(0)); id != 0 {
		t.Errorf("program %d is left on the interface after Close", id)
	}
}

// takesTagsOff asks whether an interface of a node takes VLAN tags off.
func takesTagsOff(t *testing.T, n *testbed.Node, ifname string) (on bool) {
	t.Helper()
	err := n.Do(func() error {
		e, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		features, err := e.Features(ifname)
		on = features["rx-vlan-hw-parse"]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// What a NIC takes off of a frame the program would not see: it is told not to while the link is
// open, unless no tags are wanted.
func TestTagsStayInFramesWhileOpen(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	for _, c := range []struct {
		cfg  xdp.Config
		open bool
	}{{xdp.Config{}, false}, {xdp.Config{NoVLANs: true}, true}} {
		if !takesTagsOff(t, bed.Node(0), "eth0") {
			t.Fatal("a veth takes no tags off: nothing to see")
		}
		l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", c.cfg) })
		if err != nil {
			t.Fatal(err)
		}
		if got := takesTagsOff(t, bed.Node(0), "eth0"); got != c.open {
			t.Errorf("%+v: rx-vlan-offload is %t while open, want %t", c.cfg, got, c.open)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if !takesTagsOff(t, bed.Node(0), "eth0") {
		t.Error("rx-vlan-offload stays off after Close")
	}
}

// An interface that has another name by then is left as it was, too.
func TestTagsComeOffAgain_AfterARename(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	err = bed.Node(0).Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetDown(eth0), netlink.LinkSetName(eth0, "lan0"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if takesTagsOff(t, bed.Node(0), "lan0") {
		t.Fatal("rx-vlan-offload is on while open: nothing to see")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if !takesTagsOff(t, bed.Node(0), "lan0") {
		t.Error("rx-vlan-offload stays off after Close")
	}
}

func TestProbe(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	best, err := testbed.In(bed.Node(0), func() (xdp.Mode, error) { return xdp.Probe("eth0") })
	if err != nil || best != xdp.Native && best != xdp.ModeAuto { // an old kernel does not tell
		t.Errorf("veth: %v, %v; want native", best, err)
	}
	if program(t, bed.Node(0)) != 0 {
		t.Error("a program is on the interface")
	}
	_, err = testbed.In(bed.Node(0), func() (xdp.Mode, error) { return xdp.Probe("nonexistent") })
	if !errors.Is(err, transport.ErrNoInterface) || !strings.HasPrefix(err.Error(), "xdp nonexistent: probe: ") {
		t.Errorf("%v", err)
	}
}
