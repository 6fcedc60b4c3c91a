package testbed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// bedRequest is a request of the command to the holder. Signals follow.
type bedRequest struct {
	Do   string   `json:"do"` // exec, down
	Node int      `json:"node,omitempty"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// bedSignal is a signal for the program.
type bedSignal struct {
	Signal int `json:"signal"`
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

// envUser tells the holder, root inside a user namespace, the user of the bed.
const envUser = "RAWLANE_TESTBED_USER"

func bedUser() int {
	if uid, err := strconv.Atoi(os.Getenv(envUser)); err == nil {
		return uid
	}
	return os.Getuid()
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
	b := make([]byte, binary.BigEndian.Uint32(length[:]))
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

// send sends r, with the standard files of this process if files is set.
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
	_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}
