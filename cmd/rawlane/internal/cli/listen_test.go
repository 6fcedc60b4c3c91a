package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// Why an address cannot be listened on comes with what helps.
func TestListenError(t *testing.T) {
	for cause, want := range map[syscall.Errno]string{
		syscall.EACCES:        "setcap cap_net_raw,cap_net_bind_service+ep", // setcap takes what it does not name away
		syscall.EADDRINUSE:    "another process listens there",
		syscall.EADDRNOTAVAIL: "no interface here has that address",
		syscall.EINVAL:        "",
	} {
		err := ListenError(fmt.Errorf("listen tcp :80: bind: %w", cause))
		if _, cure, _ := strings.Cut(err.Error(), cause.Error()); !strings.Contains(cure, want) || want == "" && cure != "" {
			t.Errorf("%v", err)
		}
	}
}
