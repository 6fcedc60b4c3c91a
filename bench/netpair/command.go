//go:build linux

package netpair

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/room"
)

// Lines runs "rawlane bench ARGS" on the interfaces of the nodes, and returns the lines that node 0
// prints. ARGS name the link. Without Lines the command makes namespaces of its own.
func Lines[T any](ctx context.Context, p *Pair, rawlane string, args ...string) (lines []T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var nodes [2]*harness.Program
	for k := range nodes {
		words := append([]string{rawlane, "bench"}, args...)
		words = append(words, "--interface="+Interface, fmt.Sprintf("--node=%d", k),
			"--pin=none", "--json")
		if nodes[k], err = harness.Start(ctx, p.bed, k, p.cores, words...); err != nil {
			return nil, err
		}
	}
	text, err := nodes[0].Text()
	_, err1 := nodes[1].Text()
	if err = errors.Join(err, err1); err != nil {
		return nil, err
	}
	return harness.Parse[T]([]byte(text))
}

// WithoutUDPSegmentation has the kernel cut trains before they leave, as for a NIC that does not:
// "ethtool -K eth0 tx-udp-segmentation off", and for those of all protocols.
func (p *Pair) WithoutUDPSegmentation() error {
	return p.change(map[string]bool{"tx-udp-segmentation": false, "tx-generic-segmentation": false})
}

// change switches features of the nodes' NICs.
func (p *Pair) change(features map[string]bool) error {
	for node := range 2 {
		err := p.bed.Node(node).Do(func() error {
			e, err := room.NewEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			return e.Change(Interface, features)
		})
		if err != nil {
			return fmt.Errorf("node %d: switch segmentation offload off: %w", node, err)
		}
	}
	return nil
}
