//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/rawlane/rawlane/bench/gonet"
	"github.com/rawlane/rawlane/internal/testbed"
)

// envGo says that this process is one end of a stream of Go's: sink, or send.
const envGo = "RAWLANE_COMPARE_GO"

// goPort is where the sink listens.
const goPort = "7300"

// goPart is one end: a sink, which takes one stream, or a sender, whose arguments are the address,
// the size and the number of its messages. It prints the time in ns.
func goPart(part string, args []string) (err error) {
	if part == "sink" {
		l, err := net.Listen("tcp", ":"+goPort)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		_, err = gonet.Sink(l)
		return errors.Join(err, l.Close())
	}
	if len(args) != 3 {
		return fmt.Errorf("%d arguments: want an address, a size and a number", len(args))
	}
	size, err1 := strconv.Atoi(args[1])
	count, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	took, err := gonet.Stream(context.Background(), args[0], size, count)
	fmt.Println(took.Nanoseconds())
	return err
}

// runGoStreams measures package net's TCP with long messages and with small ones, one Write each.
func (c *compare) runGoStreams(ctx context.Context) error {
	const name = "Go, TCP"
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run := func(size, count int) (ns float64, err error) {
		sink := []string{"env", envGo + "=sink", self}
		send := []string{"env", envGo + "=send", self, net.JoinHostPort(testbed.IP(1, 0).String(), goPort),
			strconv.Itoa(size), strconv.Itoa(count)}
		_, took, err := c.pair.Run(ctx, sink, send, 0, 1)
		if err != nil {
			return 0, err
		}
		return took[0], nil
	}
	for _, size := range c.long {
		ns, err := run(size, c.bytes/size)
		if err != nil {
			return err
		}
		c.bandwidth.add(name, size, float64(c.bytes/size*size)/ns*1e3)
	}
	ns, err := run(smallSize, c.small)
	if err == nil {
		c.rate.add(name, smallSize, float64(c.small)/ns*1e3)
	}
	return err
}
