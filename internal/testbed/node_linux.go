package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Node is one network namespace: a thread of this process that lives in it and runs functions
// there.
type Node struct {
	number int
	ns     netns.NsHandle
	nl     *netlink.Handle
	work   chan func()
	closed chan struct{}

	editing sync.RWMutex // held by who uses nl, but for leave
	left    bool         // nl is closed

	ended sync.WaitGroup
}

// newNode makes a namespace with its loopback up. IPv6 is off: its neighbour discovery would send
// frames that no test asked for.
func newNode(number int) (*Node, error) {
	n := &Node{number: number, ns: netns.None(), work: make(chan func()), closed: make(chan struct{})}
	made := make(chan error)
	n.ended.Add(1)
	go n.live(made) // until close
	if err := <-made; err != nil {
		n.ended.Wait()
		return nil, err
	}
	return n, nil
}

// live is the namespace's thread. It stays locked: the runtime ends the thread with the goroutine,
// and with it the processes that were started from it.
func (n *Node) live(made chan<- error) {
	defer n.ended.Done()
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread cannot end. While it is locked here, a goroutine gets another
		// one.
		n.ended.Add(1)
		started := make(chan error)
		go n.live(started)
		made <- <-started
		runtime.UnlockOSThread()
		return
	}
	defer n.leave()
	err := n.enter()
	made <- err
	if err != nil {
		return
	}
	for {
		select {
		case f := <-n.work:
			f()
		case <-n.closed:
			return
		}
	}
}

// leave closes what enter has opened, also if it has failed half-way.
func (n *Node) leave() {
	n.editing.Lock()
	defer n.editing.Unlock()
	n.left = true
	if n.nl != nil {
		n.nl.Close()
	}
	if n.ns.IsOpen() {
		_ = n.ns.Close() // the namespace goes with its last user
	}
}

func (n *Node) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", permission(err, "CAP_SYS_ADMIN"))
	}
	var err error
	if n.ns, err = netns.Get(); err != nil {
		return fmt.Errorf("open the network namespace: %w", err)
	}
	err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("switch IPv6 off: %w", err)
	}
	if n.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	lo, err := n.nl.LinkByName("lo")
	if err == nil {
		err = n.nl.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", permission(err, "CAP_NET_ADMIN"))
	}
	return nil
}

// permission adds the cure to an error of missing privilege.
func permission(err error, capability string) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w (needs %s: run as root or inside a user namespace)", transport.ErrPermission, capability)
	}
	return err
}

// Do runs f on the node's thread, that is, in its namespace, and returns its error. Sockets that f
// opens stay in the namespace wherever they are used; goroutines that it starts run outside of it.
// One f runs at a time. Once the bed is closed none does: transport.ErrClosed.
func (n *Node) Do(f func() error) error {
	result := make(chan error, 1)
	select {
	case n.work <- func() { result <- f() }:
		return <-result
	case <-n.closed:
		return fmt.Errorf("node %d: the bed: %w", n.number, transport.ErrClosed)
	}
}

// Start starts a process in the namespace. It is killed when the bed is closed or this process
// ends.
func (n *Node) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // when the thread that starts it, the node's, ends
	return n.Do(cmd.Start)
}

func (n *Node) close() {
	close(n.closed)
	n.ended.Wait()
}
