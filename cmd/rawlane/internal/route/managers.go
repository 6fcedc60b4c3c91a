package route

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

// askTimeout bounds the requests of a verb to managers.
const askTimeout = 30 * time.Second

// oneManager is the flags of a verb that talks to one manager.
type oneManager struct {
	addr string
	tls  cli.TLSFiles
}

func (o *oneManager) register(f *pflag.FlagSet) {
	f.StringVar(&o.addr, "manager", "unix:"+manager.DefaultSocket, "the manager: unix:PATH or HOST:PORT")
	o.tls.Register(f, "that the manager's certificate is signed by")
}

// ask runs f with a client of the manager.
func (o *oneManager) ask(ctx context.Context, f func(context.Context, *manager.Client) error) error {
	addr, err := manager.ParseAddr(o.addr)
	if err != nil {
		return cli.Misuse("--manager: %v", err)
	}
	config, err := o.tls.Client()
	if err != nil {
		return err
	}
	c := manager.NewClient(addr, config)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return f(ctx, c)
}

// newQuery completes a verb that asks one manager for something and prints it.
func newQuery[T any](
	cmd *cobra.Command, get func(*manager.Client, context.Context) (T, error), text func(io.Writer, T),
) *cobra.Command {
	var o oneManager
	var asJSON bool
	cmd.Args = cli.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return query(cmd, &o, asJSON, get, text)
	}
	o.register(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

func query[T any](
	cmd *cobra.Command, o *oneManager, asJSON bool,
	get func(*manager.Client, context.Context) (T, error), text func(io.Writer, T),
) error {
	return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
		v, err := get(c, ctx)
		if err != nil {
			return err
		}
		return cli.Write(cmd.OutOrStdout(), asJSON, v, func(w io.Writer) { text(w, v) })
	})
}

func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON object")
}

// allManagers is the flags of a verb that talks to the managers of all nodes.
type allManagers struct {
	list string
	tls  cli.TLSFiles
}

func (a *allManagers) register(f *pflag.FlagSet) {
	f.StringVar(&a.list, "managers", "", "the managers: a file with an address on each line, or a list with commas")
	a.tls.Register(f, "that the managers' certificates are signed by")
}

// ask runs f with a client of each manager.
func (a *allManagers) ask(f func([]*manager.Client) error) error {
	addrs, err := a.addrs()
	if err != nil {
		return err
	}
	config, err := a.tls.Client()
	if err != nil {
		return err
	}
	var clients []*manager.Client
	for _, addr := range addrs {
		c := manager.NewClient(addr, config)
		defer c.Close()
		clients = append(clients, c)
	}
	return f(clients)
}

// addrs reads the list. The name of a regular file is a file with a list in it.
func (a *allManagers) addrs() ([]manager.Addr, error) {
	if a.list == "" {
		return nil, cli.Misuse("which managers? Give --managers, a file or a list")
	}
	if info, err := os.Stat(a.list); err == nil && info.Mode().IsRegular() {
		return readAddrs(a.list)
	}
	var addrs []manager.Addr
	for text := range strings.SplitSeq(a.list, ",") {
		addr, err := manager.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, cli.Misuse("--managers: %v, and there is no such file", err)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

func readAddrs(file string) ([]manager.Addr, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	addrs, err := manager.ParseAddrs(file, f)
	if err == nil && len(addrs) == 0 {
		err = errors.New(file + ": no managers in it (want an address on each line)")
	}
	return addrs, err
}
