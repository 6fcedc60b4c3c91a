// Package manager is the verb that runs the daemon with this node's VLAN routes.
package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// managerVerb runs the manager of a node.
type managerVerb struct {
	plan, state, nic, mac string
	socket, listen        string
	readOnly              string
	discardState, json    bool
	failover              bool
	keyFile               string
	tls                   cli.TLSFiles
}

// NewCommand returns the verb manager.
func NewCommand() *cobra.Command {
	m := new(managerVerb)
	cmd := &cobra.Command{
		Use:   "manager [--plan FILE] [--interface NAME] [flags]",
		Short: "Hold this node's VLAN routes, and change them while programs run",
		Long: `Holds the routes of this node, tells its programs of each change at once, and answers over HTTP
(docs/manager-api.md) on a Unix socket and, with --listen, on TCP, until it is interrupted. The plan
is where it begins; what was set later is kept in the state file and counts from then on.

  rawlane manager --plan vbft16.yaml --interface eth0 --state /var/lib/rawlane/state
  curl --unix-socket ` + manager.DefaultSocket + ` http://manager/v1/table

With --failover, which all nodes' managers need, VIDs that carry nothing any more are avoided: the
managers probe the paths between the plan's nodes, and move pairs to a VID that works, and back when
theirs has worked again for a while. Frames to groups and to all go by the VID that reaches most
nodes.

On TCP any client that can connect can change the routes. So addresses other than the loopback's need
--tls-cert, --tls-key and --tls-ca, and clients whose certificates that CA has signed. On SIGHUP it
reads these files again. Scrapers need no certificate: give them --listen-read-only.`,
		Args: cli.NoArguments,
		RunE: m.run,
	}
	f := cmd.Flags()
	f.StringVar(&m.plan, "plan", "", "begin with this plan, where there is no state yet")
	f.StringVar(&m.state, "state", "", "keep the plan in this file across restarts")
	f.BoolVar(&m.discardState, "discard-state", false,
		"begin anew if the state file cannot be understood; it is kept aside")
	f.StringVar(&m.nic, "interface", "", "the network interface that frames go by; the only one, if there is one")
	f.StringVar(&m.mac, "mac", "", "this node's address in plans, instead of an interface's")
	f.StringVar(&m.socket, "socket", manager.DefaultSocket, "listen on this Unix socket; none if empty")
	cli.MayBeEmpty(f, "socket")
	f.StringVar(&m.listen, "listen", "", "listen on this TCP address, HOST:PORT, too")
	f.StringVar(&m.readOnly, "listen-read-only", "",
		"let everybody read metrics, health and paths on this TCP address, HOST:PORT, and nothing else")
	f.BoolVar(&m.failover, "failover", false,
		"watch the paths to the plan's nodes, and avoid VIDs that carry nothing (on all nodes, or none)")
	launch.KeyFileFlag(cmd, &m.keyFile)
	f.BoolVar(&m.json, "json", false, "log as JSON")
	m.tls.Register(f, "that clients' certificates are signed by")
	return cmd
}

// check refuses flags that cannot be meant together.
func (m *managerVerb) check(cmd *cobra.Command) error {
	hasTLS, err := m.tls.Given()
	switch {
	case err != nil:
		return err
	case m.mac != "" && m.nic != "":
		return cli.Misuse("--mac and --interface: want one of the two")
	case m.socket == "" && m.listen == "":
		return cli.Misuse("neither --socket nor --listen: no client could reach it")
	case m.failover && m.mac != "":
		return cli.Misuse("--failover: by which interface? (give --interface in place of --mac)")
	case hasTLS && m.listen == "":
		return cli.Misuse("--tls-cert, --tls-key and --tls-ca are for --listen: a Unix socket has its file's mode")
	case m.discardState && m.state == "":
		return cli.Misuse("--discard-state: of which file? (give --state)")
	case cmd.Flags().Changed("key-file") && m.keyFile != "" && !m.failover:
		return cli.Misuse("--key-file authenticates a failover's probes: give --failover, too")
	}
	if err := cli.CheckListen("listen", m.listen); err != nil {
		return err
	}
	return cli.CheckListen("listen-read-only", m.readOnly)
}

func (m *managerVerb) run(cmd *cobra.Command, _ []string) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // before the plan is read, which may take seconds
	defer signal.Stop(hangups)
	if err := m.check(cmd); err != nil {
		return err
	}
	cfg, err := m.config(cmd)
	if err != nil {
		return err
	}
	config, reload, err := m.tls.Reloading()
	if err != nil {
		return err
	}
	if err := launch.CheckKeyFile(m.keyFile); err != nil {
		return err
	}
	cfg.Listen = m.addresses(config)
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	defer claim(cfg.MAC, cfg.Logger)()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var guards sync.WaitGroup
	guards.Go(func() { reloadOn(ctx, hangups, reload, cfg.Logger) }) // until ctx ends
	if m.failover {
		g := &guard{server: s, ifname: cfg.Interface, keyFile: m.keyFile, self: cfg.MAC, log: cfg.Logger}
		guards.Go(func() { g.run(ctx) }) // until ctx ends
	}
	m.serve(ctx, s, cfg.Logger)
	cancel()
	guards.Wait()
	return s.Close()
}

// config makes the server's configuration of the flags.
func (m *managerVerb) config(cmd *cobra.Command) (server.Config, error) {
	cfg := server.Config{
		State: m.state, DiscardState: m.discardState, KeepOverrides: m.failover, Program: programName(),
		Logger: cli.NewLogger(cmd.ErrOrStderr(), m.json),
	}
	if m.plan != "" {
		cfg.ReadPlan = func(hasState bool) (*plan.Plan, error) { return m.readPlan(cmd.Context(), hasState) }
	}
	var err error
	if m.mac != "" {
		if cfg.MAC, err = transport.ParseMAC(m.mac); err != nil {
			return cfg, cli.Misuse("--mac: %v", err)
		}
		if cfg.MAC.IsZero() || cfg.MAC.IsMulticast() {
			return cfg, cli.Misuse("--mac %v: no station's address (want this node's)", cfg.MAC)
		}
		return cfg, nil
	}
	if m.nic == "" {
		if m.nic, err = launch.ChooseInterface(); err != nil {
			return cfg, err
		}
	}
	cfg.Interface = m.nic
	i, err := net.InterfaceByName(m.nic)
	if err != nil {
		return cfg, fmt.Errorf("interface %s: %w (there are: %s)", m.nic, transport.ErrNoInterface, interfaceNames())
	}
	if cfg.MAC, err = transport.MACFrom(i.HardwareAddr); err != nil {
		return cfg, fmt.Errorf("interface %s: not an Ethernet interface (its address is %q)", m.nic, i.HardwareAddr)
	}
	return cfg, nil
}

// maxCompared bounds the size of a plan's file that is read to be compared with the state, in
// bytes: its parser takes a hundred times of that, in a manager that needs it no more.
const maxCompared = 256 << 10

// readPlan reads the plan of --plan. Beside a state it is for the log alone, and a long one is not
// read.
func (m *managerVerb) readPlan(ctx context.Context, hasState bool) (*plan.Plan, error) {
	if hasState {
		if i, err := os.Stat(m.plan); err == nil && i.Size() > maxCompared {
			return nil, nil
		}
	}
	p, _, err := cli.ReadPlanAndNetwork(ctx, m.plan)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	return p, nil
}

// interfaceNames lists the machine's network interfaces.
func interfaceNames() string {
	all, err := net.Interfaces()
	if err != nil {
		return "none that the system would tell"
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// claim warns if another manager on this machine is that of the same address: each would tell its
// own programs other routes. The claim lasts until the returned function is called. It is a name in
// the network namespace (unix(7), abstract), and vanishes with the process.
func claim(mac transport.MAC, log *slog.Logger) (release func()) {
	if runtime.GOOS != "linux" {
		return func() {}
	}
	l, err := net.Listen("unix", "@rawlane-manager-"+mac.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		log.Warn("another manager of this address runs here: programs of the two may send by different routes",
			"mac", mac.String())
	}
	if err != nil {
		return func() {}
	}
	return func() { _ = l.Close() }
}

// reloadOn reads the certificates again at each signal, until ctx ends. reload is nil where there
// are none.
func reloadOn(ctx context.Context, signals <-chan os.Signal, reload func() error, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if reload == nil {
			log.Info("SIGHUP: nothing to read again without --tls-cert (a plan is changed by rawlane route apply)")
			continue
		}
		if err := reload(); err != nil {
			log.Error("the certificates could not be read again; the old ones stay in use", "err", err)
			continue
		}
		log.Info("the certificates were read again")
	}
}

func programName() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return "rawlane " + info.Main.Version
	}
	return "rawlane"
}

// addresses lists what the flags have the manager listen on.
func (m *managerVerb) addresses(config *tls.Config) (all []server.Address) {
	for _, a := range []server.Address{ // TCP first: it may be refused
		{Network: "tcp", Address: m.listen, TLS: config},
		{Network: "unix", Address: m.socket},
		{Network: "tcp", Address: m.readOnly, ReadOnly: true},
	} {
		if a.Address != "" {
			all = append(all, a)
		}
	}
	return all
}

// serve says that the manager serves, and returns when the context ends.
func (m *managerVerb) serve(ctx context.Context, s *server.Server, log *slog.Logger) {
	if m.state == "" {
		log.Warn("without --state nothing outlives this manager: its successor begins with --plan again")
	}
	_, version := s.Routes()
	log.Info("ready", "version", version, "plan", s.Plan() != nil, "pid", os.Getpid())
	go s.Watchdog(ctx, server.WatchdogInterval()) // until ctx ends
	if err := server.NotifySystemd("READY=1"); err != nil {
		log.Warn("cannot tell systemd", "err", err)
	}
	<-ctx.Done()
	_ = server.NotifySystemd("STOPPING=1") // it sees it anyway
}
