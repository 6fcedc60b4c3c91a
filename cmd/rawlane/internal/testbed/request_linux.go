package testbed

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

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
