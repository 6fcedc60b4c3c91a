package offload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/ring"
)

const envHold = "RAWLANE_TEST_OFFLOAD_HOLD" // set in a process that holds a unit until it is killed

func TestMain(m *testing.M) {
	if os.Getenv(envHold) != "" {
		u, err := offload.Open(testbed.Interface(0))
		if fmt.Println(err); err != nil {
			os.Exit(1)
		}
		time.Sleep(time.Hour) // "select {}" is a deadlock where nothing else could wake the program
		runtime.KeepAlive(u)
	}
	os.Exit(testbed.Main(m))
}

// needUnits skips the test where programs cannot be loaded into the kernel.
func needUnits(t *testing.T) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error {
		u, err := offload.Open(ifname)
		if err == nil {
			err = u.Close()
		}
		return err
	})
}

// cluster is nodes in namespaces, the first of which has a unit.
type cluster struct {
	bed      *testbed.Bed
	links    []*ring.Link
	eps      []*mcd.Endpoint
	services []*barrier.Service
	unit     *offload.Unit
}

func open(t *testing.T, size int, faults fault.Config) *cluster {
	t.Helper()
	needUnits(t)
	return openIn(t, testbed.ForTest(t, testbed.Config{Nodes: size, Bridge: true}), size, faults)
}

func openIn(t *testing.T, bed *testbed.Bed, size int, faults fault.Config) *cluster {
	t.Helper()
	c := &cluster{bed: bed}
	cfg := mcd.Config{}
	for k := range size {
		cfg.Nodes = append(cfg.Nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for k := range size {
		l, err := testbed.In(c.bed.Node(k), func() (*ring.Link, error) {
			return ring.Open(testbed.Interface(0), ring.Config{})
		})
		must(err)
		c.links = append(c.links, l)
		lossy, err := fault.New(l, rand.New(rand.NewPCG(1, uint64(k))), faults)
		must(err)
		cfg.Node = mcd.NodeID(k)
		ep, err := mcd.Open(cfg, lossy)
		must(err)
		t.Cleanup(func() { _ = ep.Close() })
		own := barrier.Config{}
		if k == 0 {
			u, err := testbed.In(c.bed.Node(0), func() (*offload.Unit, error) { return offload.Open(testbed.Interface(0)) })
			must(err)
			t.Cleanup(func() { _ = u.Close() })
			own.Unit, c.unit = u, u
		}
		s, err := barrier.Open(ep, own)
		must(err)
		c.eps, c.services = append(c.eps, ep), append(c.services, s)
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, s := range c.services {
			closing.Go(func() { _ = s.Close() })
		}
		closing.Wait()
	})
	return c
}

func (c *cluster) groups(t *testing.T, cfg barrier.GroupConfig) (all []*barrier.Group) {
	t.Helper()
	cfg.Algorithm = schedule.Offload()
	for _, s := range c.services {
		g, err := s.Group(cfg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

// each runs f for each group at the same time, and reports its errors.
func each(t *testing.T, all []*barrier.Group, f func(g *barrier.Group) error) {
	t.Helper()
	var running sync.WaitGroup
	for k, g := range all {
		running.Go(func() {
			if err := f(g); err != nil {
				t.Errorf("rank %d: %v", k, err)
			}
		})
	}
	running.Wait()
}

// rounds goes through barriers of which the Center has entered each before the others do, and in
// which it waits after the others have left.
func rounds(t *testing.T, all []*barrier.Group, n int, o barrier.Options) {
	t.Helper()
	for range n {
		ticket, err := all[0].ArriveWith(o)
		if err != nil {
			t.Fatal(err)
		}
		each(t, all[1:], func(g *barrier.Group) error { return g.BarrierWith(t.Context(), o) })
		if err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Arrivals do not reach the Center's process, and the others are released: of two groups, of two
// numbers, and of a mask.
func TestUnit_CountsAndReleases(t *testing.T) {
	const size, n = 4, 200
	c := open(t, size, fault.Config{})
	first, second := c.groups(t, barrier.GroupConfig{}), c.groups(t, barrier.GroupConfig{ID: 1})
	mask := barrier.Options{Members: barrier.MaskOf(0, 1, 3)}
	run := func(n int) {
		var running sync.WaitGroup
		running.Go(func() { rounds(t, first, n, barrier.Options{}) })
		running.Go(func() { rounds(t, first, n, barrier.Options{Number: 255}) })
		running.Go(func() { rounds(t, second, n, barrier.Options{}) })
		running.Go(func() { rounds(t, []*barrier.Group{second[0], second[1], second[3]}, n, mask) })
		running.Wait()
	}
	run(1)
	before := c.eps[0].LinkCounters(0).RxFrames
	run(n)
	const frames = n * (3*(size-1) + 2)
	got := c.eps[0].LinkCounters(0).RxFrames - before
	t.Logf("%d of %d frames reached the Center's process", got, frames)
	if got > frames/4 { // nacks of a busy machine
		t.Errorf("%d of %d frames reached the Center's process", got, frames)
	}
}

// A Center that waits is woken, and lost frames are asked for.
func TestUnit_CenterWaitsAndLoss(t *testing.T) {
	c := open(t, 4, fault.Config{Loss: 0.02, Duplicate: 0.02})
	all := c.groups(t, barrier.GroupConfig{})
	each(t, all, func(g *barrier.Group) error {
		for range 200 {
			if err := g.Barrier(t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
	rounds(t, all, 50, barrier.Options{})
}

// A member that is cut off is named by all others, and these go on with the unit.
func TestUnit_NamesTheDead(t *testing.T) {
	c := open(t, 4, fault.Config{})
	all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
	rounds(t, all, 5, barrier.Options{})
	if err := c.bed.Node(2).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	living := []*barrier.Group{all[0], all[1], all[3]}
	left := make([]*barrier.Group, len(living))
	each(t, living, func(g *barrier.Group) error {
		var down *barrier.NodeDownError
		if err := g.Barrier(t.Context()); !errors.As(err, &down) || !slices.Equal(down.Nodes, []mcd.NodeID{2}) {
			return fmt.Errorf("%w, want node 2 down", err)
		}
		without, err := g.Without()
		left[slices.Index(living, g)] = without
		return err
	})
	if !t.Failed() {
		rounds(t, left, 5, barrier.Options{})
	}
}

// Barriers go on when the unit is closed before their groups.
func TestUnit_ClosedEarly(t *testing.T) {
	c := open(t, 3, fault.Config{})
	all := c.groups(t, barrier.GroupConfig{})
	rounds(t, all, 5, barrier.Options{})
	if err := c.unit.Close(); err != nil {
		t.Fatal(err)
	}
	rounds(t, all, 5, barrier.Options{})
	rounds(t, all, 5, barrier.Options{Number: 1})
}

// An interface has one unit.
func TestUnit_Occupied(t *testing.T) {
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	open := func() (*offload.Unit, error) { return offload.Open(testbed.Interface(0)) }
	u, err := testbed.In(bed.Node(0), open)
	if err != nil {
		t.Fatal(err)
	}
	if u.MAC() != testbed.MAC(0, 0) {
		t.Errorf("MAC %v", u.MAC())
	}
	if _, err := testbed.In(bed.Node(0), open); !errors.Is(err, offload.ErrOccupied) {
		t.Errorf("a second one: %v, want ErrOccupied", err)
	}
	for range 2 {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	if u, err = testbed.In(bed.Node(0), open); err != nil {
		t.Fatal(err)
	}
	_ = u.Close()
	if _, err := offload.Open("no-such-if"); !errors.Is(err, transport.ErrNoInterface) {
		t.Errorf("%v, want ErrNoInterface", err)
	}
}

// A bridge has the address of its port: a unit on that is refused to an endpoint on the bridge, whose
// releases would go out by the port alone.
func TestUnit_OnTheBridgesPort(t *testing.T) {
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	err := bed.Node(0).Do(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		port, err := netlink.LinkByName(testbed.Interface(0))
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetMaster(port, bridge), netlink.LinkSetUp(bridge)); err != nil {
			return err
		}
		l, err := ring.Open("br0", ring.Config{})
		if err != nil {
			return err
		}
		ep, err := mcd.Open(mcd.Config{Nodes: []mcd.Node{{MACs: []transport.MAC{l.MAC()}}}}, l)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		defer ep.Close()
		for ifname, want := range map[string]error{testbed.Interface(0): barrier.ErrUnit, "br0": nil} {
			u, err := offload.Open(ifname)
			if err != nil {
				return err
			}
			if u.MAC() != ep.MAC(0) {
				t.Errorf("%s has %v, and the bridge %v: nothing to see", ifname, u.MAC(), ep.MAC(0))
			}
			s, err := barrier.Open(ep, barrier.Config{Unit: u})
			if !errors.Is(err, want) {
				t.Errorf("a unit on %s: %v, want %v", ifname, err, want)
			}
			if err == nil {
				_ = s.Close()
			}
			if err := u.Close(); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The program runs in the driver where that can run it, and else behind it: so on a veth, whose driver
// needs a program at the other end, too.
func TestUnit_InDriverOrBehind(t *testing.T) {
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	const inDriver, behind = 1, 2 // XDP_ATTACHED_DRV, XDP_ATTACHED_SKB
	for _, c := range []struct {
		name string
		made netlink.Link // nil: the bed's
		want uint32
	}{
		{testbed.Interface(0), nil, behind},
		{"br0", &netlink.Bridge{}, behind},
		{"tap", &netlink.Tuntap{Mode: netlink.TUNTAP_MODE_TAP}, inDriver},
	} {
		mode, err := testbed.In(bed.Node(0), func() (mode uint32, err error) {
			if c.made != nil {
				c.made.Attrs().Name = c.name
				if err := netlink.LinkAdd(c.made); err != nil {
					t.Logf("no %s here: %v", c.name, err) // the kernel lacks it
					return c.want, nil
				}
			}
			u, err := offload.Open(c.name)
			if err != nil {
				return 0, err
			}
			if _, err := offload.Open(c.name); !errors.Is(err, offload.ErrOccupied) {
				t.Errorf("%s: a second one: %v, want ErrOccupied", c.name, err)
			}
			l, err := netlink.LinkByName(c.name)
			if err != nil || l.Attrs().Xdp == nil {
				return 0, errors.Join(err, u.Close())
			}
			return l.Attrs().Xdp.AttachMode, u.Close()
		})
		if err != nil || mode != c.want {
			t.Errorf("%s: attached by %d, %v, want %d", c.name, mode, err, c.want)
		}
	}
}

// The program does not outlive its process.
func TestUnit_EndsWithItsProcess(t *testing.T) {
	needUnits(t)
	bed := testbed.ForTest(t, testbed.Config{})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHold+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = bed.Node(0).Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	var said string
	if _, err := fmt.Fscanln(out, &said); err != nil || said != "<nil>" {
		t.Fatalf("%q, %v", said, err)
	}
	open := func() (*offload.Unit, error) { return offload.Open(testbed.Interface(0)) }
	want := fmt.Sprintf("already, rawlane_barrier, of process %d (end that one)", cmd.Process.Pid)
	if _, err := testbed.In(bed.Node(0), open); !errors.Is(err, offload.ErrOccupied) || !strings.Contains(err.Error(), want) {
		t.Errorf("while it runs: %v, want ErrOccupied, and %q", err, want)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	u, err := testbed.In(bed.Node(0), open)
	for begun := time.Now(); errors.Is(err, offload.ErrOccupied) && time.Since(begun) < time.Minute; {
		u, err = testbed.In(bed.Node(0), open) // the kernel releases it in the background
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = u.Close()
}
