package launch

import (
	"context"
	"errors"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// AskTimeout is the time without an answer after which a node that asks, or that measures,
	// gives up: a machine whose cores others use can stand still for seconds.
	AskTimeout = 10 * time.Second
	// Silence is the time without a message of node 0 after which the other nodes give up.
	Silence = 30 * time.Second
	// LingerTime is for the last answer to be repeated, in case that node 0 has not received it.
	LingerTime = 100 * time.Millisecond
	// dismissTime is how long node 0 asks for the last answer: longer than the other lingers, as
	// that one may have to wait for a core.
	dismissTime = time.Second
)

// Linger polls the endpoint for a while, or until ctx ends.
func Linger(ctx context.Context, e *mcd.Endpoint, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var never mcd.Completion
	if err := e.Await(ctx, &never); ctx.Err() == nil {
		return err
	}
	return nil
}

// Dismiss sends each node the request that says that the work is over. A node may have answered and
// be gone, and its answer be lost: its silence is no error.
func Dismiss(ctx context.Context, x *cluster.Exchanger, nodes []mcd.NodeID, request []byte) error {
	for _, n := range nodes {
		turn, cancel := context.WithTimeout(ctx, dismissTime)
		_, err := x.Ask(turn, n, request)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, cluster.ErrIncomplete) {
			return err
		}
	}
	return nil
}
