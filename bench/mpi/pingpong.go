package mpi

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

//go:embed c/pingpong.c
var pingpongSource []byte

// PingPong returns half of each round trip between two ranks, in ns, in ascending order.
func (m *MPI) PingPong(ctx context.Context, transport string, size, iters int) ([]uint32, error) {
	raw, err := m.measure(ctx, pingpongSource, transport, 2,
		strconv.Itoa(iters), strconv.Itoa(max(iters/10, 1)), strconv.Itoa(size))
	if err != nil {
		return nil, err
	}
	samples := make([]uint32, iters)
	if len(raw) != binary.Size(samples) {
		return nil, fmt.Errorf("mpirun left %d bytes of samples, want %d", len(raw), binary.Size(samples))
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, samples); err != nil {
		return nil, err
	}
	slices.Sort(samples)
	return samples, nil
}
