package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// asker is the end of the control port on node 0.
type asker struct {
	port   *mcd.Port
	number uint32
}

// ask repeats a request to a node until the answer comes, and returns its value.
func (a *asker) ask(ctx context.Context, node mcd.NodeID, code byte) (value uint64, err error) {
	a.number++
	var request [requestLen]byte
	request[0] = code
	binary.BigEndian.PutUint32(request[1:], a.number)
	for start := time.Now(); time.Since(start) < launch.AskTimeout; {
		if err := a.port.Send(ctx, mcd.Addr{Node: node, Port: benchControl}, request[:]); err != nil {
			return 0, err
		}
		value, err = a.await(ctx, node, request)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return value, err
		}
	}
	return 0, fmt.Errorf("node %d has not answered for %v (has it ended, or is its cable out?)",
		node, launch.AskTimeout)
}

// await waits a little for the answer to a request, and skips answers to earlier ones.
func (a *asker) await(ctx context.Context, node mcd.NodeID, request [requestLen]byte) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, launch.AskAgain)
	defer cancel()
	var b [answerLen]byte
	for {
		n, from, err := a.port.Recv(ctx, b[:])
		if err != nil {
			return 0, err
		}
		if n == answerLen && from.Node == node && slices.Equal(b[:requestLen], request[:]) {
			return binary.BigEndian.Uint64(b[requestLen:]), nil
		}
	}
}
