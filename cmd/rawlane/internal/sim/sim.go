// Package sim is the verbs that run experiments in virtual time: the reproductions of papers.
package sim

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// NewCommand returns the verb sim.
func NewCommand() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "sim VERB",
		Short: "Run experiments on networks that are not there, in virtual time",
	}, "which?", newVBFTCommand())
}
