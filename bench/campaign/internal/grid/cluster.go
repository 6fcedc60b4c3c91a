//go:build linux

package grid

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/campaign/internal/history"
	"github.com/rawlane/rawlane/internal/testbed"
)

// Cluster is a cell at work.
type Cluster struct {
	ctx    context.Context
	cell   *Cell
	bed    *testbed.Bed
	procs  []*process
	dir    string
	doneAt int64 // when the cell did what it is about, as the histories have it
}

// process is a node's.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan error    // nil: it has said so
	gone  chan struct{} // closed when it has exited
}

// Outcome is what a cell has come to.
type Outcome struct {
	Barriers, Events uint64
	// Noticed is how long each survivor took from the deaths to the failure of its barrier.
	Noticed []time.Duration
	Wrong   []string
}

// usual is how long a cell's nodes work.
const usual = 3 * time.Second

// Run runs a cell with n nodes. Its error is one of the cell's machinery; broken promises are in
// the outcome. Histories are in dir.
func (cell *Cell) Run(ctx context.Context, n int, seed uint64, dir string) (o Outcome, err error) {
	bed, err := testbed.New(testbed.Config{Nodes: n, Bridge: true})
	if err != nil {
		return o, err
	}
	c := &Cluster{ctx: ctx, cell: cell, bed: bed, dir: dir}
	defer func() { err = errors.Join(err, bed.Close()) }() // it kills what is left
	length := max(cell.For, usual)
	for k := range n {
		if err := c.start(k, n, seed); err != nil {
			return o, err
		}
	}
	x, err := c.disturb(length)
	if err != nil {
		return o, err
	}
	o.Wrong = c.await(x, length)
	all, err := c.histories()
	if err != nil {
		return o, err
	}
	o.Wrong = append(o.Wrong, history.Check(all, x)...)
	o.Events = uint64(len(all))
	for i := range all {
		if e := &all[i]; e.Kind == history.Leave && e.Node == 0 {
			o.Barriers++
		}
	}
	o.notice(all, x.Dead, c)
	return o, nil
}

// timeoutsToNotice is within how many peer timeouts a death has to be noticed.
const timeoutsToNotice = 5

// notice looks at when the survivors have noticed the deaths.
func (o *Outcome) notice(all []history.Event, dead []int, c *Cluster) {
	if len(dead) == 0 {
		return
	}
	for i := range all {
		e := &all[i]
		if e.Kind != history.Fail || e.Group != 0 || slices.Contains(dead, e.Node) {
			continue
		}
		took := time.Duration(e.At - c.doneAt)
		o.Noticed = append(o.Noticed, took)
		if most := timeoutsToNotice * c.cell.PeerTimeout; took > most {
			o.Wrong = append(o.Wrong, fmt.Sprintf("node %d has noticed the deaths after %v, want %v at most",
				e.Node, took, most))
		}
	}
}

// disturb lets the nodes work, does what the cell is about, and tells node 0 to end.
func (c *Cluster) disturb(length time.Duration) (x history.Expect, err error) {
	x.Nodes = len(c.procs)
	half := length / 2
	if err := sleep(c.ctx, half+time.Duration(x.Nodes)*50*time.Millisecond); err != nil {
		return x, err
	}
	if c.cell.Do != nil {
		c.doneAt = monotonic()
		if x.Dead, x.Unseen, err = c.cell.Do(c); err != nil {
			return x, err
		}
	}
	if len(x.Dead) > 0 {
		return x, nil // that ends the work
	}
	if err := sleep(c.ctx, half); err != nil {
		return x, err
	}
	_, _ = io.WriteString(c.procs[0].in, "stop\n") // why it has gone, await tells
	return x, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (c *Cluster) start(k, n int, seed uint64) error {
	t := task{
		Node: k, Nodes: n, Seed: seed, PeerTimeout: longTimeout,
		Packet: c.cell.Packet, Shape: c.cell.Shape,
		History: filepath.Join(c.dir, fmt.Sprintf("node%d.jsonl", k)),
	}
	if c.cell.PeerTimeout > 0 {
		t.PeerTimeout = c.cell.PeerTimeout
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(c.ctx, self)
	cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	p, err := startProcess(cmd, c.bed.Node(k).Start)
	if err != nil {
		return err
	}
	c.procs = append(c.procs, p)
	return nil
}

// startProcess starts a node's process by a function.
func startProcess(cmd *exec.Cmd, start func(*exec.Cmd) error) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan error, 1), gone: make(chan struct{})}
	var stderr strings.Builder // whole when the process has exited
	cmd.Stderr = &stderr
	out, err1 := cmd.StdoutPipe()
	in, err2 := cmd.StdinPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	p.in = in
	if err := start(cmd); err != nil {
		return nil, err
	}
	go func() { // until the process exits
		defer close(p.gone)
		line, _ := bufio.NewReader(out).ReadString('\n')
		early := strings.TrimSpace(line) != "ended"
		if !early {
			p.ended <- nil
		}
		_ = cmd.Wait() // what it has said counts
		if early {
			p.ended <- fmt.Errorf("ended early: %s", stderr.String())
		}
	}()
	return p, nil
}

// signal sends a signal. A process that has crashed before is no fault of the cell's machinery.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// await waits until all nodes of which something is expected have ended, and then ends all.
func (c *Cluster) await(x history.Expect, length time.Duration) (wrong []string) {
	late := time.After(length + startTimeout + 2*longTimeout)
	for k, p := range c.procs {
		if slices.Contains(x.Dead, k) || slices.Contains(x.Unseen, k) {
			continue
		}
		select {
		case err := <-p.ended:
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("node %d: %v", k, err))
			}
		case <-late:
			wrong = append(wrong, fmt.Sprintf("node %d has not ended", k))
			late = time.After(0)
		case <-c.ctx.Done():
			return append(wrong, c.ctx.Err().Error())
		}
	}
	for _, p := range c.procs {
		_ = p.in.Close() // those that have ended exit
	}
	for k, p := range c.procs {
		if slices.Contains(x.Dead, k) || slices.Contains(x.Unseen, k) || len(wrong) > 0 {
			_ = p.cmd.Process.Kill()
		}
		<-p.gone // its end was said, or it was killed
	}
	return wrong
}

// histories reads what the nodes have written down.
func (c *Cluster) histories() (all []history.Event, err error) {
	for k := range c.procs {
		f, err := os.Open(filepath.Join(c.dir, fmt.Sprintf("node%d.jsonl", k)))
		if errors.Is(err, os.ErrNotExist) {
			continue // it did not come so far
		}
		if err != nil {
			return nil, err
		}
		lines := json.NewDecoder(f)
		for {
			var e history.Event
			if err := lines.Decode(&e); err != nil { // the last line of one that was killed is not whole
				break
			}
			all = append(all, e)
		}
		_ = f.Close() // it was only read
	}
	return all, nil
}

// kill ends the last nodes at once.
func kill(count int) func(c *Cluster) (dead, unseen []int, err error) {
	return func(c *Cluster) (dead, unseen []int, err error) {
		n := len(c.procs)
		for k := max(n-count, 1); k < n; k++ {
			dead = append(dead, k)
			err = errors.Join(err, c.procs[k].signal(unix.SIGKILL))
		}
		return dead, nil, err
	}
}

// suspend stops the last node for a while, or for good.
func suspend(d time.Duration) func(c *Cluster) (dead, unseen []int, err error) {
	return func(c *Cluster) (dead, unseen []int, err error) {
		k := len(c.procs) - 1
		if err := c.procs[k].signal(unix.SIGSTOP); err != nil || d == 0 {
			return []int{k}, nil, err
		}
		err = sleep(c.ctx, d)
		return nil, nil, errors.Join(err, c.procs[k].signal(unix.SIGCONT))
	}
}

// linkDown takes the last node's interface down for a while, or for good.
func linkDown(d time.Duration) func(c *Cluster) (dead, unseen []int, err error) {
	return func(c *Cluster) (dead, unseen []int, err error) {
		k := len(c.procs) - 1
		if err := c.bed.Node(k).SetUp(0, false); err != nil || d == 0 {
			return []int{k}, nil, err
		}
		err = sleep(c.ctx, d)
		return nil, nil, errors.Join(err, c.bed.Node(k).SetUp(0, true))
	}
}

// changeMAC gives the last node's interface another address. On a bridge its frames still reach it,
// and it sends with the one that it had: the cluster goes on.
func changeMAC(c *Cluster) (dead, unseen []int, err error) {
	k := len(c.procs) - 1
	cmd := exec.CommandContext(c.ctx, "ip", "link", "set", "dev", testbed.Interface(0), "address", "02:99:99:99:99:99")
	if err := c.bed.Node(k).Start(cmd); err != nil {
		return nil, nil, err
	}
	return nil, nil, cmd.Wait()
}

// stealCPU runs two processes that only compute beside the cluster, for a while.
func stealCPU(c *Cluster) (dead, unseen []int, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
	defer cancel()
	var busy []*exec.Cmd
	for range 4 {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return nil, nil, err
		}
		busy = append(busy, cmd)
	}
	for _, cmd := range busy {
		_ = cmd.Wait() // killed by the end of the time
	}
	return nil, nil, nil
}
