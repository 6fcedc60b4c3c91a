package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
)

const (
	// changeTimeout bounds the requests of a verb that changes plans, beside the lease of all.
	changeTimeout = 30 * time.Second
	// answerTimeout bounds those of a verb that reads what managers have, which they answer at
	// once. In a second more it takes in so many answers of a large cluster's as answersPerSecond.
	answerTimeout    = 5 * time.Second
	answersPerSecond = 32
)

// silence is the error of managers that have not answered for as long.
type silence time.Duration

func (s silence) Error() string {
	return fmt.Sprintf("it did not answer in %v (has it stopped, or is its machine busy?)", time.Duration(s))
}

// Is makes it the error of a context whose time is over.
func (silence) Is(target error) bool { return target == context.DeadlineExceeded }

// withTimeout bounds requests to managers. Those that do not answer in time have the error silence.
func withTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, silence(limit))
}

// timeoutOf bounds the requests of a verb that reads what so many managers have.
func timeoutOf(managers int) time.Duration {
	return answerTimeout + time.Duration(managers/answersPerSecond)*time.Second
}

// managerFlags are the flags of a verb that talks to one manager, or to those of all nodes.
type managerFlags struct {
	addr string // of one, or the list of all
	each string // with --managers: the list of several that are asked, and printed in turn
	tls  cli.TLSFiles
	json bool

	changes bool // the verb changes what the manager has
}

// one defines the flags of a verb that talks to one manager.
func (m *managerFlags) one(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.addr, "manager", "unix:"+manager.DefaultSocket, "the manager: unix:PATH or HOST:PORT")
	m.tls.Register(cmd.Flags(), "that the manager's certificate is signed by")
}

// all defines the flags of a verb that talks to the managers of all nodes.
func (m *managerFlags) all(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.addr, "managers", "",
		"the managers: a file with an address on each line, or a list with commas")
	m.tls.Register(cmd.Flags(), "that the managers' certificates are signed by")
}

func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON object")
}

// jsonOfEach is the flag's help where several managers may be asked.
const jsonOfEach = "print one JSON object; with --managers one of each, on a line, that says whose it is"

// ofNode says of which node an answer is, and by which manager: with --managers and --json alone.
type ofNode struct {
	Manager string         `json:"manager,omitempty"`
	MAC     *transport.MAC `json:"mac,omitempty"`
	Name    string         `json:"name,omitempty"`
}

// nodeOf asks a manager of several which node's it is, where that is printed.
func (m *managerFlags) nodeOf(ctx context.Context, c *manager.Client) (ofNode, error) {
	if !m.json || m.each == "" {
		return ofNode{}, nil
	}
	t, err := c.Table(ctx)
	if err != nil {
		return ofNode{}, err
	}
	return ofNode{Manager: c.Addr().String(), MAC: &t.MAC, Name: t.Name}, nil
}

// newRequest completes a verb that asks one manager for something and prints it.
func newRequest[T any](
	cmd *cobra.Command, m *managerFlags,
	get func(*manager.Client, context.Context) (T, error), text func(io.Writer, T),
) *cobra.Command {
	m.one(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return request(cmd, m, get, text) }
	return cmd
}

// several adds the flag by which a verb asks the managers of several nodes.
func (m *managerFlags) several(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&m.each, "managers", "",
		"ask all of these, in place of one: a file with an address on each line, or a list with commas")
	return cmd
}

// none refuses the flags of a verb that asks no manager, as it has files.
func (m *managerFlags) none() error {
	if given, err := m.tls.Given(); given || err != nil {
		return cli.Misuse("--tls-cert, --tls-key and --tls-ca: are for managers (and there are files alone)")
	}
	return nil
}

// request asks one manager, or all of several at once, for something and prints it: one that has
// stopped does not keep the others' answers back.
func request[T any](
	cmd *cobra.Command, m *managerFlags,
	get func(*manager.Client, context.Context) (T, error), text func(io.Writer, T),
) error {
	addr, err := manager.ParseAddr(m.addr)
	if err != nil {
		return cli.Misuse("--manager: %v", err)
	}
	addrs := []manager.Addr{addr}
	if cmd.Flags().Changed("managers") {
		if cmd.Flags().Changed("manager") {
			return cli.Misuse("--manager and --managers: want one of the two")
		}
		if addrs, err = listAddrs(m.each); err != nil {
			return err
		}
	}
	limit := timeoutOf(len(addrs))
	if m.changes {
		limit = changeTimeout
	}
	ctx, cancel := withTimeout(cmd.Context(), limit)
	defer cancel()
	return m.ask(addrs, func(clients []*manager.Client) error {
		answers, errs := make([]T, len(clients)), make([]error, len(clients))
		var calls sync.WaitGroup
		for i, c := range clients {
			calls.Go(func() { answers[i], errs[i] = get(c, ctx) }) // ends with ctx
		}
		calls.Wait()
		for i, c := range clients {
			if errs[i] != nil {
				continue
			}
			errs[i] = cli.Write(cmd.OutOrStdout(), m.json, answers[i], func(w io.Writer) {
				if m.each != "" {
					fmt.Fprintf(w, "# manager %v\n", c.Addr())
				}
				text(w, answers[i])
			})
		}
		return errors.Join(errs...)
	})
}

// askAll runs f with a client of each manager in the list.
func (m *managerFlags) askAll(f func([]*manager.Client) error) error {
	addrs, err := listAddrs(m.addr)
	if err != nil {
		return err
	}
	return m.ask(addrs, f)
}

func (m *managerFlags) ask(addrs []manager.Addr, f func([]*manager.Client) error) error {
	given, err := m.tls.Given()
	if err != nil {
		return err
	}
	if given && !slices.ContainsFunc(addrs, func(a manager.Addr) bool { return a.Network == "tcp" }) {
		return cli.Misuse("--tls-cert, --tls-key and --tls-ca are for TCP: a Unix socket has its file's mode")
	}
	config, err := m.tls.Config()
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

// listAddrs reads a list of managers. The name of a regular file is a file with a list in it.
func listAddrs(list string) (addrs []manager.Addr, err error) {
	if list == "" {
		return nil, cli.Misuse("which managers? Give --managers, a file or a list")
	}
	if info, err := os.Stat(list); err == nil && info.Mode().IsRegular() {
		return readAddrs(list)
	}
	for text := range strings.SplitSeq(list, ",") {
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
