// Package cli is what the verbs of the command share: errors and exit statuses, tables and JSON,
// progress, flags, and the files that flags name.
package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/mcd"
)

// NewRoot makes the command with the given verbs.
func NewRoot(verbs []func() *cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "rawlane VERB",
		Short:         "Messaging over raw Ethernet",
		Version:       versions(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Misuse("unknown verb %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help() // an error of the writer leaves nothing to report
			return Misuse("no verb given")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return AsMisuse(err) })
	for _, verb := range verbs {
		root.AddCommand(verb())
	}
	root.AddCommand(newVersionCommand())
	return root
}

// Group makes cmd a family of verbs. Called without a verb, it asks the question and lists them.
func Group(cmd *cobra.Command, question string, verbs ...*cobra.Command) *cobra.Command {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.Name()
	}
	list := names[0]
	if last := len(names) - 1; last > 0 {
		list = strings.Join(names[:last], ", ") + " or " + names[last]
	}
	cmd.AddCommand(verbs...)
	cmd.Args = NoArguments
	cmd.RunE = func(*cobra.Command, []string) error { return Misuse("%s (%s)", question, list) }
	return cmd
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the command, of Go and of the wire format",
		Args:  NoArguments,
		Run:   func(cmd *cobra.Command, _ []string) { cmd.Println(versions()) },
	}
}

func versions() string {
	version, goVersion := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion = info.Main.Version, info.GoVersion
	}
	return fmt.Sprintf("rawlane %s, %s, wire format %d", version, goVersion, mcd.WireVersion)
}
