//go:build unix

package keyring

import (
	"os"
	"syscall"
)

// owner returns the user that owns a file.
func owner(info os.FileInfo) (user int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(s.Uid), true
}
