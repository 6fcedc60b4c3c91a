//go:build linux

package harness

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Others are programs of others that the command measures beside its own, in one run.
type Others struct {
	Name  string
	Flags []string // of the command, by which it does; none once they are left out
	Rows  []string // of the table
}

// LinesBeside is Lines, with programs of others whose rows are in a table. They are left out once a
// run with them fails, or takes half of the time that it has, and one without them does not.
func LinesBeside[T any](
	ctx context.Context, b *Bench, t *Rows, o *Others, args ...string,
) (lines []T, err error) {
	if len(o.Flags) == 0 {
		return Lines[T](ctx, &b.Programs, args...)
	}
	withThem, cancel := half(ctx)
	defer cancel()
	lines, err = Lines[T](withThem, &b.Programs, slices.Concat(args, o.Flags)...)
	if err == nil || ctx.Err() != nil {
		return lines, err
	}
	lines, without := Lines[T](ctx, &b.Programs, args...)
	if without != nil {
		return nil, err
	}
	b.LeftOut(fmt.Errorf("%s: %w", o.Name, err))
	o.Flags = nil
	t.Drop(o.Rows...)
	return lines, nil
}

// half returns a context that ends when half of the time is over that ctx has.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, time.Now().Add(time.Until(end)/2))
}
