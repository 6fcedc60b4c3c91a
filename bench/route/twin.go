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
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/server"

	"github.com/rawlane/rawlane/vlan/plan"
)

// The twins are the two ends of each contestant: this program, started anew with these words before
// the arguments.
const twinPrefix = "twin-"

// The bodies of a session's request for one change, and of the event that tells it; the bare
// requests are as long.
const (
	request = `{"pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":1}]}` + "\n"
	answer  = `{"version":"1.12345","routes":[{"dst":"02:00:00:00:00:02","vid":1}]}` + "\n"
)

// twin is twin-KIND-answer SOCKET ITERS NODES or twin-KIND-ask SOCKET ITERS NODES.
func twin(args []string) {
	if len(args) != 4 {
		fmt.Fprintln(os.Stderr, "route: this is not meant to be run by hand")
		os.Exit(1)
	}
	socket := args[1]
	iters, err1 := strconv.Atoi(args[2])
	nodes, err2 := strconv.Atoi(args[3])
	err := errors.Join(err1, err2)
	if err == nil {
		err = play(args[0], socket, iters, nodes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "route:", err)
		os.Exit(1)
	}
}

func play(role, socket string, iters, nodes int) error {
	if strings.HasSuffix(role, "-answer") {
		_ = os.Remove(socket) // the round before was ended by a signal, and may have left it
	}
	switch role {
	case twinPrefix + "blocking-answer":
		return blockingAnswer(socket)
	case twinPrefix + "blocking-ask":
		return blockingAsk(socket, iters)
	case twinPrefix + "net-answer":
		return netAnswer(socket)
	case twinPrefix + "net-ask":
		return netAsk(socket, iters)
	case twinPrefix + "manager-answer":
		return managerAnswer(socket, nodes)
	case twinPrefix + "manager-ask":
		return managerAsk(socket, iters)
	case twinPrefix + "table-answer":
		fmt.Println("ready") // there is nobody to ask
		return untilTold()
	case twinPrefix + "table-ask":
		return tableAsk(iters, nodes)
	}
	return fmt.Errorf("role %q", role)
}

func untilTold() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// measure prints how long f takes.
func measure(iters int, f func(i int) error) error {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	for i := range iters + iters/10 {
		start := time.Now()
		if err := f(i); err != nil {
			return err
		}
		took := time.Since(start)
		if i < iters/10 {
			continue // warming up
		}
		if err := h.RecordValue(took.Nanoseconds()); err != nil {
			return err
		}
	}
	fmt.Println(h.Min(), h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.Max())
	return nil
}

// blockingAnswer answers as a C program would: a thread that blocks in read(2).
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

// exchange writes out and reads in, in this order if it asks, until the other end is gone.
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
		return measure(iters, func(int) error { return errors.Join(write(), read()) })
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
	return measure(iters, func(int) error {
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
	return errors.Join(untilTold(), s.Close())
}

// managerAsk changes the route to node 1, and looks what a frame to it would carry.
func managerAsk(socket string, iters int) error {
	s, err := manager.Dial(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, table := context.Background(), s.Table()
	return measure(iters, func(i int) error {
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
	return measure(iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		if err := table.Set(vlan.Route{Dst: mac(1), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}); err != nil {
			return err
		}
		return carries(table, vid)
	})
}
