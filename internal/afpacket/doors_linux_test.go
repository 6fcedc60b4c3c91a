package afpacket_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

// patience is how long what must happen may take.
const patience = 20 * time.Second

// settings are what both links can be told.
type settings struct {
	etherType   transport.EtherType
	promiscuous bool
	small       bool // room for few received frames
}

// doors are the two links that share this package. What is promised of both is tested once.
var doors = []struct {
	name string
	open func(ifname string, s settings) (transport.Link, error)
}{
	{"ring", func(ifname string, s settings) (transport.Link, error) {
		cfg := ring.Config{EtherType: s.etherType, Promiscuous: s.promiscuous}
		if s.small {
			cfg.Slots = 32
		}
		l, err := ring.Open(ifname, cfg)
		if err != nil {
			return nil, err // and not a nil *Link
		}
		return l, nil
	}},
	{"packet", func(ifname string, s settings) (transport.Link, error) {
		cfg := packet.Config{EtherType: s.etherType, Promiscuous: s.promiscuous}
		if s.small {
			cfg.ReceiveBuffer = 1 << 15
		}
		l, err := packet.Open(ifname, cfg)
		if err != nil {
			return nil, err
		}
		return l, nil
	}},
}

// eachDoor runs a test for both links, on a pair of namespaces.
func eachDoor(t *testing.T, test func(t *testing.T, bed *testbed.Bed, open func(node int, s settings) transport.Link)) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			testbed.Need(t)
			bed, err := testbed.New(testbed.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = bed.Close() })
			test(t, bed, func(node int, s settings) (l transport.Link) {
				t.Helper()
				if err := bed.Node(node).Do(func() (err error) { l, err = d.open("eth0", s); return err }); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				return l
			})
		})
	}
}

func TestNoSuchInterface(t *testing.T) {
	for _, d := range doors {
		_, err := d.open("nonexistent", settings{})
		if !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), d.name+" nonexistent: open: no such interface (there are: ") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

func TestInterfaceIsDown(t *testing.T) {
	for _, d := range doors {
		testbed.Need(t)
		bed, err := testbed.New(testbed.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer bed.Close()
		if err := bed.Node(0).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		err = bed.Node(0).Do(func() error { _, err := d.open("eth0", settings{}); return err })
		if !errors.Is(err, transport.ErrInterfaceDown) || !strings.Contains(err.Error(), "ip link set eth0 up") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// Without CAP_NET_RAW the error names it, and the ways to get it; nothing stays open.
func TestNoPrivilege(t *testing.T) {
	for _, d := range doors {
		testbed.Need(t)
		bed, err := testbed.New(testbed.Config{})
		if err != nil {
			t.Fatal(err)
		}
		err = bed.Node(0).Do(func() error { // the thread is the node's, and ends with it
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			if err := unix.Capset(&head, &none[0]); err != nil {
				return err
			}
			_, err := d.open("eth0", settings{})
			return err
		})
		if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "needs CAP_NET_RAW") || !strings.Contains(err.Error(), "setcap") {
			t.Errorf("%s: %v", d.name, err)
		}
		_ = bed.Close()
	}
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestNoDescriptorLeaks(t *testing.T) {
	for _, d := range doors {
		testbed.Need(t)
		bed, err := testbed.New(testbed.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer bed.Close()
		round := func() {
			err := bed.Node(0).Do(func() error {
				l, err := d.open("eth0", settings{promiscuous: true})
				if err != nil {
					return err
				}
				_, missing := d.open("nonexistent", settings{})
				if missing == nil {
					return errors.New("opened an interface that is not there")
				}
				return l.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		round() // the runtime's poller opens what it needs
		before := descriptors(t)
		for range 20 {
			round()
		}
		if after := descriptors(t); after > before {
			t.Errorf("%s: %d descriptors before, %d after", d.name, before, after)
		}
	}
}

// receive polls and waits until n frames came, and returns them with payloads copied.
func receive(t *testing.T, l transport.Link, n int) (got []transport.Frame) {
	t.Helper()
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

func send(t *testing.T, l transport.Link, frames ...transport.Frame) {
	t.Helper()
	if n, err := l.Send(frames); err != nil {
		t.Fatalf("sent %d: %v", n, err)
	}
}

// raw sends bytes as they are from a node's interface.
func raw(t *testing.T, bed *testbed.Bed, node int, frame []byte) {
	t.Helper()
	err := bed.Node(node).Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Of stacked tags the outer one is the frame's. A link for our EtherType does not see such frames, as ours
// stands behind the second tag; one for any EtherType does.
func TestStackedTags(t *testing.T) {
	eachDoor(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		ours, all := open(1, settings{}), open(1, settings{etherType: transport.EtherTypeAny})
		head := append(append([]byte{}, testbed.MAC(1, 0).HardwareAddr()...), testbed.MAC(0, 0).HardwareAddr()...)
		double := append(append([]byte{}, head...), 0x88, 0xa8, 0x20, 200, 0x81, 0x00, 0x00, 100, 0x88, 0xb5)
		raw(t, bed, 0, append(double, make([]byte, 60)...))
		f := receive(t, all, 1)[0]
		if !f.Tagged || f.Tag != (transport.Tag{VID: 200, PCP: 1}) || f.EtherType != transport.EtherTypeVLAN || !bytes.HasPrefix(f.Payload, []byte{0, 100, 0x88, 0xb5}) {
			t.Errorf("%+v", f)
		}
		if l, ok := all.(*ring.Link); ok && l.TPID(0) != 0x88a8 {
			// TPID speaks of the last Poll, which receive ends with.
			t.Errorf("TPID %#x, want 0x88a8", l.TPID(0))
		}
		raw(t, bed, 0, append(append(append([]byte{}, head...), 0x88, 0xa8, 0x60, 7, 0x88, 0xb5), make([]byte, 60)...))
		if f := receive(t, ours, 1)[0]; !f.Tagged || f.Tag != (transport.Tag{VID: 7, PCP: 3}) || f.EtherType != transport.EtherTypeDefault {
			t.Errorf("802.1ad: %+v", f)
		}
	})
}

// What finds no room is counted, and what is received is received once and in order.
func TestOverflow(t *testing.T) {
	eachDoor(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{small: true})
		const total = 20_000
		for i := range total {
			payload := make([]byte, 60)
			binary.BigEndian.PutUint32(payload, uint32(i))
			send(t, a, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: payload})
		}
		frames := make([]transport.Frame, 16)
		last, received := -1, 0
		for {
			n, err := b.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break // all of it went through before Send returned: the pair has no queue
			}
			for _, f := range frames[:n] {
				number := int(binary.BigEndian.Uint32(f.Payload))
				if number <= last {
					t.Fatalf("frame %d after %d", number, last)
				}
				last = number
				received++
			}
		}
		c := b.Counters()
		if received == 0 || c.RxDropped == 0 || uint64(received) != c.RxFrames || c.RxFrames+c.RxDropped != total {
			t.Errorf("%d sent, %d received, %+v", total, received, c)
		}
	})
}

// TCP on the same interfaces is not disturbed, nor does it disturb.
func TestTCPIsUndisturbed(t *testing.T) {
	eachDoor(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{promiscuous: true}), open(1, settings{promiscuous: true})
		var listener net.Listener
		var client net.Conn
		address := net.JoinHostPort(testbed.IP(1, 0).String(), "7000")
		err := bed.Node(1).Do(func() (err error) { listener, err = net.Listen("tcp", address); return err })
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		got := make(chan []byte, 1)
		go func() {
			c, err := listener.Accept()
			if err != nil {
				got <- nil
				return
			}
			b, _ := io.ReadAll(c)
			got <- b
		}()
		if err := bed.Node(0).Do(func() (err error) { client, err = net.Dial("tcp", address); return err }); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = client.Write(data); _ = client.Close() }()
		for i := range 2000 {
			send(t, a, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1000)})
			if f := receive(t, b, 1)[0]; len(f.Payload) != 1000 || f.EtherType != transport.EtherTypeDefault {
				t.Fatalf("frame %d: %d bytes of %#x", i, len(f.Payload), f.EtherType)
			}
		}
		select {
		case b := <-got:
			if !bytes.Equal(b, data) {
				t.Errorf("%d bytes came, and differ", len(b))
			}
		case <-time.After(patience):
			t.Error("the transfer does not end")
		}
	})
}

// An interface that goes down ends waits and sends with an error that says so; up again, the link works on.
func TestInterfaceGoesDownAndComesBack(t *testing.T) {
	eachDoor(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{})
		waited := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for {
				err := b.Wait(ctx)
				if err == nil {
					_, err = b.Poll(make([]transport.Frame, 1))
				}
				if err != nil {
					waited <- err
					return
				}
			}
		}()
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("Wait: %v", err)
		}
		frame := transport.Frame{Dst: a.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
		if _, err := b.Send([]transport.Frame{frame}); !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("Send: %v", err)
		}
		if err := bed.Node(1).SetUp(0, true); err != nil {
			t.Fatal(err)
		}
		// The kernel needs a moment to start the queues: send until it arrives.
		frame.Dst = b.MAC()
		arrived := make(chan struct{})
		go func() {
			for {
				_, _ = a.Send([]transport.Frame{frame}) // until it gets through
				select {
				case <-arrived:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		defer close(arrived)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			n, err := b.Poll(make([]transport.Frame, 1))
			if n == 1 && err == nil {
				break
			}
			if err := b.Wait(ctx); err != nil && ctx.Err() != nil {
				t.Fatal("nothing arrives after the interface has come back")
			}
		}
	})
}

// What a link changes on the interface ends with it.
func TestInterfaceIsLeftAsItWas(t *testing.T) {
	eachDoor(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		state := func() (s string) {
			err := bed.Node(0).Do(func() error {
				l, err := netlink.LinkByName("eth0")
				if err != nil {
					return err
				}
				s = fmt.Sprintf("promiscuous %d, allmulti %d", l.Attrs().Promisc, l.Attrs().Allmulti)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := state()
		l := open(0, settings{promiscuous: true})
		if state() == before {
			t.Fatalf("open, and still %s: the test would see nothing", before)
		}
		if err := transport.Join(l, transport.MAC{3, 0, 0, 0, 0, 1}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if after := state(); after != before {
			t.Errorf("%s before, %s after", before, after)
		}
	})
}

// Close may come at any time; whatever is in progress ends with ErrClosed.
func TestCloseAtAnyTime(t *testing.T) {
	eachDoor(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		for range 10 {
			a, b := open(0, settings{}), open(1, settings{})
			ended := make(chan error, 3)
			frame := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
			go func() {
				for {
					if _, err := a.Send([]transport.Frame{frame, frame}); err != nil && !errors.Is(err, transport.ErrBusy) {
						ended <- err
						return
					}
				}
			}()
			go func() {
				frames := make([]transport.Frame, 4)
				for {
					if _, err := b.Poll(frames); err != nil {
						ended <- err
						return
					}
				}
			}()
			go func() {
				for {
					if err := b.Wait(context.Background()); err != nil {
						ended <- err
						return
					}
				}
			}()
			for range 100 {
				runtime.Gosched()
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := <-ended; !errors.Is(err, transport.ErrClosed) {
					t.Errorf("%v", err)
				}
			}
		}
	})
}
