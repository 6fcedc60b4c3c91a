package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/rawlane/rawlane/vlan/manager"
)

// Troubles has a control meet an error, or none, in each of some periods, and returns what it logs.
func Troubles(errs ...error) string {
	var told strings.Builder
	c := &loop{options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	for _, err := range errs {
		c.trouble(err)
	}
	return told.String()
}

// ReadTwice reads a node as two periods of a control do.
func ReadTwice(ctx context.Context, node *manager.Client) error {
	c := &loop{nodes: membersOf([]*manager.Client{node})}
	return errors.Join(c.read(ctx), c.read(ctx))
}
