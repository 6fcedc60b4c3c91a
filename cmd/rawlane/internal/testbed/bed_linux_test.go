package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
)

// signalPatience is longer than a signal takes from one end of a Unix socket to the other.
const signalPatience = 20 * time.Second

// A signal that comes before a request is sent, or while it is on its way, is the program's, and so
// are those that follow it.
func TestAsk_SignalBeforeTheRequestIsRead(t *testing.T) {
	for name, comesFirst := range map[string]bool{"before it is sent": true, "on its way": false} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", testbed.SocketDir(t))
			path, err := bedSocket("bed")
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			ctx, end := context.WithCancelCause(t.Context())
			raise := func() { end(&cli.SignalError{Signal: syscall.SIGTERM}) }
			if comesFirst {
				raise()
			}
			came := make(chan error, 1)
			go func() { came <- serveSignals(listener, raise) }()
			more := strings.Repeat("x", 2*sendBuffer(t, listener)) // so that the request waits to be read
			if err := ask(ctx, "bed", &bedRequest{Args: []string{"true", more}}); err != nil {
				t.Error(err)
			}
			if err := <-came; err != nil {
				t.Errorf("the signals: %v", err)
			}
		})
	}
}

// The folder of beds is made in one that is there: root could make any, from a variable with a typing
// error, and nobody would find the bed from a shell without it.
func TestBedSocket_NoSuchFolder(t *testing.T) {
	for _, variable := range []string{"XDG_RUNTIME_DIR", "TMPDIR"} {
		missing := filepath.Join(t.TempDir(), "missing")
		t.Setenv("XDG_RUNTIME_DIR", "") // which counts before the other one
		t.Setenv(variable, missing)
		want := missing + "/rawlane-testbed-" + strconv.Itoa(os.Getuid()) + ": no such file or directory " +
			"(want " + variable + " to name a folder that is there and that you may write to)"
		if _, err := bedSocket("bed"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(missing); err == nil {
			t.Errorf("%s=%s: the folder was made", variable, missing)
		}
	}
}

// sendBuffer returns what a Unix socket takes that nobody reads, in bytes: a message more, at most.
func sendBuffer(t *testing.T, listener *net.UnixListener) (size int) {
	t.Helper()
	conn, err := listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	failed := conn.Control(func(fd uintptr) {
		size, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF) // all have the same
	})
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return size
}

// serveSignals is a holder that has a signal raised before it reads a request, and answers when that
// has come behind it, and another one of the process.
func serveSignals(listener *net.UnixListener, raise func()) error {
	c, err := listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer c.Close()
	files, err := receiveFiles(c)
	for _, f := range files {
		_ = f.Close()
	}
	if err != nil {
		return err
	}
	raise()
	var request bedRequest
	var first, second syscall.Signal
	from := json.NewDecoder(c)
	if err = from.Decode(&request); err == nil {
		err = c.SetReadDeadline(time.Now().Add(signalPatience)) // else a lost one holds up the test
	}
	if err == nil {
		err = from.Decode(&first)
	}
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGINT) // which is caught since the first one came
	}
	if err == nil {
		err = from.Decode(&second)
	}
	if err == nil && (first != syscall.SIGTERM || second != syscall.SIGINT) {
		err = fmt.Errorf("%v and %v", first, second)
	}
	_ = json.NewEncoder(c).Encode(bedReply{}) // the answer ends the test, whatever came
	return err
}
