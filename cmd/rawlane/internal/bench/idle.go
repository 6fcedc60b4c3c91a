package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
)

// idleBench measures what connections between nodes 0 and 1 cost that carry nothing.
type idleBench struct {
	bench
	conns []int
}

func newIdleBench() *idleBench {
	return &idleBench{conns: []int{0, 1000}, bench: bench{
		name: "idle", short: "What idle connections cost: processor time, memory, frames",
		long: `Node 0 opens connections to node 1. Each carries a byte there and one back, and then a goroutine at
either end waits in Read, and nothing is sent: what is measured is the processor time of each node's
process, user's and system's, in percent of one core, with all that a program has to do to keep
connections open. Beside it are the memory that a connection takes at each end, without the stacks
of the program's goroutines, and the frames that node 0 sends and receives.

On the fabric the nodes share a process, and its numbers are of both.

  rawlane bench idle --link ring
  rawlane bench idle --link udp --spin 0s --conns 0,1000,10000`,
		iters: 5,
	}}
}

const (
	// maxIdleConns bounds --conns: with them node 0 has its other connection still.
	maxIdleConns = rawnet.DefaultMaxConns - 1
	// maxIdleSeconds bounds --iters.
	maxIdleSeconds = 3600
	// idleSettle is the time between the last byte and the measurement: the Go runtime gives memory
	// back, and what was delayed has been sent.
	idleSettle = time.Second
)

func newIdleCommand() *cobra.Command {
	b := newIdleBench()
	cmd := b.command(maxIdleSeconds, "seconds of silence that are measured, for each number of connections",
		b.prepare, b.part)
	cli.ListFlag(cmd.Flags(), &b.conns, "conns", "N,...", "numbers of connections", upTo(maxIdleConns))
	b.alike = []string{"conns"}
	return cmd
}

// upTo reads numbers of a flag, from 0 to the most.
func upTo(most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("%q: want 0 to %d", text, most)
		}
		return n, nil
	}
}

func (b *idleBench) prepare(*cobra.Command) error {
	if b.cluster.Nodes != 2 {
		return cli.Misuse("--nodes %d: want 2, one at either end", b.cluster.Nodes)
	}
	return nil
}

// idleService is that of the connections, at node 1. Those of programs have another one, by which
// node 0 asks node 1.
const idleService = "idle"

// usage is what a process has used.
type usage struct {
	CPU  time.Duration // since it was started
	Heap int64         // bytes that are in use
}

// ask is a request of node 0: what node 1 has used; with Collect, of memory that is really in use.
type ask struct{ Collect bool }

func ownUsage(a ask) (u usage, err error) {
	if a.Collect {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools have kept goes in two
		runtime.ReadMemStats(&m)
		u.Heap = int64(m.HeapAlloc)
	}
	u.CPU, err = cpuTime()
	return u, err
}

func (b *idleBench) part(ctx context.Context, n *node) error {
	most := slices.Max(b.conns) + 1
	conns, err := rawnet.Open(n.ep, rawnet.Config{Backlog: most, MaxConns: most})
	if err != nil {
		return err
	}
	if n.ep.Node() == 0 {
		err = b.measure(ctx, n, conns)
	} else {
		err = serveIdle(ctx, conns)
	}
	return errors.Join(err, conns.Close())
}

// serveIdle is node 1, until node 0 closes the control connection. Its goroutines end with conns.
func serveIdle(ctx context.Context, conns *rawnet.Net) error {
	l, err := conns.Listen(idleService)
	if err != nil {
		return err
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go echoBytes(c)
		}
	}()
	control, err := acceptOne(ctx, conns, controlService)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	defer context.AfterFunc(ctx, func() { _ = control.Close() })()
	from, to := json.NewDecoder(control), json.NewEncoder(control)
	for {
		var a ask
		if err := from.Decode(&a); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		u, err := ownUsage(a)
		if err = errors.Join(err, to.Encode(u)); err != nil {
			return err
		}
	}
}

// echoBytes returns byte by byte what comes, until the other end closes.
func echoBytes(c net.Conn) {
	defer func() { _ = c.Close() }()
	b := make([]byte, 1)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// measure is node 0.
func (b *idleBench) measure(ctx context.Context, n *node, conns *rawnet.Net) error {
	n.lines.Say("waiting for node 1 ...")
	c, err := conns.DialWait(ctx, rawnet.Network, "1:"+controlService)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	m := &idleMeter{ep: n.ep, net: conns, to: json.NewEncoder(c), from: json.NewDecoder(c)}
	for _, count := range b.conns {
		r := &idleResult{result: n.form, Conns: count}
		n.lines.Say("%s over %s, for %d s ...", cli.Count(count, "connection"), r.Link, r.Iters)
		if err := m.measure(ctx, r); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		if err := n.lines.Write(r, r.head(), r.line()); err != nil {
			return err
		}
	}
	return nil
}

// idleMeter measures at node 0, and asks node 1.
type idleMeter struct {
	ep   *mcd.Endpoint
	net  *rawnet.Net
	to   *json.Encoder
	from *json.Decoder
}

// used returns what either node has used.
func (m *idleMeter) used(a ask) (both [2]usage, err error) {
	if err = m.to.Encode(a); err != nil {
		return both, err
	}
	if err = m.from.Decode(&both[1]); err != nil {
		return both, fmt.Errorf("node 1: %w", err)
	}
	both[0], err = ownUsage(a)
	return both, err
}

// measure opens connections, lets time pass, and closes them.
func (m *idleMeter) measure(ctx context.Context, r *idleResult) (err error) {
	before, err := m.used(ask{Collect: true})
	if err != nil {
		return err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	open := make([]net.Conn, r.Conns)
	defer func() {
		for _, c := range open {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range open {
		if open[i], err = m.dial(ctx); err != nil {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
		reading.Go(func() { _, _ = open[i].Read(make([]byte, 1)) }) // until it is closed
	}
	during, err := m.used(ask{Collect: true})
	if err != nil {
		return err
	}
	if err := cli.Pause(ctx, idleSettle); err != nil {
		return err
	}
	begin, err := m.used(ask{})
	if err != nil {
		return err
	}
	frames, start := m.frames(), time.Now()
	if err := cli.Pause(ctx, time.Duration(r.Iters)*time.Second); err != nil {
		return err
	}
	r.FramesPerS = float64(m.frames()-frames) / time.Since(start).Seconds()
	end, err := m.used(ask{})
	took := time.Since(start)
	for k := range end {
		r.CPUPercent[k] = 100 * float64(end[k].CPU-begin[k].CPU) / float64(took)
		if r.Conns > 0 {
			r.BytesPerConn[k] = (during[k].Heap - before[k].Heap) / int64(r.Conns)
		}
	}
	return err
}

// dial opens a connection, and uses it once.
func (m *idleMeter) dial(ctx context.Context) (net.Conn, error) {
	c, err := m.net.DialContext(ctx, rawnet.Network, "1:"+idleService)
	if err != nil {
		return nil, err
	}
	one := []byte{1}
	_, err = c.Write(one)
	if err == nil {
		_, err = c.Read(one)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// frames is how many node 0 has sent and received.
func (m *idleMeter) frames() uint64 {
	c := m.ep.Counters()
	return c.TxMessages + c.RxMessages
}

// idleResult is one line.
type idleResult struct {
	result
	Conns        int        `json:"conns"`
	CPUPercent   [2]float64 `json:"cpu_percent"`    // of one core: node 0's process, node 1's
	BytesPerConn [2]int64   `json:"bytes_per_conn"` // at node 0, at node 1
	FramesPerS   float64    `json:"frames_per_s"`   // that node 0 sends and receives
	Lost         *absent    `json:"lost,omitempty"`
	Allocs       *absent    `json:"allocs_per_op,omitempty"`
}

func (r *idleResult) head() string {
	return fmt.Sprintf("# rawlane bench idle: %s%s, %s, %d s each, waits spin for %v us, %v\n"+
		"# Conns   node 0 (%% of a core)   node 1   node 0 (bytes/conn)   node 1    frames/s\n",
		r.Link, r.protection(), r.pinned(), r.Iters, r.SpinUS, r.Host)
}

func (r *idleResult) line() string {
	return fmt.Sprintf("%-7d %24.3f %8.3f %21d %8d %11.1f\n",
		r.Conns, r.CPUPercent[0], r.CPUPercent[1], r.BytesPerConn[0], r.BytesPerConn[1], r.FramesPerS)
}
