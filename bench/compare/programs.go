//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
	"github.com/rawlane/rawlane/bench/peers"
	"github.com/rawlane/rawlane/internal/testbed"
)

// required are the variants whose failure ends the run: every Linux has what they need.
var required = []string{"rawlane, ring", "rawlane, packet", "rawlane, udp", "rawlane, fabric"}

// headerLen is the length of rawlane's header: C's small frames are as long as rawlane's.
const headerLen = 20

const (
	fullFrame  = 1500 // the payload of C's full frames
	frameBatch = 64   // frames of a sendmmsg
	tcpPiece   = 1024 // of these 64 are a send
)

// inC are the programs in C, with the least that a system call costs.
func (c *compare) inC() (all []harness.Variant) {
	if c.Programs.C == "" {
		return nil
	}
	at := testbed.IP(1, 0).String()
	for _, k := range []struct{ name, mode, where string }{
		{"C, bare ring", "ring", netpair.Interface},
		{"C, UDP, spinning", "udp", at}, {"C, UDP, asleep", "block-udp", at},
		{"C, TCP, spinning", "tcp", at}, {"C, TCP, asleep", "block-tcp", at},
	} {
		all = append(all, harness.Variant{Name: k.name, Run: func(ctx context.Context) error {
			for _, size := range c.sizes {
				_, ns, err := c.pair.RunC(ctx, c.Programs.C, k.mode+"-echo", k.mode+"-ping", k.where, size, c.Iters)
				if err != nil {
					return err
				}
				c.latency.add(k.name, size, ns[1]/1e3)
			}
			return nil
		}})
	}
	frames := func(name string, g *grid, size, payload, count int, unit float64) harness.Variant {
		return harness.Variant{Name: name, Run: func(ctx context.Context) error {
			came, ns, err := c.pair.RunC(ctx, c.Programs.C, "ring-sink", "ring-send", netpair.Interface,
				payload, count, frameBatch)
			if err == nil {
				g.add(name, size, came[0]/ns[0]*1e3*unit)
			}
			return err
		}}
	}
	stream := func(name string, g *grid, size, piece, count int, unit float64) harness.Variant {
		return harness.Variant{Name: name, Run: func(ctx context.Context) error {
			_, ns, err := c.pair.RunC(ctx, c.Programs.C, "tcp-sink", "tcp-send", c.pair.IP(1), piece, count, 64)
			if err == nil {
				g.add(name, size, float64(count)/ns[0]*1e3*unit)
			}
			return err
		}}
	}
	return append(all,
		frames("C, full frames, sendmmsg", c.bandwidth, c.long[0], fullFrame, c.bytes/fullFrame, fullFrame),
		stream("C, TCP, 64 KiB a send", c.bandwidth, c.long[0], tcpPiece, c.bytes/tcpPiece, tcpPiece),
		frames("C, frames, sendmmsg", c.rate, smallSize, smallSize+headerLen, c.small, 1),
		stream("C, TCP, 64 records a send", c.rate, smallSize, smallSize, c.small, 1))
}

// others are MPI, UCX and libfabric.
func (c *compare) others() (all []harness.Variant) {
	for _, m := range c.mpis {
		for over, where := range map[peers.Over]string{peers.TCP: ", TCP", peers.Memory: ", shared memory"} {
			name := m.Name + where
			all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
				return c.runMPI(ctx, m, over, name)
			}})
		}
	}
	slices.SortFunc(all, func(a, b harness.Variant) int { return -strings.Compare(a.Name, b.Name) })
	if err := peers.Find("ucx_perftest", "ucx-utils"); err != nil && !c.Rows {
		c.LeftOut(err)
	} else {
		all = append(all, harness.Variant{Name: "UCX, TCP", Run: c.runUCX})
	}
	if err := peers.Find("fi_pingpong", "libfabric-bin"); err != nil && !c.Rows {
		c.LeftOut(err)
	} else {
		all = append(all, c.libfabric("libfabric, TCP", "tcp", "msg"), c.libfabric("libfabric, UDP", "udp", "dgram"))
	}
	return all
}

func (c *compare) runMPI(ctx context.Context, m *peers.MPI, over peers.Over, name string) error {
	half, err := m.Run(ctx, c.hosts, over, "latency", append([]int{c.Iters}, c.sizes...)...)
	if err != nil {
		return err
	}
	for size, us := range half {
		c.latency.add(name, size, us)
	}
	long, err := m.Run(ctx, c.hosts, over, "stream", append([]int{c.bytes}, c.long...)...)
	if err != nil {
		return err
	}
	for size, mb := range long {
		c.bandwidth.add(name, size, mb)
	}
	small, err := m.Run(ctx, c.hosts, over, "stream", c.small*smallSize, smallSize)
	if err == nil {
		c.rate.add(name, smallSize, small[smallSize]/smallSize)
	}
	return err
}

func (c *compare) runUCX(ctx context.Context) error {
	const name = "UCX, TCP"
	for _, size := range c.sizes {
		r, err := c.tools.UCX(ctx, "tag_lat", size, c.Iters)
		if err != nil {
			return err
		}
		c.latency.add(name, size, r.P50US)
	}
	for _, size := range c.long {
		r, err := c.tools.UCX(ctx, "tag_bw", size, c.bytes/size)
		if err != nil {
			return err
		}
		c.bandwidth.add(name, size, r.MBPerS)
	}
	r, err := c.tools.UCX(ctx, "tag_bw", smallSize, c.small)
	if err == nil {
		c.rate.add(name, smallSize, r.MsgsPerS/1e6)
	}
	return err
}

func (c *compare) libfabric(name, provider, endpoint string) harness.Variant {
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		for _, size := range c.sizes {
			us, err := c.tools.Libfabric(ctx, provider, endpoint, size, c.Iters)
			if err != nil {
				return err
			}
			c.latency.add(name, size, us)
		}
		return nil
	}}
}

// line is what rawlane's command prints.
type line struct {
	Link    string  `json:"link"`
	Size    int     `json:"size_bytes"`
	P50     float64 `json:"p50_us"`
	MB      float64 `json:"mb_per_s"`
	Msgs    float64 `json:"msgs_per_s"`
	Batched float64 `json:"batched_msgs_per_s"`
}

// onInterfaces are the links that use the interfaces of the pair. Others the command opens itself.
var onInterfaces = []string{"packet", "ring", "udp", "xdp"}

// Rows of a link are messages, and its remote writes and records of a FIFO.
const (
	put  = ", Put"
	push = ", PushBatch"
)

// ours are rawlane's links; and Go's sockets, which the command measures beside them.
func (c *compare) ours() (all []harness.Variant) {
	for _, link := range c.links {
		name := "rawlane, " + link
		all = append(all, harness.Variant{Name: name, Rows: rowsOf(name), Run: func(ctx context.Context) error {
			return c.runLink(ctx, name, link)
		}})
		if link == "ring" || link == "packet" {
			single := name + ", single frames"
			all = append(all, harness.Variant{Name: single, Rows: rowsOf(single), Run: func(ctx context.Context) error {
				return c.runStreams(ctx, single, link, "--trains=false")
			}})
		}
	}
	return append(all,
		harness.Variant{Name: "rawlane, ring, asleep", Run: func(ctx context.Context) error {
			return c.bench(ctx, "ring", "latency", c.sizes, c.Iters, func(l line) {
				c.latency.add("rawlane, ring, asleep", l.Size, l.P50)
			}, "--spin", "0s")
		}},
		harness.Variant{Name: "Go, net package", Rows: []string{"Go, UDP", "Go, TCP"}, Run: c.runGo},
		harness.Variant{Name: "Go, TCP, streams", Rows: []string{"Go, TCP"}, Run: c.runGoStreams})
}

func rowsOf(link string) []string { return []string{link, link + put, link + push} }

func (c *compare) runGo(ctx context.Context) error {
	return c.bench(ctx, "ring", "latency", c.sizes, c.Iters, func(l line) {
		if l.Link == "udp" || l.Link == "tcp" {
			c.latency.add("Go, "+strings.ToUpper(l.Link), l.Size, l.P50)
		}
	}, "--beside", "udp,tcp")
}

// bench runs a benchmark of the command over a link.
func (c *compare) bench(
	ctx context.Context, link, what string, sizes []int, iters int, add func(line), more ...string,
) error {
	args := []string{what, "--link=" + link, "--size", harness.List(sizes), "--iters", strconv.Itoa(iters)}
	args = append(args, more...)
	var lines []line
	var err error
	if slices.Contains(onInterfaces, link) {
		lines, err = netpair.Lines[line](ctx, c.pair, c.Programs.Rawlane, args...)
	} else {
		lines, err = harness.Lines[line](ctx, &c.Programs, args...)
	}
	for _, l := range lines {
		if !slices.Contains(sizes, l.Size) {
			return fmt.Errorf("unexpected output of rawlane: %d bytes, want %v", l.Size, sizes)
		}
		add(l)
	}
	return err
}

func (c *compare) runLink(ctx context.Context, name, link string) error {
	err := c.bench(ctx, link, "latency", c.sizes, c.Iters, func(l line) { c.latency.add(name, l.Size, l.P50) })
	if err != nil {
		return err
	}
	return c.runStreams(ctx, name, link)
}

// runStreams measures long writes, and small messages: alone, and as records that are confirmed.
func (c *compare) runStreams(ctx context.Context, name, link string, more ...string) error {
	inBytes := append([]string{"--bytes", strconv.Itoa(c.bytes)}, more...)
	err := c.bench(ctx, link, "put", c.long, 50, func(l line) { c.bandwidth.add(name+put, l.Size, l.MB) }, inBytes...)
	if err != nil {
		return err
	}
	messages := func(l line) { c.rate.add(name, l.Size, l.Msgs/1e6) }
	err = c.bench(ctx, link, "rate", []int{smallSize}, c.small, messages, more...)
	if err != nil {
		return err
	}
	records := append([]string{"--bytes", strconv.Itoa(c.small * smallSize)}, more...)
	return c.bench(ctx, link, "fifo", []int{smallSize}, 50, func(l line) {
		c.rate.add(name+push, l.Size, l.Batched/1e6)
	}, records...)
}

// allBarriers are those of bench/barrier, and MPI's with a rank in each namespace.
func (c *compare) allBarriers() (all []harness.Variant) {
	for _, n := range c.members {
		all = append(all, harness.Variant{
			Name: fmt.Sprintf("barriers of %d", n), Rows: c.barrierRows,
			Run: func(ctx context.Context) error { return c.runBarriers(ctx, n) },
		})
		for _, m := range c.mpis {
			name := m.Name + ", TCP between namespaces"
			all = append(all, harness.Variant{
				Name: fmt.Sprintf("%s, %d", name, n), Rows: []string{name},
				Run: func(ctx context.Context) error { return c.runMPIBarrier(ctx, m, name, n) },
			})
		}
	}
	return all
}

// endTimeout is how long bench/barrier may take to end its own programs.
const endTimeout = 15 * time.Second

// runBarriers runs bench/barrier for one round. The end of ctx is SIGTERM to it.
func (c *compare) runBarriers(ctx context.Context, n int) error {
	cmd := exec.CommandContext(ctx, c.barrier, "-nodes", strconv.Itoa(n), "-rounds", "1",
		"-iters", strconv.Itoa(c.barrierIters(n)), "-limits=false", "-json")
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = endTimeout
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, said.Bytes())
	}
	for from := json.NewDecoder(bytes.NewReader(out)); from.More(); {
		var l struct {
			Name string  `json:"name"`
			Mean float64 `json:"mean_us"`
		}
		if err := from.Decode(&l); err != nil {
			return fmt.Errorf("unexpected output %q of bench/barrier: %w", out, err)
		}
		c.barriers.add(l.Name, n, l.Mean)
	}
	return nil
}

// askBarrierRows are the names of bench/barrier's rows.
func (c *compare) askBarrierRows(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, c.barrier, "-rows").Output()
	if err != nil {
		return nil, fmt.Errorf("%s -rows: %w", c.barrier, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

// barriers are as many as it takes until those of processes that have begun together, and want each
// other's cores for that, no longer count: a tenth of them warms up.
const barriers = 2000

// barrierIters is less for many members, who wait for each other where they share cores, and no
// more than some for one that is asked for.
func (c *compare) barrierIters(n int) int { return min(2*c.Iters, max(barriers, c.Iters/n)) }

// sharedIters bounds the barriers of ranks that share cores: each may take many time slices.
const sharedIters = 40

// runMPIBarrier runs MPI's barriers among so many ranks.
func (c *compare) runMPIBarrier(ctx context.Context, m *peers.MPI, name string, n int) error {
	return m.Among(ctx, n, c.Dir, func(h *peers.Hosts, cores []int) error {
		iters := c.barrierIters(n)
		if cores == nil {
			iters = min(iters, sharedIters)
		}
		result, err := m.Run(ctx, h, peers.TCP, "barrier", iters)
		if err == nil {
			c.barriers.add(name, n, result[n])
		}
		return err
	})
}
