//go:build linux

package main

import (
	"context"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
)

// callers are the verbs of the command that measure calls over rawlane, and the same over TCP; but
// for rpc, which package net does not have.
var callers = []struct{ name, verb string }{
	{"rpc", "rpc"}, {"net/rpc", "netrpc"}, {"net/http GET", "http"}, {"gRPC unary", "grpc"},
}

// connections are those of package rawnet by themselves, and calls of programs over them.
func (c *compare) connections() (all []harness.Variant) {
	for _, link := range []string{"ring", "udp"} {
		name := "rawlane, " + link + ", net.Conn"
		all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
			return c.twoNodes(ctx, link, "conn", c.sizes, func(l line) { c.latency.add(name, l.Size, l.P50) })
		}})
	}
	for _, p := range callers {
		over := map[bool]string{false: p.name + ", rawlane, ring", true: p.name + ", TCP"}
		rows := []string{over[false]}
		if p.verb != "rpc" {
			rows = append(rows, over[true])
		}
		all = append(all, harness.Variant{Name: p.name, Rows: rows, Run: func(ctx context.Context) error {
			return c.twoNodes(ctx, "ring", p.verb, []int{smallSize}, func(l line) {
				c.calls.add(over[l.Link == "tcp"], l.Size, l.P50)
			})
		}})
	}
	return all
}

// twoNodes runs a benchmark of the command between two nodes that it opens itself.
func (c *compare) twoNodes(ctx context.Context, link, what string, sizes []int, add func(line)) error {
	lines, err := harness.Lines[line](ctx, &c.Programs, what, "--link", link, "--size", harness.List(sizes),
		"--iters", strconv.Itoa(c.Iters))
	for _, l := range lines {
		add(l)
	}
	return err
}
