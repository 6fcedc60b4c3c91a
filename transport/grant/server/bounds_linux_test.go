package server

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/grant"
)

// slowNames is a system whose users another host knows, which does not answer before it is told to.
type slowNames struct {
	inNode
	asked  atomic.Int32
	answer chan struct{}
}

func (n *slowNames) name(uint32) string {
	n.asked.Add(1)
	<-n.answer
	return "somebody"
}

// So many names are looked up at once, and no more; who waits for one has got its link before.
func TestNames_LookedUpAtOnce(t *testing.T) {
	const clients = 3 * maxLookups
	bed := testbed.ForTest(t, testbed.Config{})
	sys := &slowNames{inNode: inNode{bed.Node(0)}, answer: make(chan struct{})}
	s := serve(t, sys, allowMe(onAny)+fmt.Sprintf("limit user %d links 1000 memory 1G\n", me))
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			g, err := s.tryAsk(grant.Request{Interface: "eth0"})
			if err != nil {
				t.Error(err)
				return
			}
			_ = g.Close()
		})
	}
	all.Wait() // nobody has a name yet
	logged := func() int { return strings.Count(s.journal.String(), "msg=granted") }
	until(t, "the others in the journal", func() bool { return logged() == clients-maxLookups })
	if asked := sys.asked.Load(); asked != maxLookups {
		t.Errorf("%d look-ups at once, want %d", asked, maxLookups)
	}
	close(sys.answer)
	until(t, "all in the journal", func() bool { return logged() == clients })
	if named := strings.Count(s.journal.String(), "user=somebody"); named != maxLookups {
		t.Errorf("%d named, want %d", named, maxLookups)
	}
}

// A user that opens and closes links for ever does not fill the journal.
func TestJournal_OfManyGrants(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	for range maxGrants {
		g := s.ask(t, grant.Request{Interface: "eth0"})
		_ = g.Close()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	j := s.journal.String()
	if lines := strings.Count(j, "msg=granted") + strings.Count(j, "msg=released"); lines != maxGrants {
		t.Errorf("%d lines of grants and releases, want %d", lines, maxGrants)
	}
	if want := fmt.Sprintf(`msg="more was granted and released" not_logged=%d`, maxGrants); !strings.Contains(j, want) {
		t.Errorf("no %q", want)
	}
}

// The ports of a program that was killed are free before its sockets are closed, which takes its
// time: for the program that is started anew.
func TestPorts_AreFreeAtOnce(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	killed := dial(t, s)
	anew := endpoint(t, openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})))
	for _, r := range []string{
		`{"do":"open","interface":"eth0","ring":true}`, `{"do":"lock","interface":"eth0","cluster":1,"port":1}`,
	} {
		if reply := exchange(t, killed, r); reply == nil || reply.Error != nil {
			t.Fatal(reply)
		}
	}
	for range maxThreads { // as many others open or close sockets
		s.threads <- struct{}{}
	}
	defer func() {
		for range maxThreads {
			<-s.threads
		}
	}()
	_ = killed.Close()
	until(t, "the port free", func() bool {
		p, err := anew.OpenPort(1, mcd.PortOptions{})
		if err == nil {
			_ = p.Close()
		}
		return err == nil
	})
}
