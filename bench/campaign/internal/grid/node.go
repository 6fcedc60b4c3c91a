//go:build linux

package grid

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/bench/campaign/internal/history"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

// nodeVariable holds a node's task in the environment of its process.
const nodeVariable = "RAWLANE_CAMPAIGN_NODE"

// task is what a node's process does.
type task struct {
	Node, Nodes int
	Seed        uint64
	PeerTimeout time.Duration
	Packet      bool // the link is packet, not ring
	Shape       Shape
	History     string // the file
}

// Node is the main function of a node's process: it returns at once, and false, in any other.
func Node() bool {
	text := os.Getenv(nodeVariable)
	if text == "" {
		return false
	}
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = t.run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "node %d: %v\n", t.Node, err)
		os.Exit(1)
	}
	return true
}

// program is a node at work.
type program struct {
	task
	log    *json.Encoder // each event by itself: a node may be killed
	link   *fault.Link
	ep     *mcd.Endpoint
	group  *barrier.Group
	domain *memfifo.Domain
	window *memfifo.Window
	fifo   *memfifo.FIFO
	stops  []*memfifo.Remote // by node: their windows
	next   *memfifo.Remote   // the window of the next node
	queue  *memfifo.Remote   // its FIFO
	pushed uint64
	stop   atomic.Bool   // node 0 is to end the work
	closed chan struct{} // all have ended
	data   [slot]byte
}

// A node's window: the generation at which all stop, and two slots into which the node before puts,
// in turns: what is put before barrier k+2 may not disturb who reads behind barrier k.
const (
	slotAt  = 64
	slot    = 4000
	fifoLen = 1 << 16
)

func (t task) run() error {
	p := &program{task: t, closed: make(chan struct{})}
	f, err := os.Create(t.History)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	p.log = json.NewEncoder(f)
	if err := p.open(); err != nil {
		return err
	}
	go p.listen() // until the end of the process
	stop := p.Shape.startBlackhole(p.link)
	err = p.work()
	stop()
	if err == nil {
		p.note(history.Event{Kind: history.Ended})
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Println("ended")
	<-p.closed // until then it answers the others
	return nil
}

// monotonic is the time that all processes of the machine have, in nanoseconds.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // it cannot fail
	return at.Nano()
}

func (p *program) note(e history.Event) {
	e.Node, e.At = p.Node, monotonic()
	if err := p.log.Encode(e); err != nil {
		panic(err)
	}
}

// open opens all layers, and gets the keys of the other nodes.
func (p *program) open() error {
	inner, err := p.openLink()
	if err != nil {
		return err
	}
	seed := rand.New(rand.NewPCG(p.Seed, uint64(p.Node)))
	if p.link, err = fault.New(inner, seed, p.Shape.config(seed)); err != nil {
		return err
	}
	var nodes []mcd.Node
	for k := range p.Nodes {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	cfg := mcd.Config{Cluster: 1, Node: mcd.NodeID(p.Node), Nodes: nodes, Spin: -1}
	if p.ep, err = mcd.Open(cfg, p.link); err != nil {
		return err
	}
	service, err := barrier.Open(p.ep, barrier.Config{})
	if err != nil {
		return err
	}
	if p.group, err = service.Group(barrier.GroupConfig{PeerTimeout: p.PeerTimeout}); err != nil {
		return err
	}
	if p.domain, err = memfifo.Open(p.ep, memfifo.Config{PeerTimeout: p.PeerTimeout}); err != nil {
		return err
	}
	if p.window, err = p.domain.Register(1, make([]byte, slotAt+2*slot), memfifo.All); err != nil {
		return err
	}
	if p.fifo, err = p.domain.NewFIFO(1, make([]byte, fifoLen)); err != nil {
		return err
	}
	return p.exchange()
}

func (p *program) openLink() (transport.Link, error) {
	if p.Packet {
		return packet.Open(testbed.Interface(0), packet.Config{})
	}
	return ring.Open(testbed.Interface(0), ring.Config{})
}

// keys are what a node tells the others.
type keys struct{ Window, FIFO memfifo.Key }

func (p *program) exchange() error {
	x, err := cluster.OpenExchanger(p.ep, cluster.ExchangerConfig{})
	if err != nil {
		return err
	}
	own, err := json.Marshal(keys{p.window.Key(), p.fifo.Key()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	all, err := x.Exchange(ctx, own)
	if err != nil {
		return err
	}
	for k, b := range all {
		var theirs keys
		if err := json.Unmarshal(b, &theirs); err != nil {
			return err
		}
		p.stops = append(p.stops, p.domain.Remote(theirs.Window))
		if k == (p.Node+1)%p.Nodes {
			p.next, p.queue = p.domain.Remote(theirs.Window), p.domain.Remote(theirs.FIFO)
		}
	}
	return nil
}

// listen waits for the word to stop, which node 0 passes on, and for the end of all.
func (p *program) listen() {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if line != "" {
		p.stop.Store(true)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	close(p.closed)
}

// work goes from barrier to barrier until node 0 has told all to stop, or nodes have died.
func (p *program) work() error {
	ctx := context.Background()
	for g := uint64(1); ; g++ {
		p.operate(ctx, g)
		if p.stop.Load() {
			p.tellAll(ctx, g)
		}
		if dead, err := p.pass(ctx, p.group, 0, g); err != nil {
			return err
		} else if dead != nil {
			return p.goOnWithout(ctx, dead)
		}
		p.look(g)
		if stop, err := p.window.Load(0); err != nil || stop == g {
			return err
		}
	}
}

// operate puts and pushes to the next node, and flushes.
func (p *program) operate(ctx context.Context, g uint64) {
	for i := range p.data {
		p.data[i] = byte(g)
	}
	copy(p.data[:], fmt.Appendf(nil, "%020d", g))
	p.expect(p.next.PutNotify(ctx, slotAt+int64(g%2)*slot, p.data[:]))
	pushed := p.queue.Push(ctx, fmt.Appendf(nil, "%020d", p.pushed+1))
	p.expect(pushed)
	flushed := p.domain.Flush(ctx)
	p.expect(flushed)
	if pushed == nil {
		p.pushed++
	}
	if pushed == nil && flushed == nil {
		p.note(history.Event{Kind: history.Pushed, Peer: (p.Node + 1) % p.Nodes, Value: p.pushed})
	}
}

// tellAll tells all nodes at once: the first contact takes some round trips, of seconds in some
// cells.
func (p *program) tellAll(ctx context.Context, g uint64) {
	errs := make([]error, len(p.stops))
	var told sync.WaitGroup
	for k, r := range p.stops {
		if k == p.Node {
			errs[k] = p.window.Store(0, g)
			continue
		}
		told.Go(func() { _, errs[k] = r.Swap(ctx, 0, g) })
	}
	told.Wait()
	for _, err := range errs {
		p.expect(err)
	}
}

// expect notes an error, and a peer that is taken for dead: which deaths are right the checker
// knows.
func (p *program) expect(err error) {
	var down *memfifo.PeerDownError
	switch {
	case errors.As(err, &down):
		p.note(history.Event{Kind: history.Down, Peer: int(down.Node), Text: err.Error()})
	case err != nil:
		p.note(history.Event{Kind: history.Error, Text: err.Error()})
	}
}

// pass goes through a barrier. It returns who is dead if that has failed.
func (p *program) pass(ctx context.Context, group *barrier.Group, number int, g uint64) (dead []mcd.NodeID, _ error) {
	p.note(history.Event{Kind: history.Enter, Group: number, Generation: g})
	err := group.Barrier(ctx)
	var down *barrier.NodeDownError
	if errors.As(err, &down) {
		e := history.Event{Kind: history.Fail, Group: number, Generation: g, Text: err.Error()}
		for _, n := range down.Nodes {
			e.Dead = append(e.Dead, int(n))
		}
		p.note(e)
		return down.Nodes, nil
	}
	if err != nil {
		return nil, err
	}
	p.note(history.Event{Kind: history.Leave, Group: number, Generation: g})
	return nil, nil
}

// look reads what the node before has put.
func (p *program) look(g uint64) {
	got := bytes.Clone(p.window.Bytes()[slotAt+int(g%2)*slot:][:slot])
	e := history.Event{Kind: history.Read, Generation: g, Peer: (p.Node + p.Nodes - 1) % p.Nodes, Whole: true}
	_, err := fmt.Sscanf(string(got[:20]), "%d", &e.Value)
	for _, b := range got[20:] {
		e.Whole = e.Whole && err == nil && b == byte(e.Value)
	}
	p.note(e)
	p.popAll()
}

// popAll pops what the node before has pushed.
func (p *program) popAll() {
	before := (p.Node + p.Nodes - 1) % p.Nodes
	var rec [64]byte
	for {
		n, ok, err := p.fifo.TryPop(rec[:])
		if !ok {
			return
		}
		e := history.Event{Kind: history.Pop, Peer: before}
		if _, scanned := fmt.Sscanf(string(rec[:n]), "%d", &e.Value); scanned != nil || err != nil {
			p.expect(fmt.Errorf("pop %q: %w", rec[:n], errors.Join(err, scanned)))
		}
		p.note(e)
	}
}

// barriersAfter is how many barriers the survivors have among themselves.
const barriersAfter = 5

// goOnWithout makes a group of the survivors, as all of them do, and goes through some barriers of
// it.
func (p *program) goOnWithout(ctx context.Context, dead []mcd.NodeID) error {
	for _, n := range dead {
		if int(n) == p.Node {
			return nil // the others count this node as dead
		}
	}
	rest, err := p.group.Without(dead...)
	if err != nil {
		return err
	}
	for g := uint64(1); g <= barriersAfter; g++ {
		if more, err := p.pass(ctx, rest, 1, g); err != nil || more != nil {
			return err
		}
	}
	p.popAll() // all that was flushed before the first of these
	return nil
}
