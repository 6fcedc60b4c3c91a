package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// ResultServer gives out what a node has found, in numbered parts, to a node that asks.
type ResultServer struct {
	ep     *mcd.Endpoint
	port   *mcd.Port
	done   []chan struct{} // closed when the part is published
	Asked  []chan struct{} // closed when somebody has asked for it
	Parts  [][]byte        // read once done
	answer []byte
}

// resultPort is where nodes ask, and are answered.
const resultPort mcd.PortID = 203

// A request is the part's number and the first byte that is wanted; the answer repeats it, and has
// the part's length and some bytes behind.
const (
	resultRequestLen = 2 + 4
	resultHeadLen    = resultRequestLen + 4
)

// notYet is the length of a part that is not there yet: the node is at it.
const notYet = 1<<32 - 1

// NewResultServer opens the port. Node 0 asks, and the others answer.
func NewResultServer(ep *mcd.Endpoint, parts int) (*ResultServer, error) {
	p := &ResultServer{ep: ep, Parts: make([][]byte, parts), answer: make([]byte, 0, ep.MaxPayload())}
	for range parts {
		p.done = append(p.done, make(chan struct{}))
		p.Asked = append(p.Asked, make(chan struct{}))
	}
	var err error
	if ep.Node() == 0 {
		p.port, err = ep.OpenPort(resultPort, mcd.PortOptions{})
		return p, err
	}
	opened := make(chan struct{})
	p.port, err = ep.OpenPort(resultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-opened
		for i := range batch {
			p.serve(&batch[i])
		}
	}})
	close(opened)
	return p, err
}

func (p *ResultServer) Close() { _ = p.port.Close() }

// Put publishes a part.
func (p *ResultServer) Put(part int, b []byte) {
	p.Parts[part] = b
	close(p.done[part])
}

// serve answers a request. One handler runs at a time.
func (p *ResultServer) serve(m *mcd.Message) {
	if len(m.Payload) != resultRequestLen {
		return
	}
	part, first := int(binary.BigEndian.Uint16(m.Payload)), int(binary.BigEndian.Uint32(m.Payload[2:]))
	if part >= len(p.Parts) {
		return
	}
	select {
	case <-p.Asked[part]:
	default:
		close(p.Asked[part])
	}
	p.answer = append(p.answer[:0], m.Payload...)
	select {
	case <-p.done[part]:
	default:
		p.answer = binary.BigEndian.AppendUint32(p.answer, notYet)
		_ = p.port.TrySend(m.NIC, mcd.To(m.From), p.answer) // likewise
		return
	}
	b := p.Parts[part]
	if first > len(b) {
		return
	}
	p.answer = binary.BigEndian.AppendUint32(p.answer, uint32(len(b)))
	room := p.ep.MaxPayload() - resultHeadLen
	p.answer = append(p.answer, b[first:min(len(b), first+room)]...)
	_ = p.port.TrySend(m.NIC, mcd.To(m.From), p.answer) // who gets no answer asks again
}

// Fetch asks a node for a part.
func (p *ResultServer) Fetch(ctx context.Context, node mcd.NodeID, part int) (b []byte, err error) {
	for heard := time.Now(); ; {
		request := binary.BigEndian.AppendUint16(nil, uint16(part))
		request = binary.BigEndian.AppendUint32(request, uint32(len(b)))
		if err := p.port.Send(ctx, mcd.Addr{Node: node, Port: resultPort}, request); err != nil {
			return nil, err
		}
		more, total, err := p.receive(ctx, node, request)
		switch {
		case err != nil:
			return nil, err
		case total == notYet:
			heard = time.Now()
			if err := Linger(ctx, p.ep, AskAgain); err != nil {
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
		case time.Since(heard) > AskTimeout:
			return nil, fmt.Errorf("node %d has not answered for %v (has it ended, or is its cable out?)", node, AskTimeout)
		}
	}
}

// receive waits a little for the answer to a request. total is negative if there was none.
func (p *ResultServer) receive(ctx context.Context, node mcd.NodeID, request []byte) (more []byte, total int, err error) {
	turn, cancel := context.WithTimeout(ctx, AskAgain)
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
		if from.Node == node && n >= resultHeadLen && slices.Equal(b[:resultRequestLen], request) {
			return b[resultHeadLen:n], int(binary.BigEndian.Uint32(b[resultRequestLen:])), nil
		}
	}
}
