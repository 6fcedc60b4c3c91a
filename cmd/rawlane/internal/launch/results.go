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

// ResultServer hands the results of a node, in numbered parts, to node 0, which asks for them.
type ResultServer struct {
	ep     *mcd.Endpoint
	port   *mcd.Port
	done   []chan struct{} // closed when the part is there
	Asked  []chan struct{} // closed by the first request for it
	parts  [][]byte        // read after done
	answer []byte
}

// resultPort carries the requests and the answers.
const resultPort mcd.PortID = 203

// A request is the number of a part and an offset in it. The answer is the request, the length of
// the part, and bytes from the offset on.
const (
	resultRequestLen = 2 + 4
	resultHeadLen    = resultRequestLen + 4
)

// notYet is the length of a part that is not there yet.
const notYet = 1<<32 - 1

// NewResultServer opens the port: to ask on node 0, to answer on the others.
func NewResultServer(ep *mcd.Endpoint, parts int) (*ResultServer, error) {
	s := &ResultServer{ep: ep, parts: make([][]byte, parts), answer: make([]byte, 0, ep.MaxPayload())}
	for range parts {
		s.done = append(s.done, make(chan struct{}))
		s.Asked = append(s.Asked, make(chan struct{}))
	}
	var err error
	if ep.Node() == 0 {
		s.port, err = ep.OpenPort(resultPort, mcd.PortOptions{})
		return s, err
	}
	opened := make(chan struct{})
	s.port, err = ep.OpenPort(resultPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-opened
		for i := range batch {
			s.serve(&batch[i])
		}
	}})
	close(opened)
	return s, err
}

// Close closes the port.
func (s *ResultServer) Close() { _ = s.port.Close() }

// Put makes a part available.
func (s *ResultServer) Put(part int, b []byte) {
	s.parts[part] = b
	close(s.done[part])
}

// serve answers a request.
func (s *ResultServer) serve(m *mcd.Message) {
	if len(m.Payload) != resultRequestLen {
		return
	}
	part, first := int(binary.BigEndian.Uint16(m.Payload)), int(binary.BigEndian.Uint32(m.Payload[2:]))
	if part >= len(s.parts) {
		return
	}
	select {
	case <-s.Asked[part]:
	default:
		close(s.Asked[part])
	}
	s.answer = append(s.answer[:0], m.Payload...)
	select {
	case <-s.done[part]:
	default:
		s.answer = binary.BigEndian.AppendUint32(s.answer, notYet)
		_ = s.port.TrySend(m.NIC, mcd.To(m.From), s.answer) // node 0 asks again
		return
	}
	b := s.parts[part]
	if first > len(b) {
		return
	}
	s.answer = binary.BigEndian.AppendUint32(s.answer, uint32(len(b)))
	room := s.ep.MaxPayload() - resultHeadLen
	s.answer = append(s.answer, b[first:min(len(b), first+room)]...)
	_ = s.port.TrySend(m.NIC, mcd.To(m.From), s.answer) // node 0 asks again
}

// Fetch gets a part of a node.
func (s *ResultServer) Fetch(ctx context.Context, node mcd.NodeID, part int) (b []byte, err error) {
	for heard := time.Now(); ; {
		request := binary.BigEndian.AppendUint16(nil, uint16(part))
		request = binary.BigEndian.AppendUint32(request, uint32(len(b)))
		if err := s.port.Send(ctx, mcd.Addr{Node: node, Port: resultPort}, request); err != nil {
			return nil, err
		}
		more, total, err := s.receive(ctx, node, request)
		switch {
		case err != nil:
			return nil, err
		case total == notYet:
			heard = time.Now()
			if err := Linger(ctx, s.ep, AskAgain); err != nil {
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
			return nil, fmt.Errorf("node %d has not answered for %v (has it ended, or is its cable out?)",
				node, AskTimeout)
		}
	}
}

// receive waits a little for the answer to a request. Without one, total is negative.
func (s *ResultServer) receive(
	ctx context.Context, node mcd.NodeID, request []byte,
) (more []byte, total int, err error) {
	turn, cancel := context.WithTimeout(ctx, AskAgain)
	defer cancel()
	b := make([]byte, s.ep.MaxPayload())
	for {
		n, from, err := s.port.Recv(turn, b)
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

// Gather gets a part of every node, in the order of the endpoint's nodes; of node 0, its own.
func (s *ResultServer) Gather(ctx context.Context, part int) (all [][]byte, err error) {
	for _, n := range s.ep.Nodes() {
		b := s.parts[part]
		if n.ID != s.ep.Node() {
			if b, err = s.Fetch(ctx, n.ID, part); err != nil {
				return nil, err
			}
		}
		all = append(all, b)
	}
	return all, nil
}
