package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
)

// A bed is held by a process of its own, the holder, which listens on a Unix socket. To run a
// program in a node, the command passes it its standard files; the holder starts the program with
// them. An ordinary user's commands could not enter the bed's user namespace by themselves: only a
// process with one thread may.

// bedRequest is what the command asks the holder for; signals follow.
type bedRequest struct {
	Do   string   `json:"do"` // exec, down
	Node int      `json:"node,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// bedSignal has the holder send a signal to the program.
type bedSignal struct {
	Signal int `json:"signal"`
}

// bedReply is the holder's answer.
type bedReply struct {
	Status int    `json:"status"` // the program's exit status
	Error  string `json:"error,omitempty"`
}

// bedSocket returns the path of a bed's socket, in a directory that is this user's alone.
func bedSocket(name string) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "rawlane-testbed-"+strconv.Itoa(bedUser()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm() != 0o700 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s: not this user's alone (remove it)", dir)
	}
	return filepath.Join(dir, name), nil
}

// envUser tells the holder, who is root inside a user namespace, whose bed it is.
const envUser = "RAWLANE_TESTBED_USER"

func bedUser() int {
	if uid, err := strconv.Atoi(os.Getenv(envUser)); err == nil {
		return uid
	}
	return os.Getuid()
}

// bedUp starts a holder, and returns when the bed is made.
func bedUp(cmd *cobra.Command, name string, cfg testbed.Config) error {
	if c, err := dialBed(name); err == nil {
		_ = c.Close() // it was only a look
		return fmt.Errorf("test bed %s: there is one already (rawlane testbed down --name %s)", name, name)
	}
	holder := exec.Command("/proc/self/exe", "testbed", "hold", "--name="+name, "--nodes="+strconv.Itoa(cfg.Nodes),
		"--nics="+strconv.Itoa(cfg.NICs), "--mtu="+strconv.Itoa(cfg.MTU), "--bridge="+strconv.FormatBool(cfg.Bridge))
	holder.Args[0] = os.Args[0]
	holder.Env = append(os.Environ(), envUser+"="+strconv.Itoa(os.Getuid()))
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return fmt.Errorf("start the holder: %w", err)
	}
	var reply bedReply
	if err := json.NewDecoder(said).Decode(&reply); err != nil {
		_ = holder.Wait() // it has ended, and this is why there is no answer
		return fmt.Errorf("test bed %s: its holder ended before the bed was made", name)
	}
	if reply.Error != "" {
		_ = holder.Wait() // it has said why it ends
		return errors.New(reply.Error)
	}
	describeBed(cmd, cfg)
	return holder.Process.Release()
}

// bedHold is the holder: it makes the bed, says so on its standard output, and serves it until it
// is told to end.
func bedHold(ctx context.Context, name string, cfg testbed.Config) error {
	ready := json.NewEncoder(os.Stdout)
	h, err := openHolder(name, cfg)
	if err != nil {
		return errors.Join(ready.Encode(bedReply{Error: err.Error()}), err)
	}
	if err := ready.Encode(bedReply{}); err != nil {
		return errors.Join(err, h.close())
	}
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil { // the command that waits for it shall not wait on
		_ = unix.Dup2(int(null.Fd()), 1) // or else output goes where nobody reads
	}
	ctx, h.end = context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = h.listener.Close() }) // ends Accept
	defer stop()
	for {
		c, err := h.listener.AcceptUnix()
		if err != nil {
			return h.close()
		}
		go h.serve(c) // until the program ends, or the bed
	}
}

// holder is a bed and the socket by which it is reached.
type holder struct {
	bed      *testbed.Bed
	listener *net.UnixListener
	end      context.CancelFunc
}

func openHolder(name string, cfg testbed.Config) (*holder, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	path, err := bedSocket(name)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a holder that was killed
		return nil, err
	}
	bed, err := testbed.New(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return &holder{bed: bed, listener: l}, nil
}

func (h *holder) close() error {
	_ = h.listener.Close() // it may be closed already
	return h.bed.Close()
}

// serve does what one connection asks for.
func (h *holder) serve(c *net.UnixConn) {
	defer c.Close()
	request, files, err := receiveRequest(c)
	reply := bedReply{Status: cli.ExitFailed}
	switch {
	case err != nil:
		reply.Error = err.Error()
	case request.Do == "down":
		reply.Status = cli.ExitDone
		defer h.end()
	default:
		reply = h.exec(c, request, files)
	}
	for _, f := range files {
		_ = f.Close() // copies of the command's
	}
	_ = json.NewEncoder(c).Encode(reply) // the command may have gone
}

// exec runs a program in a node with the command's files. If the command goes, so does the program.
func (h *holder) exec(c *net.UnixConn, r *bedRequest, files []*os.File) bedReply {
	if r.Node < 0 || r.Node >= h.bed.Nodes() || len(r.Args) == 0 || len(files) != 3 {
		return bedReply{Status: cli.ExitFailed, Error: fmt.Sprintf("no node %d: the bed has %d (0 to %d)", r.Node, h.bed.Nodes(), h.bed.Nodes()-1)}
	}
	p := exec.Command(r.Args[0], r.Args[1:]...)
	p.Env, p.Dir = r.Env, r.Dir
	p.Stdin, p.Stdout, p.Stderr = files[0], files[1], files[2]
	if err := h.bed.Node(r.Node).Start(p); err != nil {
		return bedReply{Status: cli.ExitFailed, Error: err.Error()}
	}
	go func() { // until the command closes the connection, which it does when it has the reply, or ends
		for from := json.NewDecoder(c); ; {
			var s bedSignal
			if err := from.Decode(&s); err != nil {
				_ = p.Process.Kill() // or it has ended already
				return
			}
			_ = p.Process.Signal(syscall.Signal(s.Signal)) // as above
		}
	}()
	err := p.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return bedReply{}
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return bedReply{Status: 128 + int(exit.Sys().(syscall.WaitStatus).Signal())}
	case errors.As(err, &exit):
		return bedReply{Status: exit.ExitCode()}
	}
	return bedReply{Status: cli.ExitFailed, Error: err.Error()}
}

// receiveRequest reads a request, and the files that came with it.
func receiveRequest(c *net.UnixConn) (*bedRequest, []*os.File, error) {
	control := make([]byte, unix.CmsgSpace(3*4))
	first := make([]byte, 1) // the files come with the first byte; the request follows
	_, n, _, _, err := c.ReadMsgUnix(first, control)
	if err != nil {
		return nil, nil, err
	}
	files, err := passedFiles(control[:n])
	if err != nil {
		return nil, nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, files, err
	}
	b := make([]byte, int(length[0])<<24|int(length[1])<<16|int(length[2])<<8|int(length[3]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, files, err
	}
	r := new(bedRequest)
	return r, files, json.Unmarshal(b, r)
}

func passedFiles(control []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

// dialBed connects to a bed's holder.
func dialBed(name string) (*net.UnixConn, error) {
	path, err := bedSocket(name)
	if err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("test bed %s: there is none (rawlane testbed up --name %s)", name, name)
	}
	return c, nil
}

// request sends r, with this process's standard files if they are to be passed.
func (r *bedRequest) send(c *net.UnixConn, files bool) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var rights []byte
	if files {
		rights = unix.UnixRights(0, 1, 2)
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return err
	}
	_, err = c.Write(append([]byte{byte(len(b) >> 24), byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b...))
	return err
}

func bedDown(cmd *cobra.Command, name string) error {
	c, err := dialBed(name)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := (&bedRequest{Do: "down"}).send(c, false); err != nil {
		return err
	}
	return awaitBed(c, 0)
}

func bedExec(cmd *cobra.Command, name string, node int, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := dialBed(name)
	if err != nil {
		return err
	}
	defer c.Close()
	r := &bedRequest{Do: "exec", Node: node, Args: append([]string{path}, args[1:]...), Env: os.Environ(), Dir: dir}
	if err := r.send(c, true); err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)
	go func() { // until the process ends
		for to := json.NewEncoder(c); ; {
			s := <-signals
			_ = to.Encode(bedSignal{int(s.(syscall.Signal))}) // the program may have ended
		}
	}()
	return awaitBed(c, node)
}

// awaitBed waits for the holder's answer to a request for a node.
func awaitBed(c *net.UnixConn, node int) error {
	var reply bedReply
	switch err := json.NewDecoder(c).Decode(&reply); {
	case err != nil:
		return fmt.Errorf("the test bed has gone: %w", err)
	case reply.Error != "":
		return errors.New(reply.Error)
	case reply.Status != cli.ExitDone:
		return &cli.StatusError{Node: node, Status: reply.Status}
	}
	return nil
}
