package testbed

import (
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signalPatience is longer than a signal takes from one end of a Unix socket to the other.
const signalPatience = 20 * time.Second

// A signal that comes while a request is on its way is the program's.
func TestAsk_SignalBeforeTheRequestIsRead(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	path, err := bedSocket("bed")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	raised := make(chan os.Signal, 1)
	signal.Notify(raised, syscall.SIGTERM)
	defer signal.Stop(raised)

	came := make(chan error, 1)
	go func() { came <- serveSignal(listener, raised) }()
	more := strings.Repeat("x", 8<<20) // more than a socket takes, so that the request waits to be read
	if err := ask("bed", &bedRequest{Args: []string{"true", more}}); err != nil {
		t.Error(err)
	}
	if err := <-came; err != nil {
		t.Errorf("the signal: %v", err)
	}
}

// serveSignal is a holder that has the process get a signal before it reads a request, and answers
// when the signal has come behind it.
func serveSignal(listener *net.UnixListener, raised <-chan os.Signal) error {
	c, err := listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer c.Close()
	files, err := receiveFiles(c)
	for _, f := range files {
		_ = f.Close()
	}
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
	if err != nil {
		return err
	}
	<-raised
	if err := c.SetReadDeadline(time.Now().Add(signalPatience)); err != nil {
		return err
	}
	var request bedRequest
	var s syscall.Signal
	from := json.NewDecoder(c)
	if err = from.Decode(&request); err == nil {
		err = from.Decode(&s)
	}
	_ = json.NewEncoder(c).Encode(bedReply{}) // the answer ends the test, whatever came
	return err
}
