package afxdp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// veth returns a node, and the interface of it on which a test opens AF_XDP.
func veth(t *testing.T) (*testbed.Node, *afpacket.Interface) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error {
		a, err := open(ifname)
		if err == nil {
			err = a.Close()
		}
		return err
	})
	node := testbed.ForTest(t, testbed.Config{}).Node(0)
	ifi, err := testbed.In(node, func() (*afpacket.Interface, error) { return afpacket.FindInterface("eth0") })
	if err != nil {
		t.Fatal(err)
	}
	return node, ifi
}

func open(ifname string) (*Attachment, error) {
	ifi, err := afpacket.FindInterface(ifname)
	if err != nil {
		return nil, err
	}
	chunk, err := ChunkFor(ifi, xsk.ModeAuto)
	if err != nil {
		return nil, err
	}
	return Open(ifi, chunk, Config{EtherType: transport.EtherTypeDefault, MAC: ifi.MAC, Slots: 64})
}

// A driver's mode is that of the interface that was asked for, where the kernel tells at all.
func TestDriverMode_OfAnInterface(t *testing.T) {
	node, ifi := veth(t)
	err := node.Do(func() error {
		want := xsk.Native // veth runs programs, and knows no zero-copy
		if _, err := netlink.GenlFamilyGet("netdev"); err != nil {
			want = xsk.ModeAuto // a kernel that does not tell
		}
		if known := DriverMode(ifi.Index); known != want {
			t.Errorf("veth: %v, want %v", known, want)
		}
		if none := DriverMode(1 << 30); none != xsk.ModeAuto {
			t.Errorf("no interface: %v", none)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A NIC of which no setting was changed is asked nothing, not even by which name.
func TestRestore_Unchanged(t *testing.T) {
	unchanged := nic{socket: -1, index: 1, ifname: "before"}
	if err := unchanged.restore(); err != nil || unchanged.ifname != "before" {
		t.Errorf("%q, %v", unchanged.ifname, err)
	}
}

// An attachment is closed in steps, and the next one may begin between any two of them: the NIC leaves
// tags in the frames as long as that one is open, and takes them off again behind it.
func TestDetach_ChangesNothingOfTheNextOne(t *testing.T) {
	node, ifi := veth(t)
	takesTagsOff := func() bool {
		n := new(nic)
		if err := n.open(ifi.Index, ifi.Name); err != nil {
			t.Error(err)
			return false
		}
		features, err := n.features()
		if err := errors.Join(err, n.close()); err != nil {
			t.Error(err)
		}
		return features[stripping[0]]
	}
	err := node.Do(func() error {
		if !takesTagsOff() {
			return errors.New("a veth takes no tags off: nothing to see")
		}
		a, err := open(ifi.Name)
		if err != nil {
			return err
		}
		if err := errors.Join(a.CloseSockets(), a.Detach()); err != nil {
			t.Error(err)
		}
		b, err := open(ifi.Name)
		if err != nil {
			return err
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if takesTagsOff() {
			t.Error("the NIC takes tags off while the second one is open")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if !takesTagsOff() {
			t.Error("the NIC leaves tags in the frames after both")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Who closes looks for the carrier of the interface that there is, and not of one by the name that it
// had: without a carrier, as while it is down, nobody waits for one.
func TestDetach_AfterARename(t *testing.T) {
	node, ifi := veth(t)
	a, err := testbed.In(node, func() (*Attachment, error) { return open(ifi.Name) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !a.plugged {
		t.Fatal("no carrier before: nothing to see")
	}
	err = node.Do(func() error {
		l, err := netlink.LinkByName(ifi.Name)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, "lan0"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Detach(); err != nil || a.plugged {
		t.Errorf("%v; has a carrier: %t, and Close waits for it", err, a.plugged)
	}
}

// A NIC whose interface is renamed before its tags are kept leaves them in the frames all the same,
// and takes them off again behind that.
func TestKeepTags_AfterARename(t *testing.T) {
	node, ifi := veth(t)
	err := node.Do(func() error {
		n := new(nic)
		if err := n.open(ifi.Index, ifi.Name); err != nil {
			return err
		}
		defer n.close()
		l, err := netlink.LinkByName(ifi.Name)
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, "lan0")); err != nil {
			return err
		}
		for _, step := range []struct {
			do   func() error
			want bool
		}{{n.keepTags, false}, {n.restore, true}} {
			if err := step.do(); err != nil {
				return err
			}
			if features, err := n.features(); err != nil || features[stripping[0]] != step.want {
				t.Errorf("takes tags off: %t, %v, want %t", features[stripping[0]], err, step.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The kernel's answer says which mode the driver has.
func TestModeOf(t *testing.T) {
	for features, want := range map[uint64]xsk.Mode{
		0: xsk.Generic, 1: xsk.Generic, 2: xsk.Generic, 3: xsk.Native, 7: xsk.Native, 8: xsk.Generic, 11: xsk.ZeroCopy, 0x7f: xsk.ZeroCopy,
	} {
		if got := modeOf(features); got != want {
			t.Errorf("%#x: %v, want %v", features, got, want)
		}
	}
}

// Netlink's attributes come apart, whatever stands in them.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte{8, 0, 4, 0, 1, 2, 3, 4, 6, 0, 5, 0x80, 9, 9, 0, 0, 4, 0, 7, 0})
	f.Add([]byte{3, 0, 1, 0})
	f.Add([]byte{9, 0, 1, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		all := attributes(b)
		size := 0
		for kind, value := range all {
			size += len(value)
			if kind > attributeType {
				t.Errorf("type %#x", kind)
			}
		}
		if size > len(b) {
			t.Errorf("%d bytes of %d", size, len(b))
		}
		_, _ = programID(b)
	})
}

// The process that holds a program is told from those that hold others, and other links.
func TestIsLinkOf(t *testing.T) {
	const info = "pos:\t0\nflags:\t02000002\nlink_type:\txdp\nlink_id:\t7\nprog_tag:\tab\nprog_id:\t42\nifindex:\t2\n"
	for _, c := range []struct {
		name, info string
		program    uint32
		want       bool
	}{
		{"it", info, 42, true},
		{"another program", info, 2, false},
		{"no program", "link_type:\txdp\nifindex:\t2\n", 0, false},
		{"another kind of link", strings.Replace(info, "xdp", "tcx", 1), 42, false},
		{"a file", "pos:\t0\nflags:\t02\n", 42, false},
	} {
		if got := isLinkOf(c.info, c.program); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// The program's id comes with ip's word for how it is attached.
func TestProgramID(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want uint32
		how  string
	}{
		{"none", nil, 0, ""},
		{"attached, without an id", []byte{5, 0, 2, 0, 1, 0, 0, 0}, 0, ""},
		{"in the driver", []byte{5, 0, 2, 0, 1, 0, 0, 0, 8, 0, 5, 0, 7, 0, 0, 0}, 7, "xdpdrv"},
		{"generic", []byte{8, 0, 6, 0, 9, 0, 0, 0}, 9, "xdpgeneric"},
		{"in one way", []byte{8, 0, 4, 0, 3, 0, 0, 0}, 3, ""},
		{"both", []byte{8, 0, 4, 0, 3, 0, 0, 0, 8, 0, 6, 0, 3, 0, 0, 0}, 3, "xdpgeneric"},
		{"in the NIC", []byte{8, 0, 7, 0, 4, 0, 0, 0}, 4, "xdpoffload"},
		{"too short", []byte{6, 0, 4, 0, 3, 0, 0, 0}, 0, ""},
		{"cut off", []byte{8, 0, 4, 0, 3, 0}, 0, ""},
	} {
		if got, how := programID(c.b); got != c.want || how != c.how {
			t.Errorf("%s: %d, %q, want %d, %q", c.name, got, how, c.want, c.how)
		}
	}
}
