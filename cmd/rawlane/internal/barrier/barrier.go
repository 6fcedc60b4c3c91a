// Package barrier is the verbs that draw barrier schedules and trace barriers.
package barrier

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// NewCommand returns the verb barrier.
func NewCommand() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "barrier VERB",
		Short: "Draw barrier algorithms, predict their time, see who is late",
	}, "which?", newShowCommand(), newTraceCommand())
}
