// Package proxy is the verb proxy: TCP connections of programs that cannot be changed, over
// rawlane.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
)

// verb is the verb with its flags.
type verb struct {
	cluster          launch.ClusterFlags
	tcp, service, to string
}

// NewCommand returns the verb proxy.
func NewCommand() *cobra.Command {
	v := &verb{cluster: launch.ClusterFlags{Pin: "none", VID: launch.NoVID}}
	cmd := &cobra.Command{
		Use:   "proxy --tcp ADDRESS --to NODE:SERVICE | --service NAME --to HOST:PORT [flags]",
		Short: "Pass TCP connections on over rawlane, and back: for programs that cannot be changed",
		Long: `Listens on a TCP address, and passes each connection on to a service of a node; or listens as a
service, and passes each connection on to a TCP address. A client's node runs the one, a server's the
other. A half that ends is ended on the other side, and what is reset is reset there. It runs until it
is told to end (SIGINT, SIGTERM).

  rawlane proxy --node 1 --service redis --to 127.0.0.1:6379      on the server's machine
  rawlane proxy --node 0 --tcp 127.0.0.1:6379 --to 1:redis        on the client's`,
		Args: cli.NoArguments,
		RunE: v.run,
	}
	f := cmd.Flags()
	f.StringVar(&v.tcp, "tcp", "", "listen on this TCP address, such as :6379")
	f.StringVar(&v.service, "service", "", "listen as this service of the node")
	f.StringVar(&v.to, "to", "", "where connections go: NODE:SERVICE, or HOST:PORT with --service")
	f.StringVar(&v.cluster.Kind, "link", "ring", "kind of link: packet, ring, shm, udp or xdp")
	launch.LinkChoice(cmd)
	v.cluster.MachineFlags(cmd)
	return cmd
}

func (v *verb) validate() error {
	switch {
	case (v.tcp == "") == (v.service == ""):
		return cli.Misuse("want --tcp, where programs connect, or --service, which passes on to a server: " +
			"one of the two")
	case v.to == "":
		return cli.Misuse("--to: where do connections go? (NODE:SERVICE, or HOST:PORT with --service)")
	case v.cluster.Node == launch.NoNode && v.cluster.Hostfile == "":
		return cli.Misuse("which node is this? Give --node, or a --hostfile that tells")
	}
	if err := cli.CheckListen("tcp", v.tcp); err != nil {
		return err
	}
	if v.service != "" && (len(v.service) > rawnet.MaxService || strings.Contains(v.service, ":")) {
		return cli.Misuse("--service %q: want a name of 1 to %d bytes, without a colon", v.service, rawnet.MaxService)
	}
	host, port, isPair := strings.Cut(v.to, ":")
	if v.service != "" {
		var err error
		host, port, err = net.SplitHostPort(v.to)
		isPair = err == nil
	}
	if !isPair || port == "" {
		return cli.Misuse("--to %q: want NODE:SERVICE, or HOST:PORT with --service", v.to)
	}
	if v.tcp != "" && len(port) > rawnet.MaxService {
		return cli.Misuse("--to: a service of %d bytes (want 1 to %d)", len(port), rawnet.MaxService)
	}
	if v.service != "" {
		if number, err := net.LookupPort("tcp", port); err != nil || number == 0 {
			return cli.Misuse("--to %q: want HOST:PORT, with a port of 1 to 65535 or the name of one", v.to)
		}
	}
	node, err := strconv.ParseUint(host, 10, 16)
	if v.tcp != "" && (err != nil || mcd.NodeID(node) > mcd.MaxNodeID) {
		return cli.Misuse("--to %q: want NODE:SERVICE, with the node's number (HOST:PORT goes with --service)", v.to)
	}
	if err := v.cluster.Validate(); err != nil {
		return err
	}
	size, err := v.cluster.Size()
	if err == nil && v.tcp != "" && int(node) >= size {
		err = v.cluster.NoSuchNode(fmt.Sprintf("--to %q", v.to), size)
	}
	return err
}

func (v *verb) run(cmd *cobra.Command, _ []string) (err error) {
	if err := v.validate(); err != nil {
		return err
	}
	var l net.Listener
	if v.tcp != "" { // before the others are looked for: it may be in use
		if l, err = new(net.ListenConfig).Listen(cmd.Context(), "tcp", v.tcp); err != nil {
			return cli.ListenError(err)
		}
		defer func() { _ = l.Close() }()
	}
	m, err := v.cluster.Join(cmd.Context())
	if err != nil {
		return err
	}
	n, err := rawnet.Open(m.Endpoint, rawnet.Config{})
	if err != nil {
		return errors.Join(err, m.Close())
	}
	f := &forwarder{failed: func(from net.Addr, err error) {
		cmd.PrintErrf("rawlane proxy: from %v: %s\n", from, cli.Printable(err.Error()))
	}}
	if v.tcp != "" {
		f.dial = func(ctx context.Context) (net.Conn, error) { return n.DialTarget(ctx, v.to) }
	} else {
		f.dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", v.to) }
		if l, err = n.Listen(v.service); err != nil {
			return errors.Join(err, n.Close(), m.Close())
		}
	}
	cmd.PrintErrf("rawlane proxy: %v to %s\n", l.Addr(), v.to)
	if err = f.serve(cmd.Context(), l); err != nil {
		err = fmt.Errorf("listen on %v: %w", l.Addr(), err)
	}
	_ = n.Close() // the other nodes may have ended before
	return errors.Join(err, m.Close())
}
