// Package testbed makes clusters of network namespaces: one node per namespace, joined by a veth
// pair or a Linux bridge.
//
//	node 0          node 1              node 0   node 1   node 2
//	eth0 ============ eth0               eth0     eth0     eth0
//	  a pair, for two nodes                ‖        ‖        ‖
//	                                      port0 = bridge = port2
//
// Nothing is named or mounted, and nothing lives outside the process. Each namespace is held by a
// thread of the process, so the kernel removes everything when the process ends, however it ends,
// and beds never collide.
//
// An ordinary user gets a bed inside a user namespace: see Main and Reexec.
package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// Config of a bed. The zero value is two nodes joined by a veth pair.
type Config struct {
	Nodes  int  // 0: two
	NICs   int  // of each node, each on a network of its own. 0: one
	MTU    int  // 0: 1500
	Bridge bool // join even two nodes by a bridge; more than two always are
}

// Limits of Config: what fits the addresses, and a machine.
const (
	MaxNodes = 250
	MaxNICs  = 8
)

func (c *Config) setDefaults() {
	if c.Nodes == 0 {
		c.Nodes = 2
	}
	if c.NICs == 0 {
		c.NICs = 1
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	c.Bridge = c.Bridge || c.Nodes != 2
}

func (c *Config) validate() error {
	if c.Nodes < 1 || c.Nodes > MaxNodes {
		return fmt.Errorf("testbed: %d nodes (want 1 to %d)", c.Nodes, MaxNodes)
	}
	if c.NICs < 1 || c.NICs > MaxNICs {
		return fmt.Errorf("testbed: %d NICs a node (want 1 to %d)", c.NICs, MaxNICs)
	}
	if c.MTU < 68 || c.MTU > 65535 {
		return fmt.Errorf("testbed: MTU %d (want 68 to 65535)", c.MTU)
	}
	return nil
}

// Interface returns the name of a node's NIC: eth0, eth1 and so on.
func Interface(nic int) string { return fmt.Sprintf("eth%d", nic) }

// MAC returns the address of a node's NIC: 02:00:00:0<nic>:00:<node+1>.
func MAC(node, nic int) transport.MAC {
	return transport.MAC{0x02, 0, 0, byte(nic), byte((node + 1) >> 8), byte(node + 1)}
}

// IP returns the IPv4 address of a node's NIC: 10.77.<nic>.<node+1>, in a network of 24 bits.
func IP(node, nic int) net.IP { return net.IPv4(10, 77, byte(nic), byte(node+1)).To4() }

// ForTest makes a bed for as long as the test. It skips the test where beds are not available (see
// Need).
func ForTest(t testing.TB, cfg Config) *Bed {
	t.Helper()
	Need(t)
	bed, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bed.Close() })
	return bed
}

// In is Node.Do for what returns a value: a link, a socket.
func In[T any](n *Node, f func() (T, error)) (v T, err error) {
	err = n.Do(func() (err error) { v, err = f(); return err })
	return v, err
}

// OpenPair opens a link on eth0 of nodes 0 and 1, for as long as the test.
func OpenPair[L transport.Link](t testing.TB, bed *Bed, open func(ifname string) (L, error)) (a, b L) {
	t.Helper()
	var links [2]L
	for k := range links {
		l, err := In(bed.Node(k), func() (L, error) { return open(Interface(0)) })
		if err != nil {
			t.Fatal(err)
		}
		links[k] = l
		t.Cleanup(func() {
			if err := links[k].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return links[0], links[1]
}

// MeetTrains has a link that sends trains learn that another one receives them, untagged ones and
// those with some tags. Both have nothing to poll then.
func MeetTrains(t testing.TB, from, to transport.Link, tags ...transport.OptionalTag) {
	t.Helper()
	const patience = 20 * time.Second
	trains, ok := transport.As[transport.Trainer](from)
	if !ok {
		t.Fatalf("%T sends no trains", from)
	}
	in := make([]transport.Frame, 16)
	poll := func(l transport.Link) int {
		n, err := l.Poll(in)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	missing := 0 // frames that were sent and have not come
	for _, tag := range append(tags, transport.OptionalTag{}) {
		f := transport.Frame{
			Dst: to.MAC(), EtherType: transport.EtherTypeDefault, OptionalTag: tag, Payload: make([]byte, 64),
		}
		before, _ := trains.Trains()
		for end := time.Now().Add(patience); ; {
			n, err := from.Send([]transport.Frame{f, f, f, f})
			if err != nil && !errors.Is(err, transport.ErrBusy) {
				t.Fatal(err)
			}
			for missing += n; missing > 0; missing -= poll(to) { // the kernel may hand them on later
				if time.Now().After(end) {
					t.Fatalf("%d frames of %v do not arrive", missing, tag)
				}
			}
			if sent, _ := trains.Trains(); sent > before {
				break
			}
			poll(from)
			if time.Now().After(end) {
				t.Fatalf("%v takes no trains of %v", to.MAC(), tag)
			}
		}
	}
	for _, l := range []transport.Link{from, to} {
		for poll(l) > 0 {
		}
	}
}

// Receive polls and waits until n frames came, and returns them with payloads copied.
func Receive(t testing.TB, l transport.Link, n int) (got []transport.Frame) {
	t.Helper()
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	frames := make([]transport.Frame, 16)
	for len(got) < n {
		k, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:k] {
			f.Payload = bytes.Clone(f.Payload)
			got = append(got, f)
		}
		if k == 0 {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("after %d frames of %d: %v", len(got), n, err)
			}
		}
	}
	return got
}
