package start

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/udp"
)

const envProgram = "RAWLANE_TEST_PROGRAM" // set: this process is a program that starts a node

func TestMain(m *testing.M) {
	switch os.Getenv(envProgram) {
	case "":
		os.Exit(testbed.Main(m))
	case "exchange":
		Main(Config{Limit: time.Minute}, exchange)
	case "impatient":
		Main(Config{JoinTimeout: time.Second / 2}, exchange)
	case "fail":
		Main(Config{Limit: time.Hour}, func(ctx context.Context, n *Node) error {
			if n.Node() == 1 {
				return errors.New("node 1 fails")
			}
			<-ctx.Done()
			return nil
		})
	case "wait":
		Main(Config{Nodes: 2, Exact: true, Limit: time.Minute}, func(ctx context.Context, n *Node) error {
			fmt.Println("here")
			<-ctx.Done()
			return fmt.Errorf("node %d waits: %w", n.Node(), ctx.Err())
		})
	case "panic":
		Main(Config{Limit: time.Hour}, func(_ context.Context, n *Node) error {
			if n.Node() == 1 {
				panic("node 1 panics")
			}
			return nil
		})
	default:
		Main(Config{Nodes: 2, Exact: true, Limit: time.Minute}, greet)
	}
}

// exchange is a program: each node says which numbers it has got from all.
func exchange(ctx context.Context, n *Node) error {
	all, err := n.Exchange(ctx, fmt.Append(nil, n.Node()))
	fmt.Printf("node %d of %d by %s: %s\n", n.Node(), n.Size(), n.Job().Launcher, bytes.Join(all, []byte(" ")))
	return err
}

// greet is a program: node 0 greets until node 1 answers. Each says its address.
func greet(ctx context.Context, e *Node) error {
	p, err := e.OpenPort(1, mcd.PortOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("node %d is %v\n", e.Node(), e.MAC(0))
	buf := make([]byte, e.MaxPayload())
	if e.Node() == 1 {
		_, from, err := p.Recv(ctx, buf)
		if err != nil {
			return err
		}
		return p.Send(ctx, from, []byte("hello, node 0"))
	}
	for {
		if err := p.Send(ctx, mcd.Addr{Node: 1, Port: 1}, []byte("hello, node 1")); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		n, _, err := p.Recv(patience, buf)
		cancel()
		if err == nil {
			fmt.Printf("%s\n", buf[:n])
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// asNobody is that program, as a user without any right runs it on one of two nodes.
func asNobody(program string, node int, link string) *exec.Cmd {
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), envProgram+"=1", EnvNode+"="+strconv.Itoa(node), EnvNodes+"=2",
		EnvInterfaces+"="+testbed.Interface(0), EnvLink+"="+link, "RAWLANE_GRANT=/nowhere")
	cmd.SysProcAttr = testbed.AsNobody()
	return cmd
}

// Where raw sockets are refused, a program runs over UDP, and says so in one line.
func TestMain_WithoutRawSockets(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 2})
	testbed.NeedNobody(t)
	program := testbed.ProgramForNobody(t, "program")
	var cmds [2]*exec.Cmd
	var out, said [2]bytes.Buffer
	for node := range cmds {
		cmds[node] = asNobody(program, node, "")
		cmds[node].Stdout, cmds[node].Stderr = &out[node], &said[node]
		if err := bed.Node(node).Start(cmds[node]); err != nil {
			t.Fatal(err)
		}
	}
	for node, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("node %d: %v: %s%s", node, err, &out[node], &said[node])
		}
		line, more, _ := strings.Cut(strings.TrimSpace(said[node].String()), "\n") // a slow one waits, too
		if want := "no raw sockets here: a udp link instead ("; !strings.Contains(line, want) ||
			!strings.Contains(line, "CAP_NET_RAW") || more != "" && !strings.Contains(more, "waits for the others") {
			t.Errorf("node %d said %q, want one line: %s", node, &said[node], want)
		}
		want := fmt.Sprintf("node %d is %v\n", node, udp.StationMAC(testbed.IP(node, 0).String()))
		if !strings.HasPrefix(out[node].String(), want) {
			t.Errorf("node %d printed %q, want %q: an address of a UDP link", node, &out[node], want)
		}
	}
	if !strings.HasSuffix(out[0].String(), "hello, node 0\n") {
		t.Errorf("node 0 printed %q", &out[0])
	}
}

// Whoever asks for a link gets that one, or the reason why not.
func TestMain_RefusedRing(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{Nodes: 2})
	testbed.NeedNobody(t)
	cmd := asNobody(testbed.ProgramForNobody(t, "program"), 0, "ring")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := bed.Node(0).Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), "CAP_NET_RAW") || strings.Contains(said.String(), "udp") {
		t.Errorf("%v: %s", err, &said)
	}
}

// A program that is interrupted says so, and what it did.
func TestMain_Interrupted(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), envProgram+"=wait")
	var says bytes.Buffer
	program.Stderr = &says
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 2 {
		lines.Scan() // "here", of each node
	}
	_ = program.Process.Signal(syscall.SIGINT)
	for lines.Scan() { // what it says until its end
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	if err := program.Wait(); testbed.ExitStatus(err) != 1 {
		t.Errorf("it ends with %v", err)
	}
	if text := says.String(); !strings.Contains(text, "interrupt signal received: ") || !strings.Contains(text, " waits: ") {
		t.Errorf("it says %q", text)
	}
}
