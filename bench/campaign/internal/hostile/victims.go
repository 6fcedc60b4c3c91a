//go:build linux

package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/ring"
)

// Nodes of the bed. The victims are nodes 0 and 1 of the cluster.
const (
	client, server, attacker, bystander = 0, 1, 2, 3
	bedNodes                            = 4
)

// port is the one at which they talk.
const port mcd.PortID = 1

// length of a message: its number, and bytes that follow from it.
const length = 64

// victims are two nodes that talk: node 0 sends numbers, and node 1 sends them back.
type victims struct {
	es     [2]*mcd.Endpoint
	ports  [2]*mcd.Port
	sent   atomic.Uint64 // the last number of node 0
	echoes chan uint64   // what node 0 has got

	// What follows belongs to node 1's poller until it has come to rest.
	last     uint64        // the last number that was taken
	genuine  atomic.Uint64 // messages of node 0, each once
	accepted atomic.Uint64 // all others that were delivered
}

// fill writes a message: no other number has the same bytes behind it.
func fill(b []byte, number uint64) {
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], number)
		number = number*6364136223846793005 + 1442695040888963407
	}
}

// receive is node 1's: it answers what is new and whole, and counts the rest as accepted.
func (v *victims) receive(batch []mcd.Message, _ bool) {
	var whole [length]byte
	for i := range batch {
		b := batch[i].Payload
		number := uint64(0)
		if len(b) == length {
			number = binary.BigEndian.Uint64(b)
			fill(whole[:], number)
		}
		if number <= v.last || number > v.sent.Load() || !slices.Equal(b, whole[:]) {
			v.accepted.Add(1)
			continue
		}
		v.last = number
		v.genuine.Add(1)
		_ = v.ports[server].TrySend(0, mcd.To(mcd.Addr{Node: client, Port: port}), b) // else node 0 asks again
	}
}

// heard is node 0's.
func (v *victims) heard(batch []mcd.Message, _ bool) {
	for i := range batch {
		if b := batch[i].Payload; len(b) == length {
			select {
			case v.echoes <- binary.BigEndian.Uint64(b):
			default: // nobody asks
			}
		}
	}
}

func (v *victims) close() error {
	var errs []error
	for _, e := range v.es {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// nodeTable is the cluster's.
func nodeTable() (nodes []mcd.Node) {
	for k := range 2 {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	return nodes
}

func openVictims(bed *testbed.Bed, keys *keyring.Ring) (*victims, error) {
	v := &victims{echoes: make(chan uint64, 16)}
	for k := range v.es {
		l, err := testbed.In(bed.Node(k), func() (*ring.Link, error) {
			return ring.Open(testbed.Interface(0), ring.Config{})
		})
		if err != nil {
			return v, err
		}
		e, err := mcd.Open(mcd.Config{Cluster: 1, Node: mcd.NodeID(k), Nodes: nodeTable(), Keys: keys, Spin: -1}, l)
		if err != nil {
			return v, errors.Join(err, l.Close())
		}
		v.es[k] = e
		receive := v.heard
		if k == server {
			receive = v.receive
		}
		if v.ports[k], err = e.OpenPort(port, mcd.PortOptions{Receive: receive}); err != nil {
			return v, err
		}
	}
	return v, nil
}

// again is after how long node 0 takes an answer for lost.
const again = 20 * time.Millisecond

// ask sends a number and waits for its echo. ok is false if none came.
func (v *victims) ask(ctx context.Context, timer *time.Timer) (took time.Duration, ok bool) {
	var b [length]byte
	number := v.sent.Add(1)
	fill(b[:], number)
	began := time.Now()
	timer.Reset(again)
	_ = v.ports[client].TrySend(0, mcd.To(mcd.Addr{Node: server, Port: port}), b[:]) // busy: as if it were lost
	for {
		select {
		case got := <-v.echoes:
			if got == number {
				return time.Since(began), true
			}
		case <-timer.C:
			return again, false
		case <-ctx.Done():
			return again, false
		}
	}
}

// askUntilHeard has both know each other.
func (v *victims) askUntilHeard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	timer := time.NewTimer(again)
	for ctx.Err() == nil {
		if _, ok := v.ask(ctx, timer); ok {
			return nil
		}
	}
	return fmt.Errorf("the victims do not hear each other: %w", ctx.Err())
}

// otherKey are frames from node 0 to node 1 that another key has sealed: of a network in memory.
func otherKey(count int) (frames []transport.Frame, err error) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		return nil, err
	}
	sw := f.AddSwitch("other")
	from, err1 := f.Attach(sw, fabric.Station{MAC: testbed.MAC(client, 0)})
	to, err2 := f.Attach(sw, fabric.Station{MAC: testbed.MAC(server, 0)})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	e, err := mcd.Open(mcd.Config{Cluster: 1, Node: client, Nodes: nodeTable(), Keys: keyring.New(), Spin: -1}, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(), to.Close()) }()
	p, err := e.OpenPort(port, mcd.PortOptions{})
	if err != nil {
		return nil, err
	}
	var b [length]byte
	for i := range count {
		fill(b[:], uint64(i+1))
		if err := p.Send(context.Background(), mcd.Addr{Node: server, Port: port}, b[:]); err != nil {
			return nil, err
		}
	}
	return record(to, count)
}

// record takes messages that a link has received.
func record(l transport.Link, least int) (frames []transport.Frame, err error) {
	batch := make([]transport.Frame, 64)
	for began := time.Now(); len(frames) < least; {
		n, err := l.Poll(batch)
		if err != nil {
			return nil, err
		}
		for _, f := range batch[:n] {
			if f.Payload[0]&0x0f == 1 && f.Dst == testbed.MAC(server, 0) {
				f.Payload = slices.Clone(f.Payload)
				frames = append(frames, f)
			}
		}
		if n == 0 && time.Since(began) > 10*time.Second {
			return nil, fmt.Errorf("recorded %d messages, want %d", len(frames), least)
		}
	}
	return frames, nil
}
