// Package clitest runs verbs of the command inside a test's process.
package clitest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// Verbs are the verbs that a test's command has.
type Verbs []func() *cobra.Command

// Run carries out a command line, and returns what it printed, what it said, and its exit status.
func (v Verbs) Run(t testing.TB, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cli.Execute(t.Context(), cli.NewRoot(v), args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}
