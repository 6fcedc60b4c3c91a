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
	cmd    *exec.Cmd
	in     io.WriteCloser
	ended  chan error // nil: it has said so
	stderr strings.Builder
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
	if _, err := io.WriteString(c.procs[0].in, "stop\n"); err != nil {
		return x, fmt.Errorf("tell node 0 to stop: %w: %s", err, c.procs[0].stderr.String())
	}
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
	p := &process{cmd: exec.CommandContext(c.ctx, self), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	p.cmd.Stderr = &p.stderr
	out, err1 := p.cmd.StdoutPipe()
	in, err2 := p.cmd.StdinPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	p.in = in
	if err := c.bed.Node(k).Start(p.cmd); err != nil {
		return err
	}
	c.procs = append(c.procs, p)
	go func() { // until the process ends or says that it has done all
		line, _ := bufio.NewReader(out).ReadString('\n')
		if strings.TrimSpace(line) == "ended" {
			p.ended <- nil
			return
		}
		p.ended <- fmt.Errorf("ended early: %s", p.stderr.String())
	}()
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
		_ = p.cmd.Wait() // its end was said, or it was killed
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
			err = errors.Join(err, c.procs[k].cmd.Process.Kill())
		}
		return dead, nil, err
	}
}

// suspend stops the last node for a while, or for good.
func suspend(d time.Duration) func(c *Cluster) (dead, unseen []int, err error) {
	return func(c *Cluster) (dead, unseen []int, err error) {
		k := len(c.procs) - 1
		if err := c.procs[k].cmd.Process.Signal(unix.SIGSTOP); err != nil || d == 0 {
			return []int{k}, nil, err
		}
		err = sleep(c.ctx, d)
		return nil, nil, errors.Join(err, c.procs[k].cmd.Process.Signal(unix.SIGCONT))
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
