package grant_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant"
)

// memory returns a file of memory, for as long as the test.
func memory(t *testing.T, size int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("frames", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	return fd
}

// A service that sends something else for link xdp than the sockets that it speaks of, with their
// memory, gets no link, and leaves no descriptor behind.
func TestOpenXDPRefusesImpostors(t *testing.T) {
	socket := func(domain, kind int) int {
		fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAFNOSUPPORT) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	monitor, xsk := socket(unix.AF_PACKET, unix.SOCK_RAW), socket(unix.AF_XDP, unix.SOCK_RAW)
	cooked := socket(unix.AF_PACKET, unix.SOCK_DGRAM)
	link := memory(t, 0) // may be anything
	const first, second = (64 + 512) * 2048, 64 * 2048
	one, other := sealed(t, first), sealed(t, second)
	good := []int{monitor, link, xsk, one}
	const opened = `"interface":"eth0","index":3,"mac":"02:00:00:00:00:01","ether_type":34997,"tx_queues":1`
	text := func(more string, mtu, chunk, slots, queues int) string {
		return fmt.Sprintf(`{"open":{%s%s,"mtu":%d,"xdp":{"mode":"generic","chunk":%d,"slots":%d,"queues":%d}}}`,
			opened, more, mtu, chunk, slots, queues)
	}
	for _, c := range []struct {
		name, text string
		fds        []int
		want       string // "": it is taken
	}{
		{"one queue", text("", 1500, 2048, 64, 1), good, ""},
		{"two queues", text("", 1500, 2048, 64, 2), append(good, xsk, other), ""},
		{"no xdp", `{"open":{` + opened + `,"mtu":1500}}`, []int{monitor, monitor}, "answered something else"},
		{"another mode", strings.Replace(text("", 1500, 2048, 64, 1), "generic", "fast", 1), good, "answered something else"},
		{"with a ring", text(`,"slots":64,"slot_size":2048`, 1500, 2048, 64, 1), good, "answered something else"},
		{"no queue", text("", 1500, 2048, 64, 0), good[:2], "answered something else"},
		{"fewer queues", text("", 1500, 2048, 64, 2), good, "answered something else (4 descriptors"},
		{"queues below none", text("", 1500, 2048, 64, -1), nil, "answered something else"},
		{"too many queues", text("", 1500, 2048, 64, 65), good, "answered something else"},
		{"chunks of no frame", text("", 1500, 0, 64, 1), good, "answered something else"},
		{"chunks that are too small", text("", 2000, 2048, 64, 1), good, "answered something else"},
		{"an MTU beyond a page", text("", 9000, 16384, 64, 1), good, "answered something else"},
		{"an MTU beyond all numbers", text("", math.MaxInt, 2048, 64, 1), good, "answered something else"},
		{"no slots", text("", 1500, 2048, 0, 1), good, "answered something else"},
		{"slots of no power of two", text("", 1500, 2048, 65, 1), good, "answered something else"},
		{"too many slots", text("", 1500, 2048, 1<<17, 1), good, "answered something else"},
		{"no packet socket", text("", 1500, 2048, 64, 1), []int{link, link, xsk, one}, "is no packet socket"},
		{"a packet socket without headers", text("", 1500, 2048, 64, 1), []int{cooked, link, xsk, one}, "no packet socket of type SOCK_RAW"},
		{"a packet socket for a queue", text("", 1500, 2048, 64, 1), []int{monitor, link, monitor, one}, "no socket of AF_XDP for queue 0"},
		{"a file for the second queue", text("", 1500, 2048, 64, 2), append(good, one, other), "no socket of AF_XDP for queue 1"},
		{"memory of another size", text("", 1500, 2048, 64, 1), []int{monitor, link, xsk, other}, "no memory of 1179648 bytes for queue 0"},
		{"memory that may shrink", text("", 1500, 2048, 64, 1), []int{monitor, link, xsk, memory(t, first)}, "no memory of 1179648 bytes"},
		{"a socket as memory", text("", 1500, 2048, 64, 1), []int{monitor, link, xsk, xsk}, "no memory of 1179648 bytes"},
	} {
		at := impostor(t, reply(c.text, c.fds...))
		before := testbed.Descriptors(t)
		err := ask(t, at, grant.Request{Interface: "eth0", XDP: true})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		for start := time.Now(); testbed.Descriptors(t) > before; time.Sleep(time.Millisecond) { // the impostor hangs up, too
			if time.Since(start) > patience {
				t.Fatalf("%s: %d descriptors are left", c.name, testbed.Descriptors(t)-before)
			}
		}
	}
	if err := open(t, impostor(t, reply(text("", 1500, 2048, 64, 1), good...))); err == nil || !strings.Contains(err.Error(), "answered something else") {
		t.Errorf("xdp, which was not asked for: %v", err)
	}
}

// sealed returns a file of memory that keeps its size.
func sealed(t *testing.T, size int64) int {
	t.Helper()
	fd := memory(t, size)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	return fd
}
