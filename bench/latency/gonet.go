//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/rawlane/rawlane/bench/gonet"
	"github.com/rawlane/rawlane/bench/harness"
)

// goPrefix begins the first argument of this program when it is one end of the measurement of Go's
// sockets.
const goPrefix = "gonet-"

// goPort is the port of the echo server.
const goPort = 7778

// goEnd is gonet-echo IP or gonet-ping IP NETWORK SIZE ITERS.
func goEnd(args []string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := errors.New("these arguments are for the benchmark itself")
	switch {
	case len(args) == 2 && args[0] == goPrefix+"echo":
		err = goEcho(ctx, args[1])
	case len(args) == 5 && args[0] == goPrefix+"ping":
		err = goPing(ctx, args[1], args[2], args[3], args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

func goEcho(ctx context.Context, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return err
	}
	s, err := gonet.Serve(netip.AddrPortFrom(addr, goPort))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return s.Close()
}

func goPing(ctx context.Context, ip, network, sizeText, itersText string) error {
	addr, err1 := netip.ParseAddr(ip)
	size, err2 := strconv.Atoi(sizeText)
	iters, err3 := strconv.Atoi(itersText)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	h := harness.NewHistogram()
	load := gonet.Load{Size: size, Warm: iters / 10, Iters: iters}
	if err := gonet.Ping(ctx, network, netip.AddrPortFrom(addr, goPort), load, h.Record); err != nil {
		return err
	}
	return h.Print()
}
