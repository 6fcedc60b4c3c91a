package shm_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm"
)

// patience is how long what must happen may take, as in the tests of this package's inside.
const patience = shm.Patience

// The test's program, started again with these, is another process with a link.
const (
	envRole = "SHM_TEST_ROLE"
	envDir  = "SHM_TEST_DIR"
)

// asProcess is the other process: a link with address 9 that sends to address 1 without end, or
// receives nothing, until it is killed.
func asProcess(role string) error {
	l, err := shm.Open("test", shm.Config{Dir: os.Getenv(envDir), MAC: mac(9)})
	if err != nil {
		return err
	}
	if role == "forks" {
		fork()
	}
	fmt.Println("open") // the parent goes on
	for i := uint64(0); role == "sends"; i++ {
		p := binary.BigEndian.AppendUint64(nil, i)
		for len(p) < 64+int(i%500) {
			p = append(p, byte(i))
		}
		for {
			_, err := l.Send([]transport.Frame{{Dst: mac(1), EtherType: transport.EtherTypeDefault, Payload: p}})
			if err == nil {
				break
			}
			if !errors.Is(err, transport.ErrBusy) {
				return err
			}
			runtime.Gosched()
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent is
	return err
}

// fork makes another process that has the sockets of this one, and knows nothing of them, as a C
// library does. It ends with the test: its standard input does then.
//
//go:norace
func fork() {
	const clone, read, exit = syscall.SYS_CLONE, syscall.SYS_READ, syscall.SYS_EXIT_GROUP
	_ = syscall.SetNonblock(0, false)
	var b [1]byte
	if pid, _, _ := syscall.RawSyscall6(clone, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
		return
	}
	for { // no function of Go's: its other threads are not here
		if n, _, err := syscall.RawSyscall(read, 0, uintptr(unsafe.Pointer(&b)), 1); n == 0 || err != 0 && err != syscall.EINTR {
			syscall.RawSyscall(exit, 0, 0, 0)
		}
	}
}

// start starts another process, which is killed at the end of the test at the latest.
func start(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+dir)
	cmd.Stderr = os.Stderr
	read, in, err := os.Pipe() // it outlives cmd.Wait
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	cmd.Stdin = read
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		kill(t, cmd)
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

// kill ends a process as nothing else does: it has no chance to give anything back.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its status says that it was killed
	}
}

// until polls and waits until done says so, and gives each frame to got.
func until(t *testing.T, l *shm.Link, got func(*transport.Frame), done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	frames := make([]transport.Frame, 16)
	for !done() {
		n, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for i := range frames[:n] {
			got(&frames[i])
		}
		if n == 0 && !done() {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("Wait: %v (stations: %v)", err, l.Stations())
			}
		}
	}
}

func none(*transport.Frame) {}

func alone(l *shm.Link) func() bool { return func() bool { return len(l.Stations()) == 0 } }

// A process that is killed while it sends leaves whole frames, and nothing that is locked: neither
// its receiver nor one that takes its address.
func TestProcess_KilledWhileItSends(t *testing.T) {
	dir := shm.Folder(t)
	l, err := shm.Open("test", shm.Config{Dir: dir, MAC: mac(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for round := range 3 {
		other := start(t, "sends", dir)
		var next uint64
		check := func(f *transport.Frame) {
			i := binary.BigEndian.Uint64(f.Payload)
			if i != next || len(f.Payload) != 64+int(i%500) || f.Payload[len(f.Payload)-1] != byte(i) || f.Src != mac(9) {
				t.Fatalf("round %d: frame %d of %d bytes from %v, want frame %d", round, i, len(f.Payload), f.Src, next)
			}
			next++
		}
		until(t, l, check, func() bool { return next > 5000 })
		kill(t, other)
		until(t, l, check, alone(l))
		for n := next; ; n = next { // what was sent before it died is there still
			until(t, l, check, func() bool { return true })
			var frames [16]transport.Frame
			got, err := l.Poll(frames[:])
			for i := range frames[:got] {
				check(&frames[i])
			}
			if err != nil || next == n {
				break
			}
		}
		if _, err := l.Send([]transport.Frame{{Dst: mac(9), Payload: make([]byte, 64)}}); err != nil {
			t.Errorf("round %d: a frame for a process that died: %v", round, err)
		}
		if c := l.Counters(); c.RxMalformed != 0 || c.RxFrames == 0 {
			t.Errorf("round %d: %+v", round, c)
		}
	}
	if err := l.Close(); err != nil { // it waits for who removes the other one's socket
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// A process that is killed while it owes room stops its sender only until then.
func TestProcess_KilledWhileItsRingIsFull(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	other := start(t, "receives nothing", dir)
	f := []transport.Frame{{Dst: mac(9), Payload: make([]byte, 1400)}}
	sent := 0
	for ; sent < 1<<20; sent++ {
		if _, err := l.Send(f); err != nil {
			if !errors.Is(err, transport.ErrBusy) {
				t.Fatal(err)
			}
			break
		}
	}
	if sent < 300 || sent == 1<<20 {
		t.Fatalf("%d frames fit into a ring of 512 KiB", sent)
	}
	if _, err := l.Send([]transport.Frame{{Dst: transport.Broadcast, Payload: make([]byte, 1400)}}); err != nil {
		t.Errorf("a broadcast waits for the slowest: %v", err)
	}
	kill(t, other)
	until(t, l, none, alone(l))
	if n, err := l.Send(f); n != 1 || err != nil {
		t.Errorf("after its death: %d, %v", n, err)
	}
}

// One address is one process's: the second is told whose it is. It is free once that one is dead.
func TestProcess_SameAddressTwice(t *testing.T) {
	dir := shm.Folder(t)
	other := start(t, "receives nothing", dir)
	_, err := shm.Open("test", shm.Config{Dir: dir, MAC: mac(9)})
	if want := fmt.Sprintf("is the address of process %d ", other.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	if _, err := shm.Open("test", shm.Config{Dir: dir, MAC: mac(1)}); err == nil {
		t.Error("an address of this process is another link's as well")
	}
	if err := l.MeetErr(); err != nil {
		t.Errorf("one has looked whose the address is: %v", err)
	}
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	if s := l.Stations(); s[0] != (shm.Station{MAC: mac(9), PID: other.Process.Pid}) {
		t.Errorf("stations: %v", s)
	}
	kill(t, other)
	open(t, shm.Config{Dir: dir, MAC: mac(9)})
	until(t, l, none, func() bool {
		s := l.Stations()
		return len(s) == 1 && s[0].PID == os.Getpid()
	})
	if entries, err := os.ReadDir(shm.SegmentFolder(dir)); err != nil || len(entries) != 3 {
		t.Errorf("in the folder: %v, %v; want a lock and two sockets", entries, err)
	}
}

// A process that is killed is gone, though another one that it has forked has its sockets: frames go
// to nobody, its address is free, and its successor is met.
func TestProcess_KilledBehindAFork(t *testing.T) {
	dir := shm.Folder(t)
	l := open(t, shm.Config{Dir: dir, MAC: mac(1)})
	other := start(t, "forks", dir)
	until(t, l, none, func() bool { return len(l.Stations()) == 1 })
	kill(t, other)
	until(t, l, none, alone(l))
	later := open(t, shm.Config{Dir: dir, MAC: mac(2)}) // which finds no socket of the dead one
	if s := later.Stations(); len(s) != 1 || s[0].MAC != mac(1) {
		t.Errorf("one that comes later meets %v", s)
	}
	open(t, shm.Config{Dir: dir, MAC: mac(9)})
	until(t, l, none, func() bool {
		s := l.Stations()
		return len(s) == 2 && s[1] == shm.Station{MAC: mac(9), PID: os.Getpid()}
	})
	if entries, err := os.ReadDir(shm.SegmentFolder(dir)); err != nil || len(entries) != 4 {
		t.Errorf("in the folder: %v, %v; want a lock and three sockets", entries, err)
	}
}
