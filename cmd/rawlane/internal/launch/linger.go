package launch

import (
	"context"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

const (
	// askAgain is how long node 0 waits for an answer before it repeats the request.
	AskAgain = 20 * time.Millisecond
	// AskTimeout is how long it does so before it gives up.
	AskTimeout = 10 * time.Second
)

// Silence is how long a node waits for the next message of node 0 before it gives up.
const Silence = 30 * time.Second

// LingerTime is how long a node answers on after the end, in case that node 0 did not hear that it
// has.
const LingerTime = 5 * AskAgain

// Linger makes progress for a while, or until ctx ends.
func Linger(ctx context.Context, e *mcd.Endpoint, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var never mcd.Completion
	if err := e.Await(ctx, &never); ctx.Err() == nil {
		return err
	}
	return nil
}
