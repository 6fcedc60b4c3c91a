//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// endPrefix begins the first argument of this program when it is one end of a variant.
const endPrefix = "end-"

// The body of a session's request for one change, and the event that answers it. The bare requests
// and answers have the same lengths.
const (
	request = `{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":1}]}` + "\n"
	answer  = `{"version":"1.12345","routes":[{"dst":"02:00:00:00:00:02","vid":1}]}` + "\n"
)

// runEnd is end-KIND-answer SOCKET ITERS NODES or end-KIND-ask SOCKET ITERS NODES.
func runEnd(args []string) {
	if len(args) != 4 {
		fmt.Fprintln(os.Stderr, "route: these arguments are for the benchmark itself")
		os.Exit(1)
	}
	socket := args[1]
	iters, err1 := strconv.Atoi(args[2])
	nodes, err2 := strconv.Atoi(args[3])
	err := errors.Join(err1, err2)
	if err == nil {
		err = runRole(args[0], socket, iters, nodes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "route:", err)
		os.Exit(1)
	}
}

func runRole(role, socket string, iters, nodes int) error {
	if strings.HasSuffix(role, "-answer") {
		_ = os.Remove(socket) // the last round was ended by a signal, and may have left it
	}
	switch role {
	case endPrefix + "blocking-answer":
		return blockingAnswer(socket)
	case endPrefix + "blocking-ask":
		return blockingAsk(socket, iters)
	case endPrefix + "net-answer":
		return netAnswer(socket)
	case endPrefix + "net-ask":
		return netAsk(socket, iters)
	case endPrefix + "manager-answer":
		return managerAnswer(socket, nodes)
	case endPrefix + "manager-ask":
		return managerAsk(socket, iters)
	case endPrefix + "table-answer", endPrefix + "frame-answer":
		fmt.Println("ready") // the other end asks nothing
		return waitForSignal()
	case endPrefix + "table-ask":
		return tableAsk(iters, nodes)
	case endPrefix + "frame-ask":
		return frameAsk(iters)
	}
	return fmt.Errorf("role %q", role)
}

func waitForSignal() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// blockingAnswer answers like a C program: with a thread that blocks in read(2).
func blockingAnswer(socket string) error {
	runtime.LockOSThread()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: socket})
	}
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, _, err := unix.Accept(fd)
	if err != nil {
		return err
	}
	return exchange(c, []byte(answer), make([]byte, len(request)), false, 0)
}

func blockingAsk(socket string, iters int) error {
	runtime.LockOSThread()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
	}
	if err != nil {
		return err
	}
	return exchange(fd, []byte(request), make([]byte, len(answer)), true, iters)
}

// exchange writes out and reads in, in this order if it asks, until the other end closes.
func exchange(fd int, out, in []byte, asks bool, iters int) error {
	read := func() error {
		for got := 0; got < len(in); {
			n, err := unix.Read(fd, in[got:])
			if err == nil && n == 0 {
				err = io.EOF
			}
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	}
	write := func() error { _, err := unix.Write(fd, out); return err }
	if asks {
		return harness.Measure(iters, func(int) error { return errors.Join(write(), read()) })
	}
	for {
		if err := read(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := write(); err != nil {
			return err
		}
	}
}

func netAnswer(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	in := make([]byte, len(request))
	for {
		if _, err := io.ReadFull(c, in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return err
		}
	}
}

func netAsk(socket string, iters int) error {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	in, out := make([]byte, len(answer)), []byte(request)
	return harness.Measure(iters, func(int) error {
		if _, err := c.Write(out); err != nil {
			return err
		}
		_, err := io.ReadFull(c, in)
		return err
	})
}

func mac(k int) transport.MAC { return transport.MAC{0x02, 0, 0, 0, byte((k + 1) >> 8), byte(k + 1)} }

func roundRobin(nodes int) (*plan.Plan, error) {
	macs := make([]transport.MAC, nodes)
	for k := range macs {
		macs[k] = mac(k)
	}
	return plan.RoundRobin(macs, []transport.VID{1, 2, 3, 4})
}

func managerAnswer(socket string, nodes int) error {
	p, err := roundRobin(nodes)
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{MAC: mac(0), Plan: p})
	if err != nil {
		return err
	}
	if _, err := s.Listen("unix", socket, nil); err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Println("ready")
	return errors.Join(waitForSignal(), s.Close())
}

// managerAsk changes the route to node 1, and checks the tag that a frame to it would carry.
func managerAsk(socket string, iters int) error {
	s, err := manager.Dial(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, table := context.Background(), s.Table()
	return harness.Measure(iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		if err := s.SetRoute(ctx, mac(0), mac(1), vid); err != nil {
			return err
		}
		return carries(table, vid)
	})
}

func carries(table *vlan.Table, vid transport.VID) error {
	if tag := table.Route(mac(1)).Tag; tag.VID != vid {
		return fmt.Errorf("a frame would carry VID %d, want %d", tag.VID, vid)
	}
	return nil
}

func tableAsk(iters, nodes int) error {
	p, err := roundRobin(nodes)
	if err != nil {
		return err
	}
	table, err := vlan.NewTable(p.Routes(0))
	if err != nil {
		return err
	}
	return harness.Measure(iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		route := vlan.Route{Dst: mac(1), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
		if err := table.Set(route); err != nil {
			return err
		}
		return carries(table, vid)
	})
}
