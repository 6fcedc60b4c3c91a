package rpc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
	"github.com/rawlane/rawlane/transport/fault"
)

// A handler that ends its goroutine, as FailNow of a test does, fails its call; those that wait
// behind it are served, and its server ends.
func TestHandler_EndsItsGoroutine(t *testing.T) {
	bubble(t, 2, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
		hold := make(chan struct{})
		s := c.serve(t, 1, "exit", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
			<-hold
			runtime.Goexit()
			return nil, nil
		})
		c.serve(t, 1, "echo", echo)
		exits, echoes := make(chan error), make(chan error)
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "exit", nil); exits <- err }()
		synctest.Wait()
		go func() { _, err := c.nodes[0].Call(t.Context(), 1, "echo", nil); echoes <- err }()
		synctest.Wait()
		close(hold)
		err := <-exits
		if _, remote := errors.AsType[*rpc.RemoteError](err); !remote || !strings.Contains(err.Error(), "has ended its goroutine") {
			t.Errorf("%v", err)
		}
		must(t, <-echoes)
		must(t, s.Close())
	})
}

// Requests that wait behind a handler that ends its goroutine are served also if its caller has died,
// and answered also if the domain closes.
func TestHandler_EndsItsGoroutineForNobody(t *testing.T) {
	for _, closes := range []bool{false, true} {
		bubble(t, 3, fault.Config{}, rpc.Config{Concurrency: 1}, func(t *testing.T, c *cluster) {
			hold := make(chan struct{})
			c.serve(t, 1, "exit", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) {
				<-hold
				runtime.Goexit()
				return nil, nil
			})
			s := c.serve(t, 1, "echo", echo)
			go func() { _, _ = c.nodes[2].Call(t.Context(), 1, "exit", nil) }()
			synctest.Wait()
			echoes, closed := make(chan error, 1), make(chan error, 1)
			go func() { _, err := c.nodes[0].Call(limit(t), 1, "echo", nil); echoes <- err }()
			synctest.Wait()
			if closes {
				go func() { closed <- c.nodes[1].Close() }()
				synctest.Wait()
			} else {
				c.faults[2].Cut(true)
				time.Sleep(3 * memfifo.DefaultPeerTimeout / 2)
				closed <- nil
			}
			close(hold)
			if err := <-echoes; closes != errors.Is(err, rpc.ErrClosed) || !closes && err != nil {
				t.Errorf("the domain closes: %v; the call behind: %v", closes, err)
			}
			must(t, <-closed)
			must(t, s.Close())
		})
	}
}

// An inline handler that ends the goroutine that polls, whichever that is, fails its call, too; a
// worker that ends so has others in its place.
func TestHandler_InlineEndsAWorker(t *testing.T) {
	c := open(t, 2, time.Minute, fault.Config{}, rpc.Config{}) // in real time: workers poll
	c.serve(t, 1, "echo", echo)
	exit := func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil }
	_, err := c.nodes[1].Serve("exit", rpc.ServerConfig{Inline: true, Handler: exit})
	must(t, err)
	for range 5 {
		_, err := c.nodes[0].Call(limit(t), 1, "echo", nil)
		must(t, err)
		_, err = c.nodes[0].Call(limit(t), 1, "exit", nil)
		if _, remote := errors.AsType[*rpc.RemoteError](err); !remote || !strings.Contains(err.Error(), "has ended its goroutine") {
			t.Errorf("%v", err)
		}
	}
}

// A handler that panics ends the process with its own words.
func TestHandler_Panics(t *testing.T) {
	const panics = "RAWLANE_TEST_PANICS"
	if os.Getenv(panics) == "" {
		cmd := exec.CommandContext(limit(t), os.Args[0], "-test.run=^TestHandler_Panics$")
		cmd.Env = append(os.Environ(), panics+"=yes")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: my own words") || strings.Contains(string(out), "fatal error") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	c := open(t, 2, 0, fault.Config{}, rpc.Config{})
	c.serve(t, 1, "panic", func(context.Context, mcd.NodeID, []byte, []byte) ([]byte, error) { panic("my own words") })
	_, _ = c.nodes[0].Call(limit(t), 1, "panic", nil)
}
