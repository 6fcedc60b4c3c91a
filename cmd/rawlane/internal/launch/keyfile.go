package launch

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd/keyring"
)

// EnvKeyFile names the key file where no flag does.
const EnvKeyFile = start.EnvKeyFile

// KeyFileFlag defines the flag that names the cluster's key file.
func KeyFileFlag(cmd *cobra.Command, file *string) {
	f := cmd.Flags()
	f.StringVar(file, "key-file", os.Getenv(EnvKeyFile),
		"authenticate frames with the keys in this file, as all nodes must: docs/security.md")
	f.Lookup("key-file").DefValue = "$" + EnvKeyFile
}

// CheckKeyFile reports what is wrong with a key file, before anything is opened.
func CheckKeyFile(file string) error {
	if file == "" {
		return nil
	}
	_, err := keyring.ReadFile(file)
	return err
}

// Protection of frames, by what a key file says.
const (
	Unprotected   = "none"
	Authenticated = "authenticated"
	Encrypted     = "encrypted"
)

// Protection says what the key file does for the frames of the nodes that are opened next.
func (c *ClusterFlags) Protection() (string, error) {
	if c.KeyFile == "" {
		return Unprotected, nil
	}
	ring, err := keyring.ReadFile(c.KeyFile)
	if err == nil && ring.Encrypt {
		return Encrypted, nil
	}
	return Authenticated, err
}

// Unkeyed returns the same nodes without a key. They record nothing: the file of --capture is that
// of the nodes with one.
func (c *ClusterFlags) Unkeyed() *ClusterFlags {
	u := *c
	u.KeyFile, u.captureTo = "", ""
	return &u
}

// Parent reports whether RunNodes starts a process for each node, and leaves the work to these.
func (c *ClusterFlags) Parent() bool { return !c.Here() && c.Mode == ModeProcesses }

// Together reports whether RunNodes runs all nodes in this process.
func (c *ClusterFlags) Together() bool { return c.Mode == modeThreads }

// useKeyFile takes the key file from the host file, if nothing else names one.
func (c *ClusterFlags) useKeyFile() error {
	if c.Hostfile != "" && c.KeyFile == "" {
		file, err := c.readHostfile()
		if err != nil {
			return err
		}
		c.KeyFile = file.KeyFile
	}
	return CheckKeyFile(c.KeyFile)
}
