// Package grant is the verb that hands packet sockets to programs of ordinary users.
package grant

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/server"
	notify "github.com/rawlane/rawlane/vlan/manager/server"
)

// defaultRules is the usual file of rules.
const defaultRules = "/etc/rawlane/grants"

// grantVerb runs the service, or checks its file.
type grantVerb struct {
	rules, socket, check string
	json                 bool
}

// NewCommand returns the verb grant.
func NewCommand() *cobra.Command {
	g := new(grantVerb)
	cmd := &cobra.Command{
		Use:   "grant [--rules FILE] [--socket PATH] | --check FILE",
		Short: "Hand packet sockets to programs of users who lack CAP_NET_RAW, by a file of rules",
		Long: `Opens packet sockets for programs that may not, until it is interrupted. It needs CAP_NET_RAW, and
CAP_NET_ADMIN and CAP_BPF for link xdp (lines with "xdp yes"). The programs need nothing, and find
it by themselves: at ` + grant.DefaultSocket + `, or where
` + grant.EnvSocket + ` says. What a socket receives is fixed to an interface, an EtherType, clusters and
ports; who may have which is said by the file of rules, a line for each (docs/without-root.md):

  allow user alice   interface eth0   cluster 7      ports 0-99,246-255
  allow group hpc    interface eth0   cluster 1-100  ports any
  allow user carol   interface eth2   cluster any    ports any   xdp yes
  limit group hpc    links 8          memory 64M

SIGHUP reads the file anew; what was granted stays. Each grant and refusal is a line of the log.`,
		Args: cli.NoArguments,
		RunE: g.run,
	}
	f := cmd.Flags()
	f.StringVar(&g.rules, "rules", defaultRules, "file that says who may use which interfaces, clusters and ports")
	f.StringVar(&g.socket, "socket", grant.DefaultSocket, "listen on this Unix socket")
	f.StringVar(&g.check, "check", "", "only read this file of rules, and print what it allows")
	f.BoolVar(&g.json, "json", false, "log as JSON")
	return cmd
}

func (g *grantVerb) run(cmd *cobra.Command, _ []string) error {
	if g.check != "" {
		for _, other := range []string{"rules", "socket", "json"} {
			if cmd.Flags().Changed(other) {
				return cli.Misuse("--check and --%s: want one of the two (--check FILE starts no service)", other)
			}
		}
		r, err := server.ReadRules(g.check)
		if err != nil {
			return err
		}
		text := r.String()
		if !strings.HasPrefix(text, "allow ") { // those lines are the first
			text += "# nobody gets anything: no line allows it\n"
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	log := cli.NewLogger(cmd.ErrOrStderr(), g.json)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	s, err := server.Open(g.socket, server.Config{Rules: g.rules, Logger: log})
	if err != nil {
		return err
	}
	log.Info("ready", "socket", g.socket, "rules", g.rules, "pid", os.Getpid())
	if err := notify.NotifySystemd("READY=1"); err != nil {
		log.Warn("cannot tell systemd", "err", err)
	}
	serve(cmd.Context(), s, reload, log)
	_ = notify.NotifySystemd("STOPPING=1") // it sees it anyway
	return s.Close()
}

// serve reads the rules anew when it is told to, and returns when the context ends.
func serve(ctx context.Context, s *server.Server, reload <-chan os.Signal, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-reload:
			if err := s.Reload(); err != nil {
				log.Error("the old rules stay", "err", err)
				continue
			}
			log.Info("rules read")
		}
	}
}
