//go:build unix

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// What is no regular file is refused and left as it is: a device would be replaced for all programs,
// and a FIFO be waited for.
func TestStateThatIsNoFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "state")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{fifo, filepath.Dir(fifo)} {
		ended := make(chan error, 1)
		go func() {
			s, err := server.New(server.Config{MAC: managertest.MAC(0), State: path, DiscardState: true})
			if err == nil {
				err = s.Close()
			}
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "want a regular file") {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: it is waited for", path)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(fifo)); err != nil || len(left) != 1 {
		t.Errorf("%v is there (%v)", left, err)
	}
}
