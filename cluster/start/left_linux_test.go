package start

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// A node whose function ends its goroutine is closed, as its links and ports are others' to have.
func TestRunOne_ClosesANodeThatIsLeft(t *testing.T) {
	t.Setenv(EnvLink, "shm")
	t.Setenv(EnvSegment, "left")
	var left *Node
	done := make(chan error, 2)
	for k := range 2 {
		go func() {
			var err error
			defer func() { done <- err }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			job := Job{Launcher: RawlaneRun, Name: "left", Node: k, Size: 2}
			err = runOne(ctx, ctx, Config{JoinTimeout: 20 * time.Second}, job, func(_ context.Context, n *Node) error {
				if n.Node() == 0 {
					left = n
					runtime.Goexit()
				}
				return nil
			})
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if p, err := left.OpenPort(9, mcd.PortOptions{}); !errors.Is(err, mcd.ErrClosed) {
		t.Errorf("opened %v, %v; want ErrClosed", p, err)
	}
}
