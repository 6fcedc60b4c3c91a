package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whoever closes the command's output ends it without a word. A server that closes a connection
// does not: the command fails and says so.
func TestExecute_BrokenPipe(t *testing.T) {
	unread := writeUnread(t)
	for _, c := range []struct {
		err    error
		status int
		said   string
	}{
		{unread, 141, ""},
		{errors.Join(errors.New("bench: stopped"), unread), 141, ""},
		{writeToClosed(t), ExitFailed, "broken pipe"},
	} {
		root := &cobra.Command{
			Use: "fails", SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return c.err },
		}
		var said bytes.Buffer
		status := Execute(context.Background(), root, []string{}, nil, &said, &said)
		if status != c.status || !strings.Contains(said.String(), c.said) || (c.said == "") != (said.Len() == 0) {
			t.Errorf("%v: status %d, said %q, want %d and %q", c.err, status, &said, c.status, c.said)
		}
	}
}

// A package's errors begin with its name, which is said once where the command's is the same.
func TestExecute_SaysItsNameOnce(t *testing.T) {
	for text, want := range map[string]string{
		"fails: no file": "fails: no file\n", "no file": "fails: no file\n", "fails over: x": "fails: fails over: x\n",
	} {
		root := &cobra.Command{
			Use: "fails", SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return errors.New(text) },
		}
		var said bytes.Buffer
		if Execute(context.Background(), root, []string{}, nil, &said, &said); said.String() != want {
			t.Errorf("%q is said as %q, want %q", text, &said, want)
		}
	}
}

// writeUnread returns the error of a write to a pipe that nobody reads.
func writeUnread(t *testing.T) error {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	_, err = w.WriteString("line\n")
	return err
}

// writeToClosed returns the error of a write to a connection that the other end has closed.
func writeToClosed(t *testing.T) error {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
	_, err = c.Write([]byte("request\n"))
	return err
}
