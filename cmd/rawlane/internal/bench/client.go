package bench

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
)

// ask sends a request to a node, and returns the value of the answer.
func (c *client) ask(ctx context.Context, node mcd.NodeID, code byte) (value uint64, err error) {
	b, err := c.x.Ask(ctx, node, []byte{code})
	if err != nil {
		return 0, err
	}
	if len(b) != answerLen {
		return 0, fmt.Errorf("node %d: an answer of %d bytes (do all nodes run the same program?)", node, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
