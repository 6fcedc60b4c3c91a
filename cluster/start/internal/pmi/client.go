// Package pmi is a client of PMI-1, by which starters of parallel programs tell a process its rank,
// and pass small values between processes: Hydra's mpiexec (MPICH), and Slurm with --mpi=pmi2.
//
// A request is a line of fields key=value, and so is its answer. The server has one store for a
// job; what is put there before a fence can be got behind it.
//
// Source: the PMI-1 of MPICH (src/pmi), as Hydra 4 and Slurm 22 speak it. PMI-2 and PMIx differ.
package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// MaxValue is how long a value may be, in bytes: Slurm cuts longer lines, and does not say so.
const MaxValue = 800

// maxLine bounds a server's line, in bytes: with the longest value, and whatever else it says.
const maxLine = 16 << 10

// ErrProtocol: the server has not answered as PMI-1 does.
var ErrProtocol = errors.New("no answer of PMI-1")

// Client is a process' connection to its server. One goroutine uses it.
type Client struct {
	Rank, Size int
	Job        string // the name of its store: of all processes of a job the same, and no other's

	conn  net.Conn
	in    *bufio.Reader
	spent bool // a request has had no answer: the next one would be taken for it
}

var errSpent = errors.New("an earlier request has had no answer")

// closeTimeout is how long a server may take to let a process go.
const closeTimeout = 5 * time.Second

// kept are inherited connections that have failed: a server takes the end of one for the process'
// end, and kills it, maybe before it has said why.
var kept []net.Conn

// Open connects to the server that the environment names, if it names one; else it returns nil.
func Open(ctx context.Context, env func(string) string) (c *Client, err error) {
	conn, err := connect(ctx, env)
	if conn == nil || err != nil {
		return nil, err
	}
	c = &Client{Rank: -1, conn: conn, in: bufio.NewReaderSize(conn, maxLine)}
	defer func() {
		if err == nil {
			return
		}
		if env("PMI_FD") == "" {
			_ = conn.Close() // the first error is the one to report
		} else {
			kept = append(kept, conn)
		}
		c, err = nil, fmt.Errorf("PMI: %w", reason(ctx, err))
	}()
	defer c.until(ctx)()
	if id := env("PMI_ID"); env("PMI_FD") == "" {
		if err := c.introduce(id); err != nil {
			return nil, err
		}
	} else if c.Rank, c.Size, err = place(env("PMI_RANK"), env("PMI_SIZE")); err != nil {
		return nil, err
	}
	if _, err := c.ask("init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return nil, err
	}
	answer, err := c.ask("get_my_kvsname", "my_kvsname")
	if err != nil {
		return nil, err
	}
	if c.Job = answer["kvsname"]; c.Job == "" {
		return nil, fmt.Errorf("a store without a name: %w", ErrProtocol)
	}
	return c, nil
}

// connect uses the socket that the process has inherited, or dials a port.
func connect(ctx context.Context, env func(string) string) (net.Conn, error) {
	if number := env("PMI_FD"); number != "" {
		fd, err := strconv.Atoi(number)
		if err != nil || fd < 0 {
			return nil, fmt.Errorf("PMI_FD is %q (want the number of a socket)", number)
		}
		conn, err := inherit(fd)
		if err != nil {
			return nil, fmt.Errorf("PMI_FD=%s: %w", number, err)
		}
		return conn, nil
	}
	if addr := env("PMI_PORT"); addr != "" && env("PMI_ID") != "" {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return nil, nil
}

// introduce is how a process begins that has dialled: the server tells it what others inherit.
func (c *Client) introduce(id string) error {
	if _, err := c.ask("initack pmiid="+id, "initack"); err != nil {
		return err
	}
	told := map[string]string{}
	for range 3 { // size, rank and debug, in any order
		answer, err := c.read("set")
		if err != nil {
			return err
		}
		for key, value := range answer {
			told[key] = value
		}
	}
	var err error
	c.Rank, c.Size, err = place(told["rank"], told["size"])
	return err
}

func place(rank, size string) (int, int, error) {
	r, err1 := strconv.Atoi(rank)
	n, err2 := strconv.Atoi(size)
	if err1 != nil || err2 != nil || r < 0 || r >= n {
		return 0, 0, fmt.Errorf("rank %q of %q: %w", rank, size, ErrProtocol)
	}
	return r, n, nil
}

// until ends what is under way with ctx, and leaves the connection open: its end is the process'.
func (c *Client) until(ctx context.Context) (done func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.SetDeadline(time.Unix(1, 0)) // long ago; an error shows in what is under way
		close(ended)
	})
	return func() {
		if !stop() {
			<-ended
		}
	}
}

// reason is why a request has failed: where its context has ended, that.
func reason(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ask sends a request, and reads its answer.
func (c *Client) ask(request, answer string) (map[string]string, error) {
	if c.spent {
		return nil, errSpent
	}
	if _, err := fmt.Fprintf(c.conn, "cmd=%s\n", request); err != nil {
		c.spent = true
		return nil, err
	}
	return c.read(answer)
}

// read reads an answer.
func (c *Client) read(want string) (map[string]string, error) {
	slice, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("a line of more than %d bytes in place of %s: %w", maxLine, want, ErrProtocol)
	}
	if err != nil {
		c.spent = true
		return nil, err
	}
	line := string(slice)
	fields := Parse(line)
	if rc := fields["rc"]; fields["cmd"] != want || rc != "" && rc != "0" {
		return nil, fmt.Errorf("%q in place of %s: %w", strings.TrimSpace(line), want, ErrProtocol)
	}
	return fields, nil
}

// Parse takes a line apart. Values have no spaces: Put refuses them.
func Parse(line string) map[string]string {
	fields := map[string]string{}
	for _, field := range strings.Fields(line) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	return fields
}

// Put stores a value, which all can get behind the next fence. Neither it nor its key has spaces,
// at which Slurm would cut it.
func (c *Client) Put(ctx context.Context, key, value string) error {
	defer c.until(ctx)()
	if len(value) > MaxValue || strings.ContainsAny(key+value, " \t\n\r") || strings.Contains(key, "=") {
		return fmt.Errorf("PMI: %q for %q (want a value of at most %d bytes, without spaces)", value, key, MaxValue)
	}
	if _, err := c.ask(fmt.Sprintf("put kvsname=%s key=%s value=%s", c.Job, key, value), "put_result"); err != nil {
		return fmt.Errorf("PMI: %w", reason(ctx, err))
	}
	return nil
}

// Fence waits until all processes of the job have called it, or ctx ends: then the client is of no
// more use.
func (c *Client) Fence(ctx context.Context) error {
	defer c.until(ctx)()
	start := time.Now()
	_, err := c.ask("barrier_in", "barrier_out")
	if err == nil {
		return nil
	}
	if err = reason(ctx, err); errors.Is(err, ctx.Err()) {
		return fmt.Errorf("PMI: not all of the %d processes have come within %v (the launcher does not say which): %w",
			c.Size, time.Since(start).Round(time.Second/10), err)
	}
	return fmt.Errorf("PMI: waiting for all %d processes: %w", c.Size, err)
}

// Get returns what was put before the last fence, by any process.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	defer c.until(ctx)()
	answer, err := c.ask(fmt.Sprintf("get kvsname=%s key=%s", c.Job, key), "get_result")
	if err != nil {
		return "", fmt.Errorf("PMI: %s: %w", key, reason(ctx, err))
	}
	if strings.EqualFold(answer["found"], "false") { // some servers tell
		return "", fmt.Errorf("PMI: %s: nobody has put it: %w", key, ErrProtocol)
	}
	return answer["value"], nil
}

// Finalize tells the server that this process ends as it should, and closes the connection.
func (c *Client) Finalize() error {
	_ = c.conn.SetDeadline(time.Now().Add(closeTimeout)) // an error shows in what follows
	_, err := c.ask("finalize", "finalize_ack")
	if err := errors.Join(err, c.conn.Close()); err != nil {
		return fmt.Errorf("PMI: %w", err)
	}
	return nil
}
