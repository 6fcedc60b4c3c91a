//go:build linux

// Package netpair runs the programs that benchmarks compare: in two network namespaces joined by a
// veth pair, each program on a processor core of its own.
package netpair

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/xdp"
)

// Pair is two namespaces to run programs in.
type Pair struct {
	bed   *testbed.Bed
	cores []int
}

// New makes a pair. The process of an ordinary user goes on in a user namespace.
func New() (*Pair, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	p := &Pair{cores: harness.Cores(2)}
	if p.cores == nil {
		return nil, errors.New("one core: the comparison needs two, for two programs that spin")
	}
	var err error
	if p.bed, err = testbed.New(testbed.Config{}); err != nil {
		return nil, err
	}
	return p, nil
}

// Unpinned is the same pair for programs that the scheduler places.
func (p *Pair) Unpinned() *Pair {
	unpinned := *p
	unpinned.cores = nil
	return &unpinned
}

// Bed is the namespaces.
func (p *Pair) Bed() *testbed.Bed { return p.bed }

// Cores are those of the nodes' programs; nil if the scheduler places them.
func (p *Pair) Cores() []int { return p.cores }

// Core is the core that a node's programs are on.
func (p *Pair) Core(node int) int { return p.cores[node] }

// Close ends the programs and removes the namespaces.
func (p *Pair) Close() error { return p.bed.Close() }

// Run runs answer on node 1, which prints "ready" when it is and runs until it is told to end
// (SIGTERM), and then ask on node 0. It returns the numbers that they printed: at least so many.
func (p *Pair) Run(
	ctx context.Context, answer, ask []string, wantAnswered, wantAsked int,
) (answered, asked []float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := harness.Start(ctx, p.bed, 1, p.cores, answer...)
	if err == nil {
		err = server.AwaitReady()
	}
	if err != nil {
		return nil, nil, err
	}
	client, err := harness.Start(ctx, p.bed, 0, p.cores, ask...)
	if err == nil {
		asked, err = client.Numbers(wantAsked)
	}
	server.Stop()
	answered, serverErr := server.Numbers(wantAnswered)
	return answered, asked, cmp.Or(err, serverErr)
}

// prints is how many numbers modes of the C program print.
var prints = map[string]int{"ring-ping": 4, "xsk-ping": 4, "udp-ping": 4, "tcp-ping": 4, "tcp-send": 1, "ring-send": 1,
	"tcp-send-nagle": 1, "tcp-send-gathered": 1, "ring-txring": 1, "ring-sink": 1, "ring-both": 2, "unix-ping": 4,
	"gso-sink": 2, "gso-send": 1, "xsk-sink": 1, "xsk-send": 1}

// RunC is Run for modes of the C program. The answering one works on the node's interface, the
// asking one where it is told: there, or with the other's address.
func (p *Pair) RunC(
	ctx context.Context, program, answer, ask, where string, numbers ...int,
) (answered, asked []float64, err error) {
	args := func(mode, where string, node int) []string {
		core := -1
		if p.cores != nil {
			core = p.cores[node]
		}
		words := []string{program, mode, where, strconv.Itoa(core)}
		for _, n := range numbers {
			words = append(words, strconv.Itoa(n))
		}
		return words
	}
	count := func(mode string) int {
		for _, way := range []string{"block-", "native-", "sum-"} {
			mode = strings.TrimPrefix(mode, way)
		}
		return prints[mode]
	}
	return p.Run(ctx, args(answer, Interface, 1), args(ask, where, 0), count(answer), count(ask))
}

// TrainsOfC has the C program send datagrams of size bytes in trains, so many in each call, and
// returns how many bytes of them arrived a second. By gso-send it neither writes nor reads them; by
// sum-gso-send it copies a message into each, and adds up the words at both ends.
func (p *Pair) TrainsOfC(
	ctx context.Context, program, sink, send string, size, datagrams, train int,
) (bytesPerSecond float64, err error) {
	came, _, err := p.RunC(ctx, program, sink, send, p.IP(1), size, datagrams, train)
	if err != nil {
		return 0, err
	}
	if came[1] == 0 {
		return 0, errors.New("nothing arrived")
	}
	return came[0] / came[1] * 1e9, nil
}

// XDP returns nil if programs may be loaded into the kernel, which links over AF_XDP take, and
// otherwise the reason.
func (p *Pair) XDP() error {
	return p.bed.Node(0).Do(func() error { _, err := xdp.Probe(Interface); return err })
}

// WithoutOffloads has the nodes send and receive TCP's streams in frames, as on a wire: a veth pair
// would otherwise pass 64 KiB on as one. It is what "ethtool -K eth0 tso off gso off gro off" does.
func (p *Pair) WithoutOffloads() error {
	return p.change(map[string]bool{
		"tx-tcp-segmentation": false, "tx-generic-segmentation": false, "rx-gro": false,
	})
}

// IP returns the address of a node.
func (p *Pair) IP(node int) string { return testbed.IP(node, 0).String() }

// Interface is the name of each node's NIC.
const Interface = "eth0"
