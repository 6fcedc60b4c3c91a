package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The holder is a process with a test bed. It listens on a Unix socket. To run a program in a node,
// the command passes its standard files, and the holder starts the program with them. The command
// of an ordinary user cannot enter the bed's user namespace: only a process with one thread may.

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
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil { // closes the pipe to the command
		_ = unix.Dup2(int(null.Fd()), 1) // on failure the pipe stays open, unread
	}
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

// holder is a bed and its socket.
type holder struct {
	bed      *testbed.Bed
	listener *net.UnixListener
}

func openHolder(name string, cfg testbed.Config) (*holder, error) {
	bed, err := testbed.Open(cfg)
	if err != nil {
		return nil, err
	}
	var l *net.UnixListener
	path, err := bedSocket(name)
	if err == nil {
		_ = os.Remove(path) // of a holder that was killed
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return &holder{bed: bed, listener: l}, nil
}

func (h *holder) close() error {
	_ = h.listener.Close() // it may be closed already
	return h.bed.Close()
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
		reply.Status = cli.ExitDone
		defer func() { _ = h.listener.Close() }() // ends Accept
	default:
		reply = h.exec(from, &request, files)
	}
	for _, f := range files {
		_ = f.Close() // copies of the command's
	}
	_ = json.NewEncoder(c).Encode(reply) // the command may have gone
}

// exec runs a program in a node with the command's files. The end of the command ends the program.
func (h *holder) exec(signals *json.Decoder, r *bedRequest, files []*os.File) bedReply {
	if r.Node < 0 || r.Node >= h.bed.Nodes() || len(files) != 3 {
		return bedReply{Status: cli.ExitFailed, Error: fmt.Sprintf("no node %d: the bed has %d (0 to %d)",
			r.Node, h.bed.Nodes(), h.bed.Nodes()-1)}
	}
	p := exec.Command(r.Args[0], r.Args[1:]...)
	p.Env, p.Dir = r.Env, r.Dir
	p.Stdin, p.Stdout, p.Stderr = files[0], files[1], files[2]
	if err := h.bed.Node(r.Node).Start(p); err != nil {
		return bedReply{Status: cli.ExitFailed, Error: err.Error()}
	}
	go func() { // until the command closes the connection, after the reply or when it ends
		for {
			var s syscall.Signal
			if err := signals.Decode(&s); err != nil {
				_ = p.Process.Kill() // or it has ended already
				return
			}
			_ = p.Process.Signal(s) // as above
		}
	}()
	return bedReply{Status: testbed.ExitStatus(p.Wait())}
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
