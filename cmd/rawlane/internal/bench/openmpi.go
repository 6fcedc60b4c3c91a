package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// envMPI holds the results of Open MPI as JSON, a barrierResult for each loop: the command measures
// them before it starts the processes of the nodes.
const envMPI = "RAWLANE_BENCH_MPI"

// mpiAlgo is the algorithm in the lines of Open MPI.
const mpiAlgo = "openmpi"

// compareMPI measures Open MPI's barrier, unless the parent process has, and keeps the results for
// the table.
func (b *barrierBench) compareMPI(cmd *cobra.Command) error {
	text := os.Getenv(envMPI)
	if text == "" {
		lines, err := b.measureMPI(cmd.Context(), cli.NewProgress(cmd.ErrOrStderr()))
		if err != nil {
			return fmt.Errorf("--compare-mpi: %w", err)
		}
		marshaled, err := json.Marshal(lines)
		if err != nil {
			return err
		}
		text = string(marshaled)
		if err := os.Setenv(envMPI, text); err != nil {
			return err
		}
	}
	return json.Unmarshal([]byte(text), &b.openMPI)
}

// measureMPI runs Open MPI's barriers and makes a line for each loop.
func (b *barrierBench) measureMPI(ctx context.Context, note cli.Progress) (lines []*barrierResult, err error) {
	m, err := mpi.Find(ctx)
	if err != nil {
		return nil, err
	}
	for _, transport := range b.transports {
		some, err := b.measureTransport(ctx, m, transport, note)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	for _, r := range lines {
		r.compare(lines)
	}
	return lines, nil
}

// measureTransport makes a line for each loop by one transport.
func (b *barrierBench) measureTransport(
	ctx context.Context, m *mpi.MPI, transport string, note cli.Progress,
) (lines []*barrierResult, err error) {
	note.Say("Open MPI by %s ...", transport)
	samples, err := m.Run(ctx, mpi.Barriers{
		Transport: transport, Nodes: b.cluster.Nodes, Warm: warmUpOf(b.iters), Iters: b.iters, Work: b.work,
	})
	note.Clear()
	if err != nil {
		return nil, err
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	for i, loop := range barrierLoops {
		r := b.result(result{
			Schema: resultSchema, Bench: b.name, Host: launch.ThisHost(lo.Name, lo.MTU),
			Link: transport, Nodes: b.cluster.Nodes, NICs: 1, Algo: mpiAlgo, Iters: b.iters,
			Keys: launch.Unprotected, Pin: notPinned,
		}, loop)
		r.Mode, r.Chosen, r.MPIVersion = launch.ModeProcesses, mpiAlgo+" "+transport, m.Version
		r.fill(samples[i])
		lines = append(lines, r)
	}
	return lines, nil
}
