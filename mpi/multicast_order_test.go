package mpi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// differ has two processes call something else, and checks what their errors say, in order.
func differ(t *testing.T, call func(ctx context.Context, c *mpi.Comm) []error, want [2][]string) {
	t.Helper()
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for k, err := range call(ctx, c) {
			text := ""
			if err != nil {
				text = err.Error()
			}
			if want := want[c.Rank()][k]; (err != nil) != (want != "") || !strings.Contains(text, want) {
				t.Errorf("rank %d, operation %d: %v, want %q", c.Rank(), k+1, err, want)
			}
		}
	})
}

// Who calls operations with multicasts in another order has errors that say so, and nobody has data
// of another operation.
func TestMulticast_OrderDiffers(t *testing.T) {
	differ(t, func(ctx context.Context, c *mpi.Comm) []error {
		bcast := func() error { return mpi.Bcast(ctx, c, []int{1000}, 0) }
		sum := func() error { return mpi.Allreduce(ctx, c, []int{1}, []int{0}, mpi.Sum) }
		if c.Rank() == 0 {
			return []error{bcast(), sum()}
		}
		return []error{sum(), bcast()}
	}, [2][]string{
		{"", "rank 1 has given to operation 1, allreduce, what operation 2, allreduce, waits for"},
		{
			"rank 0 has given to operation 1, bcast, what operation 1, allreduce, waits for",
			"rank 0 has given to operation 2, allreduce, what operation 2, bcast, waits for",
		},
	})
}

// Of Bcasts with two roots the next one says so, whichever comes first, its call or its data.
func TestMulticast_RootsDiffer(t *testing.T) {
	const want = "rank 0 has given to operation 1, bcast, what operation 2, bcast, waits for"
	for name, late := range map[string]int{"data first": 1, "call first": 0} {
		t.Run(name, func(t *testing.T) {
			differ(t, func(ctx context.Context, c *mpi.Comm) []error {
				if c.Rank() == late {
					time.Sleep(time.Second)
				}
				return []error{mpi.Bcast(ctx, c, []int{1}, c.Rank()), mpi.Bcast(ctx, c, []int{1}, 0)}
			}, [2][]string{{"", ""}, {"", want}})
		})
	}
}
