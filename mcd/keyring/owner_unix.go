//go:build unix

package keyring

import (
	"os"
	"syscall"
)

// owner returns the user that owns a file.
func owner(info os.FileInfo) (user int, known bool) {
	return int(info.Sys().(*syscall.Stat_t).Uid), true
}
