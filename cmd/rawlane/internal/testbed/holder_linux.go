package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/filelock"
	"github.com/rawlane/rawlane/internal/procgroup"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The holder is a process with a test bed. It listens on a Unix socket. To run a program in a node,
// the command passes its standard files, and the holder starts the program with them. The command
// of an ordinary user cannot enter the bed's user namespace: only a process with one thread may.

// bedHold is the holder: it makes the bed, says so on its standard output, and serves it until it
// is told to end.
func bedHold(ctx context.Context, name string, cfg testbed.Config) error {
	ready := json.NewEncoder(os.Stdout)
	h, err := openHolder(ctx, name, cfg)
	if err != nil {
		return errors.Join(ready.Encode(bedReply{Error: err.Error()}), err)
	}
	if err := ready.Encode(bedReply{}); err != nil {
		return errors.Join(err, h.close())
	}
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil { // closes the pipe to the command
		_ = unix.Dup2(int(null.Fd()), 1) // on failure the pipe stays open, unread
	}
	stop := context.AfterFunc(ctx, func() { _ = h.listener.Close() }) // ends Accept
	defer stop()
	for {
		c, err := h.listener.AcceptUnix()
		if err != nil {
			err := h.close()
			h.ending.Wait() // the answer goes out first
			return err
		}
		go h.serve(c) // until the program ends, or the bed
	}
}

// holder is a bed and its socket.
type holder struct {
	bed      *testbed.Bed
	lock     *filelock.Lock // of the name; nil without
	listener *net.UnixListener
	close    func() error   // once, and for all callers
	ending   sync.WaitGroup // requests to end it that have no answer yet
}

func openHolder(ctx context.Context, name string, cfg testbed.Config) (*holder, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	bed, err := makeBed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h := &holder{bed: bed}
	h.close = sync.OnceValue(h.end)
	path, err := bedSocket(name)
	if err == nil {
		h.lock, err = lockName(name, path)
	}
	if err == nil {
		_ = os.Remove(path) // of a holder that was killed
		h.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// makeBed makes a bed, unless ctx ends first: then the process is to end, and the kernel removes
// what there is.
func makeBed(ctx context.Context, cfg testbed.Config) (bed *testbed.Bed, err error) {
	made := make(chan struct{})
	go func() { // until it is made, or the process ends
		defer close(made)
		bed, err = testbed.New(cfg)
	}()
	select {
	case <-made:
		return bed, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lockName has this process alone hold a bed's name, until it ends or closes the lock.
func lockName(name, path string) (*filelock.Lock, error) {
	l, err := filelock.Try(path + ".lock")
	if errors.Is(err, filelock.ErrHeld) {
		err = errBedExists(name)
	}
	return l, err
}

// end removes the bed with all that runs in it, and then gives its name free.
func (h *holder) end() error {
	if h.listener != nil {
		_ = h.listener.Close() // it may be closed already
	}
	return errors.Join(endInside(h.bed), h.bed.Close(), h.lock.Close())
}

// endRounds bounds how often endInside looks again for what was started while it looked.
const endRounds = 100

// endInside kills the processes in a bed's namespaces, and waits for none: also those that programs
// have left behind.
func endInside(bed *testbed.Bed) error {
	inside := map[string]bool{}
	for k := range bed.Nodes() {
		err := bed.Node(k).Do(func() error {
			ns, err := os.Readlink("/proc/thread-self/ns/net")
			inside[ns] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	killed := map[int]bool{os.Getpid(): true}
	for range endRounds {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		more := false
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || killed[pid] {
				continue
			}
			if ns, err := os.Readlink("/proc/" + e.Name() + "/ns/net"); err == nil && inside[ns] {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
				killed[pid], more = true, true
			}
		}
		if !more {
			break
		}
	}
	return nil
}

// serve carries out the request of one connection.
func (h *holder) serve(c *net.UnixConn) {
	defer c.Close()
	var request bedRequest
	from := json.NewDecoder(c)
	files, err := receiveFiles(c)
	if err == nil {
		err = from.Decode(&request)
	}
	reply := bedReply{Status: cli.ExitFailed}
	switch {
	case err != nil:
		reply.Error = err.Error()
	case len(request.Args) == 0:
		h.ending.Add(1)
		defer h.ending.Done() // after the reply
		reply.Status = cli.ExitDone
		if err := h.close(); err != nil { // ends Accept, too
			reply = bedReply{Status: cli.ExitFailed, Error: err.Error()}
		}
	default:
		reply = h.exec(from, &request, files)
	}
	for _, f := range files {
		_ = f.Close() // copies of the command's
	}
	_ = json.NewEncoder(c).Encode(reply) // the command may have gone
}

// exec runs a program in a node with the command's files. Signals are its group's, as at a
// terminal; the end of the command ends the group.
func (h *holder) exec(signals *json.Decoder, r *bedRequest, files []*os.File) bedReply {
	if r.Node < 0 || r.Node >= h.bed.Nodes() || len(files) != 3 {
		return bedReply{Status: cli.ExitFailed, Error: fmt.Sprintf("no node %d: the bed has %d (0 to %d)",
			r.Node, h.bed.Nodes(), h.bed.Nodes()-1)}
	}
	p := exec.Command(r.Args[0], r.Args[1:]...)
	p.Env, p.Dir = r.Env, r.Dir
	p.Stdin, p.Stdout, p.Stderr = files[0], files[1], files[2]
	procgroup.Own(p)
	if err := h.bed.Node(r.Node).Start(p); err != nil {
		return bedReply{Status: cli.ExitFailed, Error: err.Error()}
	}
	var over atomic.Bool // what it leaves behind in the bed goes on
	go func() {          // until the command closes the connection, after the reply or when it ends
		for {
			var s syscall.Signal
			err := signals.Decode(&s)
			if err != nil {
				s = unix.SIGKILL
			}
			if over.Load() {
				return
			}
			_ = unix.Kill(-p.Process.Pid, s) // it may just have ended
			if err != nil {
				return
			}
		}
	}()
	err := p.Wait()
	over.Store(true)
	return bedReply{Status: testbed.ExitStatus(err)}
}

// receiveFiles reads what comes before a request.
func receiveFiles(c *net.UnixConn) (files []*os.File, err error) {
	control := make([]byte, unix.CmsgSpace(3*4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}
