package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// publisher gives out what a node has found, in numbered parts, to a node that asks.
type publisher struct {
	ep     *mcd.Endpoint
	port   *mcd.Port
	done   []chan struct{} // closed when the part is published
	asked  []chan struct{} // closed when somebody has asked for it
	parts  [][]byte        // read once done
	answer []byte
}

// publisherPort is where nodes ask, and are answered.
const publisherPort mcd.PortID = 203

// A request is the part's number and the first byte that is wanted; the answer repeats it, and has the part's length and
// some bytes behind.
const (
	publishRequestLen = 2 + 4
	publishHeadLen    = publishRequestLen + 4
)

// notYet is the length of a part that is not there yet: the node is at it.
const notYet = 1<<32 - 1

// newPublisher opens the port. Node 0 asks, and the others answer.
func newPublisher(ep *mcd.Endpoint, parts int) (*publisher, error) {
	p := &publisher{ep: ep, parts: make([][]byte, parts), answer: make([]byte, 0, ep.MaxPayload())}
	for range parts {
		p.done = append(p.done, make(chan struct{}))
		p.asked = append(p.asked, make(chan struct{}))
	}
	var err error
	if ep.Node() == 0 {
		p.port, err = ep.OpenPort(publisherPort, mcd.PortOptions{})
		return p, err
	}
	opened := make(chan struct{})
	p.port, err = ep.OpenPort(publisherPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-opened
		for i := range batch {
			p.serve(&batch[i])
		}
	}})
	close(opened)
	return p, err
}

func (p *publisher) close() { _ = p.port.Close() }

// put publishes a part.
func (p *publisher) put(part int, b []byte) {
	p.parts[part] = b
	close(p.done[part])
}

// serve answers a request. One handler runs at a time.
func (p *publisher) serve(m *mcd.Message) {
	if len(m.Payload) != publishRequestLen {
		return
	}
	part, first := int(binary.BigEndian.Uint16(m.Payload)), int(binary.BigEndian.Uint32(m.Payload[2:]))
	if part >= len(p.parts) {
		return
	}
	select {
	case <-p.asked[part]:
	default:
		close(p.asked[part])
	}
	p.answer = append(p.answer[:0], m.Payload...)
	select {
	case <-p.done[part]:
	default:
		p.answer = binary.BigEndian.AppendUint32(p.answer, notYet)
		_ = p.port.TrySend(m.NIC, mcd.To(m.From), p.answer) // likewise
		return
	}
	b := p.parts[part]
	if first > len(b) {
		return
	}
	p.answer = binary.BigEndian.AppendUint32(p.answer, uint32(len(b)))
	room := p.ep.MaxPayload() - publishHeadLen
	p.answer = append(p.answer, b[first:min(len(b), first+room)]...)
	_ = p.port.TrySend(m.NIC, mcd.To(m.From), p.answer) // who gets no answer asks again
}

// fetch asks a node for a part.
func (p *publisher) fetch(ctx context.Context, node mcd.NodeID, part int) (b []byte, err error) {
	for heard := time.Now(); ; {
		request := binary.BigEndian.AppendUint16(nil, uint16(part))
		request = binary.BigEndian.AppendUint32(request, uint32(len(b)))
		if err := p.port.Send(ctx, mcd.Addr{Node: node, Port: publisherPort}, request); err != nil {
			return nil, err
		}
		more, total, err := p.receive(ctx, node, request)
		switch {
		case err != nil:
			return nil, err
		case total == notYet:
			heard = time.Now()
			if err := linger(ctx, p.ep, askAgain); err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		case total >= 0:
			b, heard = append(b, more...), time.Now()
			if len(b) == total {
				return b, nil
			}
		case time.Since(heard) > askPatience:
			return nil, fmt.Errorf("node %d has not answered for %v (has it ended, or is its cable out?)", node, askPatience)
		}
	}
}

// receive waits a little for the answer to a request. total is negative if there was none.
func (p *publisher) receive(ctx context.Context, node mcd.NodeID, request []byte) (more []byte, total int, err error) {
	turn, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	b := make([]byte, p.ep.MaxPayload())
	for {
		n, from, err := p.port.Recv(turn, b)
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, -1, nil
		}
		if err != nil {
			return nil, -1, err
		}
		if from.Node == node && n >= publishHeadLen && slices.Equal(b[:publishRequestLen], request) {
			return b[publishHeadLen:n], int(binary.BigEndian.Uint32(b[publishRequestLen:])), nil
		}
	}
}
