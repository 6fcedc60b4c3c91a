package route

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

// askTimeout bounds what a verb asks of managers.
const askTimeout = 30 * time.Second

// oneManager is how a verb reaches one manager.
type oneManager struct {
	addr string
	tls  cli.TLSFiles
}

func (o *oneManager) flags(f *pflag.FlagSet) {
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

// allManagers is how a verb reaches the managers of all nodes.
type allManagers struct {
	list string
	tls  cli.TLSFiles
}

func (a *allManagers) flags(f *pflag.FlagSet) {
	f.StringVar(&a.list, "managers", "", "the managers: a file with an address on each line, or a list with commas")
	a.tls.Register(f, "that the managers' certificates are signed by")
}

// clients returns a client of each manager, and what closes them.
func (a *allManagers) clients() ([]*manager.Client, func(), error) {
	addrs, err := a.addrs()
	if err != nil {
		return nil, nil, err
	}
	config, err := a.tls.Client()
	if err != nil {
		return nil, nil, err
	}
	var clients []*manager.Client
	for _, addr := range addrs {
		clients = append(clients, manager.NewClient(addr, config))
	}
	return clients, func() {
		for _, c := range clients {
			c.Close()
		}
	}, nil
}

// addrs reads the list: a name that is a file's is a file, unless it is a manager's socket.
func (a *allManagers) addrs() ([]manager.Addr, error) {
	if a.list == "" {
		return nil, cli.Misuse("which managers? Give --managers, a file or a list")
	}
	info, err := os.Stat(a.list)
	if err == nil && info.Mode().IsRegular() {
		f, err := os.Open(a.list)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		addrs, err := manager.ParseAddrs(a.list, f)
		if err == nil && len(addrs) == 0 {
			err = errors.New(a.list + ": no managers in it (want an address on each line)")
		}
		return addrs, err
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
