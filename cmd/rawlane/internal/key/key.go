// Package key has the verb that makes a cluster's key file.
package key

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/keyring"
)

// NewCommand returns the verb key.
func NewCommand() *cobra.Command {
	var encrypt bool
	cmd := &cobra.Command{
		Use:   "key [--encrypt] FILE",
		Short: "Make a key file, by which a cluster's frames are authenticated",
		Long: `Writes a new random key to a file that you alone may read. A file that exists is not overwritten. Copy
the file to all nodes, and name it with --key-file, RAWLANE_KEY_FILE, mcd.Config.KeyFile or a line
"key-file FILE" in the host file.

To change the key of a running cluster, with no pause: add the new key as the last line of the file on
all nodes; then, on all nodes, move it to the first line; then, on all nodes, remove the old one. Each
time wait for two seconds: programs read the file again when it has changed. docs/security.md says what
a key protects.

  rawlane key /etc/rawlane/key
  rawlane demo --key-file /etc/rawlane/key`,
		Args: cli.Arguments(1, 1, "which file?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NotStandard("FILE", args[0]); err != nil {
				return err
			}
			ring := keyring.New()
			ring.Encrypt = encrypt
			err := ring.WriteFile(args[0])
			if errors.Is(err, fs.ErrExist) {
				if i, e := os.Stat(args[0]); e == nil && i.IsDir() {
					return fmt.Errorf("key file: %s is a folder (want a file in it)", args[0])
				}
				return fmt.Errorf("%w (nodes may use its key: give another name)", err)
			}
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%w (want a file in a folder that is there and that you may write to)", err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: a new key, which you alone may read. Copy it to all nodes, "+
				"and give it with --key-file %s\n", args[0], args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&encrypt, "encrypt", false, "have payloads encrypted, too")
	return cmd
}
