package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
)

// Programs that hang up at any moment leave nothing behind.
func TestHangUp(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+fmt.Sprintf("limit user %d links 500 memory 1G\n", me))
	s.ask(t, grant.Request{Interface: "eth0"}) // the runtime's poller opens what it needs
	until(t, "one link", func() bool { return len(packetSockets()) == 2 })
	before := testbed.Descriptors(t)
	for k := range 200 {
		c := dial(t, s)
		switch k % 4 {
		case 1:
			_, _ = c.Write([]byte(`{"do":"open","interface":"eth0","ring":true,"slots":16}`))
		case 2:
			exchange(t, c, `{"do":"open","interface":"eth0","ring":true,"slots":16}`) // the descriptors are not taken
		case 3:
			exchange(t, c, `{"do":"lock","interface":"eth0","cluster":1,"port":3}`)
			_, _ = c.Write([]byte(`{"do":"open","interface":"eth0","ring":true,"slots":16}`))
		}
		_ = c.Close()
	}
	until(t, "nothing left", func() bool { return s.links(me) == 1 && testbed.Descriptors(t) == before && len(packetSockets()) == 2 })
	if s.users[me].memory != 0 || len(s.locks) != 0 {
		t.Errorf("%d bytes and %d locks are left", s.users[me].memory, len(s.locks))
	}
}

// Requests that are none are refused and end the connection; a second link is refused.
func TestMalformedRequests(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	for _, request := range []string{
		"x", "{}", `{"do":"open"}`, `{"do":"open","interface":"a b"}`, `{"do":"open","interface":"eth0","x":1}`,
		`{"do":"lock","interface":"eth0","port":3}`, `{"do":"open","interface":"eth0"}{}`,
		`{"do":"open","interface":"eth0","ring":true,"slots":1}`, strings.Repeat(" ", protocol.MaxMessage+1),
		`{"do":"open","interface":"eth0","ether_type":65535}`,
	} {
		c := dial(t, s)
		if r := exchange(t, c, request); r == nil || r.Error == nil || r.Error.Cause != protocol.Malformed {
			t.Errorf("%.40q: %+v, want it refused", request, r)
		}
		if r := exchange(t, c, `{"do":"open","interface":"eth0"}`); r != nil {
			t.Errorf("after %.40q the connection goes on: %+v", request, r)
		}
	}
	c := dial(t, s)
	if r := exchange(t, c, `{"do":"open","interface":"eth0"}`); r == nil || r.Open == nil {
		t.Fatalf("%+v", r)
	}
	if r := exchange(t, c, `{"do":"open","interface":"eth0"}`); r == nil || r.Error == nil || r.Error.Cause != protocol.Malformed {
		t.Errorf("a second link: %+v", r)
	}
	if r := exchange(t, c, `{"do":"open","interface":"nonesuch"}`); r == nil || r.Error == nil {
		t.Errorf("a second link: %+v", r)
	}
}

// Any bytes, from many programs at once, leave a service that works and has nothing left of them.
func TestRandomRequests(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	valid := []string{
		`{"do":"open","interface":"eth0","ring":true,"slots":16}`, `{"do":"lock","interface":"eth0","cluster":1,"port":3}`,
		`{"do":"unlock","interface":"eth0","cluster":1,"port":3}`, `{"do":"unlock","interface":"gone","cluster":1,"port":3}`,
	}
	for range 300 {
		c := dial(t, s)
		for range r.IntN(5) {
			b := []byte(valid[r.IntN(len(valid))])
			for range r.IntN(3) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			if exchange(t, c, string(b)) == nil {
				break
			}
		}
		_ = c.Close()
	}
	until(t, "nothing left", func() bool { return s.links(me) == 0 })
	s.ask(t, grant.Request{Interface: "eth0"})
}

// A program that sends descriptors, or never reads, costs the service nothing.
func TestHostileClients(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	before := testbed.Descriptors(t)
	c := dial(t, s)
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		_, _, err := c.WriteMsgUnix([]byte(`{"do":"lock","interface":"eth0","cluster":1,"port":3}`), unix.UnixRights(int(file.Fd())), nil)
		if errors.Is(err, unix.EPERM) { // by the kernel, since Linux 6.16
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	_ = file.Close()
	_ = c.Close()
	until(t, "nothing left", func() bool { return s.links(me) == 0 && testbed.Descriptors(t) <= before })
	deaf := dial(t, s)
	asked := false
	until(t, "the deaf one dropped", func() bool {
		if err := deaf.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := deaf.Write([]byte(`{"do":"lock","interface":"eth0","cluster":1,"port":3}`))
		if errors.Is(err, os.ErrDeadlineExceeded) && !asked { // its replies fill its socket, and the service waits
			s.ask(t, grant.Request{Interface: "eth0"}) // others are served meanwhile
			asked = true
		}
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	})
	until(t, "the deaf one forgotten", func() bool { return s.links(me) == 1 })
}
