package main

import (
	"context"
	"errors"
)

func (r *barrierRun) compareMPI(ctx context.Context, table *barrierTable) error {
	return errors.New("--compare-mpi: not built yet")
}
