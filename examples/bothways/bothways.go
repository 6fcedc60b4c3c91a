// Package bothways runs a program that knows package net alone by two ways, over rawlane and over
// TCP: node 1 its server, and node 0 its client, which measures.
package bothways

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/rawnet"
)

// Listen gives a program's server a listener for one of its services.
type Listen func(service string) (net.Listener, error)

// Server starts a program's server, which serves until stop is called.
type Server func(listen Listen) (stop func(), err error)

// Way is how a program's client reaches its server: the program is the same.
type Way struct {
	Name string // "rawlane" or "TCP"
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	addrs map[string]string // where services are; nil: by their names
}

// Addr returns the address of a service, as Dial takes it.
func (w *Way) Addr(service string) string {
	if w.addrs == nil {
		return "1:" + service
	}
	return w.addrs[service]
}

// Main is the main function of an example: node 1 runs its server, on rawlane and on TCP, and node
// 0 its client, by one way and by the other.
func Main(limit time.Duration, serve Server, ask func(ctx context.Context, w Way) error) {
	start.Main(start.Config{Nodes: 2, Exact: true, Limit: limit}, node(serve, ask))
}

// Run is Main on a fabric, for tests.
func Run(ctx context.Context, serve Server, ask func(ctx context.Context, w Way) error) error {
	return start.Run(ctx, start.Config{Nodes: 2, Exact: true}, node(serve, ask))
}

func node(serve Server, ask func(context.Context, Way) error) func(context.Context, *start.Node) error {
	return func(ctx context.Context, n *start.Node) error { return runPrograms(ctx, n, serve, ask) }
}

func runPrograms(ctx context.Context, e *start.Node, serve Server, ask func(context.Context, Way) error) error {
	n, err := rawnet.Open(e.Endpoint, rawnet.Config{})
	if err != nil {
		return err
	}
	if e.Node() == 1 {
		ip := "127.0.0.1"
		if e.Job().Launcher != start.Nobody { // else both nodes are in this process
			ip = cmp.Or(ownIP(), ip)
		}
		err = runServer(ctx, n, ip, serve)
	} else {
		err = runClient(ctx, n, ask)
	}
	return errors.Join(err, n.Close())
}

// controlService is where node 1 tells node 0 where its services are by TCP. The connection's end
// is that of the example.
const controlService = "control"

func runServer(ctx context.Context, n *rawnet.Net, ip string, serve Server) error {
	addrs := make(map[string]string)
	overTCP := func(service string) (net.Listener, error) {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err == nil {
			addrs[service] = l.Addr().String()
		}
		return l, err
	}
	stopTCP, err := serve(overTCP)
	if err != nil {
		return err
	}
	defer stopTCP()
	stop, err := serve(func(service string) (net.Listener, error) { return n.Listen(service) })
	if err != nil {
		return err
	}
	defer stop()
	l, err := n.Listen(controlService)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	c, err := l.Accept()
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }()
	if err := json.NewEncoder(c).Encode(addrs); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// ownIP is this node's IP address: that of the interface that its launcher names, or else of the
// first that is up; "" if there is none.
func ownIP() string {
	name, _, _ := strings.Cut(os.Getenv(start.EnvInterfaces), ",")
	all, _ := net.Interfaces() // none, if it fails
	for _, i := range all {
		if name != "" && i.Name != name || i.Flags&(net.FlagUp|net.FlagLoopback) != net.FlagUp {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if ip, is := a.(*net.IPNet); is && ip.IP.IsGlobalUnicast() {
				return ip.IP.String()
			}
		}
	}
	return ""
}

func runClient(ctx context.Context, n *rawnet.Net, ask func(context.Context, Way) error) error {
	control, err := n.DialWait(ctx, rawnet.Network, "1:"+controlService)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }()
	addrs := make(map[string]string)
	if err := json.NewDecoder(control).Decode(&addrs); err != nil {
		return err
	}
	if err := ask(ctx, Way{Name: "rawlane", Dial: n.DialContext}); err != nil {
		return fmt.Errorf("over rawlane: %w", err)
	}
	if err := ask(ctx, Way{Name: "TCP", Dial: new(net.Dialer).DialContext, addrs: addrs}); err != nil {
		return fmt.Errorf("over TCP: %w", err)
	}
	return nil
}

// Rounds is how often Latency measures.
const Rounds = 5000

// Latency calls a function a number of times, a tenth more to warm up, and prints how long it
// takes.
func (w *Way) Latency(what string, rounds int, f func() error) error {
	var times []time.Duration
	for i := range rounds + rounds/10 {
		start := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if i >= rounds/10 {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	us := func(q int) float64 { return float64(times[len(times)*q/100]) / 1e3 }
	fmt.Printf("%-24s %-8s p50 %8.1f us   p99 %8.1f us\n", what, w.Name, us(50), us(99))
	return nil
}

// Serving runs a server's loop in a goroutine, and says why it has ended, unless that is what stop
// did.
func Serving(what string, serve func() error, stopped ...error) {
	go func() { // until the server is stopped
		err := serve()
		for _, s := range append(stopped, net.ErrClosed) {
			if errors.Is(err, s) {
				return
			}
		}
		if err != nil {
			log.Printf("%s: %v", what, err)
		}
	}()
}
