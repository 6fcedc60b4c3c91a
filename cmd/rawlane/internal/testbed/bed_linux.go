package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// bedUp starts a holder, and returns when the bed is made, or when the command's context has ended
// and the holder with it. The holder is this command again, with envUser set.
func bedUp(cmd *cobra.Command, name string, cfg testbed.Config) error {
	if os.Getenv(envUser) != "" {
		return bedHold(cmd.Context(), name, cfg)
	}
	if c, err := dialBed(name); err == nil {
		_ = c.Close() // it answers, and that is enough
		return errBedExists(name)
	}
	holder := exec.Command("/proc/self/exe", os.Args[1:]...)
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
	ctx := cmd.Context()
	serves := context.AfterFunc(ctx, func() { // a signal of the terminal's is not the holder's
		_ = holder.Process.Signal(unix.SIGTERM) // it may have ended
		_ = said.Close()
	})
	var reply bedReply
	err = json.NewDecoder(said).Decode(&reply)
	if !serves() { // it has been told to end, also where the reply came first
		_ = holder.Wait() // it has no more to say
		return context.Cause(ctx)
	}
	if err != nil {
		_ = holder.Wait() // it has ended, and this is why there is no answer
		return fmt.Errorf("test bed %s: its holder ended before the bed was made", name)
	}
	if reply.Error != "" {
		_ = holder.Wait() // it has said why it ends
		return errors.New(reply.Error)
	}
	return errors.Join(describeBed(cmd.OutOrStdout(), cfg), holder.Process.Release())
}

func errBedExists(name string) error {
	return fmt.Errorf("test bed %s: there is one already (rawlane testbed down --name %s)", name, name)
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

// bedNames lists the beds whose holders answer.
func bedNames() (names []string, err error) {
	path, err := bedSocket("any")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if c, err := dialBed(e.Name()); err == nil {
			_ = c.Close() // it answers, and that is enough
			names = append(names, e.Name())
		}
	}
	return names, err
}

func bedDown(ctx context.Context, name string) error { return ask(ctx, name, &bedRequest{}) }

func bedExec(ctx context.Context, name string, node int, args []string) error {
	if err := findProgram(args[0]); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return ask(ctx, name, &bedRequest{
		Node: node, Args: append([]string{path}, args[1:]...), Env: os.Environ(), Dir: dir,
	})
}

// ask sends a request and then the signals of this process to the holder, and waits for its answer.
// The first signal is that which ends ctx: it may have come before the program has started.
func ask(ctx context.Context, name string, r *bedRequest) error {
	c, err := dialBed(name)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := send(c, r); err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	defer signal.Stop(signals)
	defer context.AfterFunc(ctx, func() { passSignals(ctx, c, signals) })()
	var reply bedReply
	switch err := json.NewDecoder(c).Decode(&reply); {
	case err != nil:
		return fmt.Errorf("the test bed has gone: %w", err)
	case reply.Error != "":
		return errors.New(reply.Error)
	case reply.Status != cli.ExitDone:
		return &cli.StatusError{Node: r.Node, Status: reply.Status, How: fmt.Sprintf("exit status %d", reply.Status)}
	}
	return nil
}

// passSignals sends the signal that has ended a context, and those that follow it, until this
// process ends.
func passSignals(ctx context.Context, c *net.UnixConn, signals chan os.Signal) {
	var first *cli.SignalError
	if !errors.As(context.Cause(ctx), &first) {
		return
	}
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) { // else as under nohup
		signal.Notify(signals, unix.SIGHUP)
	}
	to := json.NewEncoder(c)
	for s := os.Signal(first.Signal); ; s = <-signals {
		_ = to.Encode(s) // the program may have ended
	}
}

// bedRequest is a request of the command to the holder, a JSON object: to run a program, or without
// one, to remove the bed. The program's signals follow, as numbers.
type bedRequest struct {
	Node int      `json:"node,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// bedReply is the holder's answer.
type bedReply struct {
	Status int    `json:"status"` // the program's exit status
	Error  string `json:"error,omitempty"`
}

// bedSocket returns the path of a bed's socket, in a directory that only this user can enter.
func bedSocket(name string) (string, error) {
	variable, dir := "XDG_RUNTIME_DIR", os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		variable, dir = "", os.TempDir()
	}
	dir = filepath.Join(dir, "rawlane-testbed-"+strconv.Itoa(bedUser()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("test bed: %w", cli.FolderError(variable, err))
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s: not a folder of this user's alone (remove it)", dir)
	}
	return filepath.Join(dir, name), nil
}

// envUser makes the command the holder, and tells it, root inside a user namespace, the bed's user.
const envUser = "RAWLANE_TESTBED_USER"

func bedUser() int {
	if uid, err := strconv.Atoi(os.Getenv(envUser)); err == nil {
		return uid
	}
	return os.Getuid()
}

// send sends a request. The standard files of this process come with a blank before it.
func send(c *net.UnixConn, r *bedRequest) error {
	if _, _, err := c.WriteMsgUnix([]byte{' '}, unix.UnixRights(0, 1, 2), nil); err != nil {
		return err
	}
	return json.NewEncoder(c).Encode(r)
}
