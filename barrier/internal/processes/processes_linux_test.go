// Package processes tests barriers between processes in network namespaces: some are killed, some
// stand still.
package processes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

const (
	envNode = "RAWLANE_TEST_BARRIER_NODE" // set in a process that is a node of a test
	nodes   = 5
	timeout = 2 * time.Second // of peers

	made = "has made the group"
)

func TestMain(m *testing.M) {
	if k, err := strconv.Atoi(os.Getenv(envNode)); err == nil {
		if err := node(mcd.NodeID(k)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testbed.Main(m))
}

// node makes the group, and goes through barriers once it is told to, until it is killed. When
// members are down it says which, and goes on without them. It prints what happens to it, and from
// time to time that it goes on.
func node(self mcd.NodeID) error {
	link, err := ring.Open(testbed.Interface(0), ring.Config{})
	if err != nil {
		return err
	}
	cfg := mcd.Config{Node: self}
	for k := range nodes {
		cfg.Nodes = append(cfg.Nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	ep, err := mcd.Open(cfg, link)
	if err != nil {
		return err
	}
	s, err := barrier.Open(ep, barrier.Config{})
	if err != nil {
		return err
	}
	g, err := s.Group(barrier.GroupConfig{PeerTimeout: timeout})
	if err != nil {
		return err
	}
	fmt.Println(made)
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	for round := 1; ; round++ {
		err := g.Barrier(context.Background())
		var down *barrier.NodeDownError
		switch {
		case err == nil && round%20 == 1:
			fmt.Println("goes on with", g.Members())
		case errors.Is(err, barrier.ErrExcluded):
			fmt.Println("excluded")
			return nil
		case errors.As(err, &down):
			fmt.Println("down", down.Nodes)
			if g, err = g.Without(); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		time.Sleep(time.Millisecond) // work
	}
}

// process is one of the nodes, and what it prints.
type process struct {
	*exec.Cmd
	begin io.Writer // whatever is written has it go through barriers
	lines chan string
}

// start starts a process on each node of a bed, and waits until they go through barriers. None
// begins before all have made the group, and answer: one that starts for longer than the timeout
// would be down.
func start(t *testing.T) (all []*process) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: nodes, Bridge: true})
	for k := range nodes {
		p := &process{Cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
		p.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envNode, k))
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		if err == nil {
			p.begin, err = p.StdinPipe()
		}
		if err == nil {
			err = bed.Node(k).Start(p.Cmd)
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(p.lines)
			for in := bufio.NewScanner(out); in.Scan(); {
				p.lines <- in.Text()
			}
		}()
		all = append(all, p)
	}
	for _, p := range all {
		p.says(t, made)
	}
	for _, p := range all {
		if _, err := p.begin.Write([]byte{'\n'}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		p.says(t, "goes on with [0 1 2 3 4]")
	}
	return all
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// forget drops what was printed until now.
func (p *process) forget() {
	for len(p.lines) > 0 {
		<-p.lines
	}
}

// says waits until the process prints a line. Until then it may go on.
func (p *process) says(t *testing.T, want string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line, ok := <-p.lines:
			if line == want {
				return
			}
			if !ok || !strings.HasPrefix(line, "goes on") {
				t.Fatalf("process %d says %q, want %q", p.Process.Pid, line, want)
			}
		case <-limit:
			t.Fatalf("process %d does not say %q", p.Process.Pid, want)
		}
	}
}

// Two of five processes are killed at once. The others name both, and go on. (That they do within
// five timeouts TestSeveralDieAtOnce of package barrier says, in virtual time: here others may have
// the processors.)
func TestTwoOfFiveAreKilled(t *testing.T) {
	all := start(t)
	all[1].signal(t, syscall.SIGKILL)
	all[3].signal(t, syscall.SIGKILL)
	for _, k := range []int{0, 2, 4} {
		all[k].says(t, "down [1 3]")
	}
	for _, k := range []int{0, 2, 4} {
		all[k].says(t, "goes on with [0 2 4]")
	}
}

// A process that stands still for less than the timeout is waited for. One that stands still for
// longer is named, and learns it when it goes on.
func TestOneOfFiveStandsStill(t *testing.T) {
	all := start(t)
	all[3].signal(t, syscall.SIGSTOP)
	<-time.After(timeout / 2) // of real time: other processes run
	for _, p := range all {
		p.forget()
	}
	all[3].signal(t, syscall.SIGCONT)
	for _, p := range all {
		p.says(t, "goes on with [0 1 2 3 4]")
	}
	all[3].signal(t, syscall.SIGSTOP)
	for _, k := range []int{0, 1, 2, 4} {
		all[k].says(t, "down [3]")
	}
	all[3].signal(t, syscall.SIGCONT)
	all[3].says(t, "excluded")
	for _, k := range []int{0, 1, 2, 4} {
		all[k].says(t, "goes on with [0 1 2 4]")
	}
}
