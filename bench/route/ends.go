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
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"

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

// end is one end of a variant, with the arguments of the program that is it.
type end struct {
	socket       string
	iters, nodes int
}

var roles = map[string]func(end) error{
	"net-answer":          end.answer,
	"net-ask":             end.ask,
	"manager-answer":      end.managerAnswer,
	"manager-ask":         func(e end) error { return e.managerAsk(false) },
	"managerframe-answer": end.managerAnswer,
	"managerframe-ask":    func(e end) error { return e.managerAsk(true) },
	"table-answer":        end.idle,
	"table-ask":           end.tableAsk,
	"frame-answer":        end.idle,
	"frame-ask":           end.frameAsk,
}

// runEnd is end-KIND-answer SOCKET ITERS NODES or end-KIND-ask SOCKET ITERS NODES.
func runEnd(args []string) error {
	role := roles[strings.TrimPrefix(args[0], endPrefix)]
	if len(args) != 4 || role == nil {
		return errors.New("these arguments are for the benchmark itself")
	}
	iters, err1 := strconv.Atoi(args[2])
	nodes, err2 := strconv.Atoi(args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	stop, err := profileEnd(args[0])
	if err != nil {
		return err
	}
	return errors.Join(role(end{args[1], iters, nodes}), stop())
}

// envProfile names the folder of the ends' CPU profiles, if they are wanted.
const envProfile = "RAWLANE_ROUTE_PROFILE"

// profileEnd profiles this end until stop is called, to a file of its own.
func profileEnd(name string) (stop func() error, err error) {
	folder := os.Getenv(envProfile)
	if folder == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s.%d.prof", name, os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// idle is the other end of one that asks nothing.
func (end) idle() error {
	fmt.Println("ready")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// answer answers each request until the other end closes.
func (e end) answer() error {
	_ = os.Remove(e.socket) // the last round was ended by a signal, and may have left it
	l, err := net.Listen("unix", e.socket)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	in, out := make([]byte, len(request)), []byte(answer)
	for err == nil {
		if _, err = io.ReadFull(c, in); err == nil {
			_, err = c.Write(out)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ask measures requests and their answers.
func (e end) ask() error {
	c, err := net.Dial("unix", e.socket)
	if err != nil {
		return err
	}
	in, out := make([]byte, len(answer)), []byte(request)
	return harness.Measure(e.iters, func(int) error {
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

func (e end) managerAnswer() error {
	p, err := roundRobin(e.nodes)
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{MAC: mac(0), Plan: p})
	if err != nil {
		return err
	}
	_ = os.Remove(e.socket) // as in answer
	if _, err = s.Listen("unix", e.socket, nil); err == nil {
		err = e.idle()
	}
	return errors.Join(err, s.Close())
}

// managerAsk changes the route to node 1, and checks the tag that a frame to it would carry, or the
// tag of the frame that an endpoint has sent.
func (e end) managerAsk(send bool) error {
	s, err := manager.Dial(context.Background(), "unix", e.socket)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, table := context.Background(), s.Table()
	sent := func(vid transport.VID) error { return carries(table, vid) }
	if send {
		f, err := newFrameSender(table, e.nodes, 1)
		if err != nil {
			return err
		}
		defer func() { _ = f.ep.Close() }()
		sent = f.send
	}
	return harness.Measure(e.iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		if err := s.SetRoute(ctx, mac(0), mac(1), vid); err != nil {
			return err
		}
		return sent(vid)
	})
}

func carries(table *vlan.Table, vid transport.VID) error {
	if tag := table.Route(mac(1)).Tag; tag.VID != vid {
		return fmt.Errorf("a frame would carry VID %d, want %d", tag.VID, vid)
	}
	return nil
}

func (e end) tableAsk() error {
	p, err := roundRobin(e.nodes)
	if err != nil {
		return err
	}
	table, err := vlan.NewTable(p.Routes(0))
	if err != nil {
		return err
	}
	return harness.Measure(e.iters, func(i int) error {
		vid := transport.VID(2 + i%2)
		route := vlan.Route{Dst: mac(1), OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
		if err := table.Set(route); err != nil {
			return err
		}
		return carries(table, vid)
	})
}
