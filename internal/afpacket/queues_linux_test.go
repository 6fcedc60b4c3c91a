package afpacket_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// twoQueues makes a pair of interfaces, out0 and in0, with two queues each way. Each receiving queue
// has a thread of its own, as it has a processor of its own on a real NIC: so frames that take
// different queues overtake each other.
func twoQueues() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "out0", 2, 2
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "in0", PeerNumTxQueues: 2, PeerNumRxQueues: 2}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	tool, err := room.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	for _, name := range []string{"out0", "in0"} {
		// Only so do frames pass through veth's receiving queues.
		err := tool.Change(name, map[string]bool{
			"rx-gro": true, "tx-tcp-segmentation": false, "tx-tcp6-segmentation": false,
			"tx-tcp-ecn-segmentation": false, "tx-tcp-mangleid-segmentation": false,
		})
		if err != nil {
			return err
		}
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return err
		}
	}
	return threaded("in0")
}

// threaded gives each receiving queue of an interface a thread, by a view of /sys of this thread's
// own network namespace.
func threaded(name string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sys")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("sys", dir, "sysfs", 0, ""); err != nil {
		return err
	}
	defer unix.Unmount(dir, 0)
	return os.WriteFile(filepath.Join(dir, "class/net", name, "threaded"), []byte("1"), 0o644)
}

// sendAcrossCPUs sends n numbered frames, and then more of the last one until it is told to stop. It
// changes the processor after each 20, as the scheduler does with a goroutine now and then. With
// trains it sends some frames at a time after each 5.
func sendAcrossCPUs(l transport.Link, dst transport.MAC, n uint32, trains bool, stop <-chan struct{}) error {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	frames := make([]transport.Frame, 4)
	for i := range frames {
		frames[i] = transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: make([]byte, 60)}
	}
	var got [4]transport.Frame
	for seq := uint32(1); ; {
		if seq%20 == 0 || seq == n {
			var cpu unix.CPUSet
			cpu.Set(int(seq/20) % runtime.NumCPU())
			if err := unix.SchedSetaffinity(0, &cpu); err != nil {
				return err
			}
		}
		batch := frames[:1]
		if trains && seq%5 == 0 {
			batch = frames
		}
		for i, f := range batch {
			binary.BigEndian.PutUint32(f.Payload, min(seq+uint32(i), n))
		}
		_, err := l.Send(batch)
		switch {
		case err == nil && seq < n:
			seq = min(seq+uint32(len(batch)), n)
			if trains && seq%50 < 3 { // for the answers to its offers
				if _, err := l.Poll(got[:]); err != nil {
					return err
				}
			}
		case err == nil || errors.Is(err, transport.ErrBusy):
			runtime.Gosched()
		default:
			return err
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// A NIC with several transmit queues keeps the order of a link's frames, whatever processors its
// sender runs on.
func TestSeveralTransmitQueues_KeepTheOrder(t *testing.T) { keepOrderOnTwoQueues(t, false) }

// Frames that go in trains and those that go alone to one station take one queue, too.
func TestSeveralTransmitQueues_KeepTheOrderWithTrains(t *testing.T) { keepOrderOnTwoQueues(t, true) }

func keepOrderOnTwoQueues(t *testing.T, trains bool) {
	if runtime.NumCPU() < 2 {
		t.Skip("one processor: nothing can overtake")
	}
	const frames = 5_000 // more than a third of them come late where the queues differ
	bed := newBed(t)
	var out, in *ring.Link
	err := bed.Node(0).Do(func() (err error) {
		if err := twoQueues(); err != nil {
			return fmt.Errorf("two queues: %w", err)
		}
		if out, err = ring.Open("out0", ring.Config{NoTrains: !trains}); err != nil {
			return err
		}
		in, err = ring.Open("in0", ring.Config{Slots: 1 << 14, NoTrains: !trains})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	if trains {
		testbed.MeetTrains(t, out, in)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- sendAcrossCPUs(out, in.MAC(), frames, trains, stop) }()
	var last uint32
	overtaken, got := 0, make([]transport.Frame, 32)
	for end := time.Now().Add(patience); last < frames; {
		n, err := in.Poll(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range got[:n] {
			seq := binary.BigEndian.Uint32(f.Payload)
			if seq < last && seq > 0 { // 0: meet's
				overtaken++
			}
			last = max(last, seq)
		}
		if n == 0 {
			if time.Now().After(end) {
				t.Errorf("frame %d of %d after %v", last, frames, patience)
				break
			}
			runtime.Gosched()
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if overtaken > 0 {
		t.Errorf("%d of %d frames were overtaken", overtaken, frames)
	}
}
