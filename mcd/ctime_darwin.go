package mcd

import (
	"os"
	"syscall"
	"time"
)

// ctime returns when a file's content, mode or owner changed last; the zero time, if that is not
// known. No program can set it, as it can the time of the last write.
func ctime(info os.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
