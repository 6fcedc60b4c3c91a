package npb

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// Numbers are those of exact arithmetic, and a sequence that was passed over goes on as one that
// was read.
func TestRandom(t *testing.T) {
	read := NewRandom(Seed)
	x, m := big.NewInt(Seed), new(big.Int).Lsh(big.NewInt(1), 46)
	for n := range uint64(1000) {
		skipped := NewRandom(Seed)
		skipped.Skip(n)
		if *skipped != *read {
			t.Fatalf("after %d numbers %d, and %d if they are skipped", n, read.x, skipped.x)
		}
		x.Mod(x.Mul(x, big.NewInt(multiplier)), m)
		want, _ := new(big.Float).Quo(new(big.Float).SetInt(x), new(big.Float).SetInt(m)).Float64()
		if got := read.Float64(); got != want {
			t.Fatalf("number %d is %v, want %v", n, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args, want string
		paper      bool
	}{
		{"", "S", false}, {"-class W", "W", false}, {"-class=a", "A", false}, {"-paper -class A", "A", true},
	} {
		var said strings.Builder
		o, err := parse("cg", strings.Fields(c.args), &said)
		if o.Class != c.want || o.Paper != c.paper || err != nil || said.Len() > 0 {
			t.Errorf("%q: %+v, %v, said %q; want %q, %v", c.args, o, err, &said, c.want, c.paper)
		}
	}
	for args, want := range map[string]string{
		"-class Z": "want S, W or A",
		"-class":   "flag needs an argument: -class",
		"-size 3":  "flag provided but not defined: -size",
		"A":        `unexpected argument "A": the class is set by -class`,
	} {
		var said strings.Builder
		_, err := parse("cg", strings.Fields(args), &said)
		if err == nil || !strings.Contains(said.String(), want) || !strings.Contains(said.String(), "Usage of cg:\n  -class") {
			t.Errorf("%q: %v, said %q; want %q, and how to use it", args, err, &said, want)
		}
	}
	if _, err := parse("cg", []string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// As in the paper, a receive of one number that is there before its sender is written into; package
// mpi's own way is a record.
func TestMessages_AsInThePaper(t *testing.T) {
	for _, paper := range []bool{false, true} {
		kernel := func(ctx context.Context, c *mpi.Comm, _ Options, _ io.Writer) (r Result, err error) {
			number, ready := make([]float64, 1), []byte{} // which may be written as well
			r.Timed, err = Measure(ctx, c, func() error {
				if c.Rank() == 1 {
					request := mpi.Irecv(c, number, 0, 0)
					err := mpi.Send(ctx, c, ready, 0, 1) // behind the offer
					_, failed := request.Wait(ctx)
					return errors.Join(err, failed)
				}
				_, err := mpi.Recv(ctx, c, ready, 1, 1)
				return errors.Join(err, mpi.Send(ctx, c, number, 1, 0))
			})
			if want := map[bool]uint64{true: 8}[paper]; c.Rank() == 0 && r.Timed.Written != want {
				t.Errorf("paper %v: %d bytes written, want %d", paper, r.Timed.Written, want)
			}
			return r, err
		}
		err := start.Run(t.Context(), start.Config{Nodes: 2}, program("CG", kernel, Options{"S", paper}, io.Discard))
		if err != nil {
			t.Error(err)
		}
	}
}

// The report is rank 0's alone, in NPB's form.
func TestRun_Report(t *testing.T) {
	var out strings.Builder
	kernel := func(_ context.Context, c *mpi.Comm, _ Options, out io.Writer) (Result, error) {
		_, err := io.WriteString(out, " rank 0 says so\n")
		return Result{Size: "1400", Iterations: 15, Timed: Timed{2 * time.Second, 30, 80e6, 60e6, 10e6}, Operations: 300e6, Operation: "floating point"}, err
	}
	if err := Run(t.Context(), 2, "CG", kernel, "S", &out); err != nil {
		t.Fatal(err)
	}
	const want = `
 NAS Parallel Benchmarks, in Go -- CG Benchmark

 rank 0 says so


 CG Benchmark Completed
 Class           =                        S
 Size            =                     1400
 Iterations      =                       15
 Time in seconds =                     2.00
 Total processes =                        2
 Mop/s total     =                   150.00
 Mop/s/process   =                    75.00
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Data, MB/s      =                    40.00
 Messages/s      =                       15
 Written, %      =                    75.00
 Read, %         =                    12.50
`
	if out.String() != want {
		t.Errorf("got %s\nwant %s", &out, want)
	}
}

// What is not verified is an error.
func TestRun_NotVerified(t *testing.T) {
	var out strings.Builder
	wrong := errors.New("zeta is 1")
	err := Run(t.Context(), 2, "CG", func(context.Context, *mpi.Comm, Options, io.Writer) (Result, error) {
		return Result{Timed: Timed{Time: time.Second}, Wrong: wrong}, nil
	}, "S", &out)
	if !errors.Is(err, wrong) || !strings.Contains(out.String(), "= "+strings.Repeat(" ", 12)+"UNSUCCESSFUL\n") {
		t.Errorf("%v, printed %s", err, &out)
	}
}

// The time is that of the slowest rank, at all of them, and begins when the last one is there.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ranks sync.WaitGroup
		for _, e := range mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}) {
			w, err := mpi.Open(e, mpi.Config{})
			if err != nil {
				t.Fatal(err)
			}
			c := w.Comm()
			ranks.Go(func() {
				time.Sleep(3 * time.Second * time.Duration(c.Rank())) // of virtual time: rank 1 comes later
				got, err := Measure(t.Context(), c, func() error {
					time.Sleep(time.Second * time.Duration(c.Rank()))
					return mpi.Bcast(t.Context(), c, make([]int, 2048), 1) // rank 0 waits for rank 1
				})
				if err != nil || got.Time < time.Second || got.Time > 2*time.Second {
					t.Errorf("rank %d: %v, %v; want a second", c.Rank(), got.Time, err)
				}
				if got.Messages != 1 || got.Bytes != 16384 || got.Written != 16384 {
					t.Errorf("rank %d: %+v; want a message of 16384 bytes, written", c.Rank(), got)
				}
				if err := errors.Join(c.Barrier(t.Context()), w.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
	})
}
