//go:build unix

package pmi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
	"github.com/rawlane/rawlane/cluster/start/internal/pmi/pmitest"
)

// dialled is the environment of a process that dials a server's port.
func dialled(t *testing.T, serve func(c net.Conn)) func(string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // until the listener is closed
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return func(name string) string { return map[string]string{"PMI_PORT": l.Addr().String(), "PMI_ID": "1"}[name] }
}

// inherited is the environment of a process that has inherited a socket.
func inherited(t *testing.T, rank, size string, serve func(c net.Conn)) func(string) string {
	t.Helper()
	path := t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go serve(other)
	file, err := c.(*net.UnixConn).File() // Open takes it over
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = file.Close(), c.Close(), l.Close()
	return func(name string) string {
		return map[string]string{"PMI_FD": fmt.Sprint(fd), "PMI_RANK": rank, "PMI_SIZE": size}[name]
	}
}

// Processes learn their ranks and what the others have put before the fence, from either kind of
// server, by either kind of connection.
func TestClient(t *testing.T) {
	for _, slurm := range []bool{false, true} {
		s := pmitest.New(3, slurm)
		var all sync.WaitGroup
		for rank := range 3 {
			env := inherited(t, fmt.Sprint(rank), "3", func(c net.Conn) { s.Serve(c, rank) })
			if rank == 2 {
				env = dialled(t, func(c net.Conn) { s.Serve(c, rank) })
			}
			all.Go(func() {
				c, err := pmi.Open(t.Context(), env)
				if err != nil || c.Rank != rank || c.Size != 3 || c.Job != "job_7" {
					t.Errorf("%+v, %v", c, err)
					s.Abort()
					return
				}
				if err := c.Put(t.Context(), fmt.Sprintf("key-%d", rank), fmt.Sprintf("10.0.0.%d:7=x;y", rank)); err != nil {
					t.Error(err)
				}
				if err := c.Fence(t.Context()); err != nil {
					t.Error(err)
				}
				for k := range 3 {
					if v, err := c.Get(t.Context(), fmt.Sprintf("key-%d", k)); err != nil || v != fmt.Sprintf("10.0.0.%d:7=x;y", k) {
						t.Errorf("rank %d: key %d is %q, %v", rank, k, v, err)
					}
				}
				if v, err := c.Get(t.Context(), "nothing"); !errors.Is(err, pmi.ErrProtocol) {
					t.Errorf("rank %d: %q, %v for a key that nobody has put", rank, v, err)
				}
				if err := c.Finalize(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.Final() != 3 {
			t.Errorf("slurm %t: %d ended as they should", slurm, s.Final())
		}
	}
}

// Servers may say more of a value than the value, before it or behind, as MPICH's of late do.
func TestGet_MoreThanTheValue(t *testing.T) {
	for answer, want := range map[string]string{
		"cmd=get_result rc=0 value=1=2":                         "1=2",
		"cmd=get_result rc=0 msg=success value=1=2":             "1=2",
		"cmd=get_result rc=0 found=TRUE value=1=2":              "1=2",
		"cmd=get_result rc=0 value=1=2 found=TRUE":              "1=2",
		"cmd=get_result value=1=2 found=TRUE rc=0 msg=success ": "1=2",
		"cmd=get_result rc=0 value= found=FALSE":                "",
		"cmd=get_result value=1 found=TRUE rc=1":                "",
	} {
		c, err := pmi.Open(t.Context(), inherited(t, "0", "1", func(c net.Conn) {
			in := bufio.NewReader(c)
			for _, a := range []string{"cmd=response_to_init rc=0", "cmd=my_kvsname kvsname=k", answer} {
				_, _ = in.ReadString('\n')
				fmt.Fprintln(c, a)
			}
			_ = c.Close()
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(t.Context(), "k"); got != want || errors.Is(err, pmi.ErrProtocol) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", answer, got, err, want)
		}
	}
}

// Without a server there is no client, and no error.
func TestOpen_Nobody(t *testing.T) {
	for _, env := range []map[string]string{{}, {"PMI_PORT": "127.0.0.1:1"}, {"PMI_ID": "0"}, {"PMI_RANK": "0", "PMI_SIZE": "1"}} {
		if c, err := pmi.Open(t.Context(), func(name string) string { return env[name] }); c != nil || err != nil {
			t.Errorf("%v: %+v, %v", env, c, err)
		}
	}
}

// A server that is none, or says what cannot be, is an error, and no wait.
func TestOpen_Refuses(t *testing.T) {
	says := func(answers ...string) func(net.Conn) {
		return func(c net.Conn) {
			in := bufio.NewReader(c)
			for _, a := range answers {
				if _, err := in.ReadString('\n'); err != nil {
					break
				}
				fmt.Fprintln(c, a)
			}
			_ = c.Close()
		}
	}
	for name, c := range map[string]struct {
		env  func(string) string
		want error
	}{
		"no number":              {func(name string) string { return map[string]string{"PMI_FD": "x"}[name] }, nil},
		"no socket":              {func(name string) string { return map[string]string{"PMI_FD": "-1"}[name] }, nil},
		"nobody listens":         {func(name string) string { return map[string]string{"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"}[name] }, nil},
		"no rank":                {inherited(t, "", "2", says()), pmi.ErrProtocol},
		"a rank beyond all":      {inherited(t, "2", "2", says()), pmi.ErrProtocol},
		"it hangs up":            {inherited(t, "0", "2", says()), nil},
		"another version":        {inherited(t, "0", "2", says("cmd=response_to_init rc=-1")), pmi.ErrProtocol},
		"another answer":         {inherited(t, "0", "2", says("HTTP/1.1 400 Bad Request")), pmi.ErrProtocol},
		"no name":                {inherited(t, "0", "2", says("cmd=response_to_init rc=0", "cmd=get_result")), pmi.ErrProtocol},
		"a store without a name": {inherited(t, "0", "2", says("cmd=response_to_init rc=0", "cmd=my_kvsname kvsname=")), pmi.ErrProtocol},
		"a line without bound":   {inherited(t, "0", "2", says("cmd=response_to_init rc=0 msg="+strings.Repeat("x", 1<<20))), pmi.ErrProtocol},
		"told no rank":           {dialled(t, says("cmd=initack rc=0\ncmd=set size=2\ncmd=set debug=0\ncmd=set x=y")), pmi.ErrProtocol},
		"told half of it":        {dialled(t, says("cmd=initack rc=0\ncmd=set size=2")), io.EOF},
		"told something else":    {dialled(t, says("cmd=initack rc=0\ncmd=barrier_out")), pmi.ErrProtocol},
	} {
		if client, err := pmi.Open(t.Context(), c.env); client != nil || err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, client, err)
		}
	}
}

// A fence ends with its context if not all come; a wait for a server that says nothing does, too.
// The connection stays: at its end a server kills the process, which has not said why.
func TestFence_EndsWithItsContext(t *testing.T) {
	s := pmitest.New(2, false)
	server := make(chan net.Conn, 2)
	c, err := pmi.Open(t.Context(), inherited(t, "0", "2", func(c net.Conn) { server <- c; s.Serve(c, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = c.Fence(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "PMI: not all of the 2 processes have come within") ||
		!strings.HasSuffix(err.Error(), "(the launcher does not say which): context deadline exceeded") {
		t.Errorf("%v", err)
	}
	if _, err := c.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "an earlier request has had no answer") {
		t.Errorf("a request behind it: %v", err)
	}
	silent := inherited(t, "0", "2", func(c net.Conn) { server <- c })
	if c, err := pmi.Open(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", c, err)
	}
	for range 2 {
		if _, err := fmt.Fprintln(<-server, "cmd=barrier_out"); err != nil {
			t.Errorf("the connection has ended: %v", err)
		}
	}
}

// Each request ends with its context where the server says nothing.
func TestClient_ServerFallsSilent(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, c *pmi.Client) error{
		"put": func(ctx context.Context, c *pmi.Client) error { return c.Put(ctx, "k", "v") },
		"get": func(ctx context.Context, c *pmi.Client) error { _, err := c.Get(ctx, "k"); return err },
	} {
		env := inherited(t, "0", "2", func(c net.Conn) {
			in := bufio.NewReader(c)
			for _, a := range []string{"cmd=response_to_init rc=0", "cmd=my_kvsname kvsname=k"} {
				_, _ = in.ReadString('\n')
				fmt.Fprintln(c, a)
			}
		})
		c, err := pmi.Open(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := ask(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// What a server would cut is refused before it is sent.
func TestPut_Refuses(t *testing.T) {
	s := pmitest.New(1, true)
	c, err := pmi.Open(t.Context(), inherited(t, "0", "1", func(c net.Conn) { s.Serve(c, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range [][2]string{{"k", "two words"}, {"k", "a\nb"}, {"a key", "v"}, {"k=", "v"}, {"k", strings.Repeat("x", pmi.MaxValue+1)}} {
		if err := c.Put(t.Context(), kv[0], kv[1]); err == nil {
			t.Errorf("%q, %.20q: taken", kv[0], kv[1])
		}
	}
	if err := c.Put(t.Context(), "k", strings.Repeat("x", pmi.MaxValue)); err != nil || s.Puts() != 1 {
		t.Errorf("%v, %d put", err, s.Puts())
	}
}
