// Package cli is what the verbs of the command share: errors and exit statuses, tables and JSON,
// progress, flags, and the files that flags name.
package cli

import (
	"fmt"
	"runtime/debug"
	"slices"
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help() // an error of the writer leaves nothing to report
			return Misuse("no verb given")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", helpColumns)))
	for _, verb := range verbs {
		root.AddCommand(verb())
	}
	root.AddCommand(newVersionCommand())
	root.SetHelpCommand(newHelpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's exits with 0 where there is no such shell
			shells := cmd.Commands()
			cmd.RemoveCommand(shells...)
			for _, shell := range shells {
				shell.Args = NoArguments
			}
			Group(cmd, "which shell?", shells...)
		}
	}
	wrapHelp(root)
	refuseEmpty(root)
	return root
}

// newHelpCommand is cobra's help, which exits with 0 where there is no such verb, made an error.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB...]",
		Short:   "Tell what a verb does, and its flags",
		Example: "  rawlane help bench latency",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if cmd, _, err := root.Find(args); err == nil {
				names = slices.DeleteFunc(verbsOf(cmd), func(n string) bool { return !strings.HasPrefix(n, typed) })
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return AsMisuse(err)
			}
			if len(rest) > 0 {
				return unknownVerb(cmd, rest[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
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
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownVerb(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(*cobra.Command, []string) error { return Misuse("%s (%s)", question, list) }
	return cmd
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the command, of Go and of the wire format",
		Example: "  rawlane version",
		Args:    NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versions())
			return err
		},
	}
}

func versions() string {
	version, goVersion := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, goVersion = info.Main.Version, info.GoVersion
	}
	return fmt.Sprintf("rawlane %s, %s, wire format %d", version, goVersion, mcd.WireVersion)
}
