package launch

import (
	"context"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

const (
	// AskTimeout is the time without an answer after which a node that asks gives up.
	AskTimeout = 10 * time.Second
	// Silence is the time without a message of node 0 after which the other nodes give up.
	Silence = 30 * time.Second
	// LingerTime is for the last answer to be repeated, in case that node 0 has not received it.
	LingerTime = 100 * time.Millisecond
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
