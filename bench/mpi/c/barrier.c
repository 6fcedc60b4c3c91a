// What another MPI's barrier takes, in the two loops of `rawlane bench barrier`.
//
//   mpirun -n N barrier ITERATIONS WARMUP WORK_NS FILE
//
// Rank 0 writes the times of all barriers to FILE: for each loop and each rank, one uint32 per barrier, in ns, in the order
// of this machine's bytes. The first loop works after each barrier, the second does not.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t spun;

static void spin(long rounds) {
  uint64_t x = spun;
  while (rounds-- > 0) x = x * 6364136223846793005u + 1;
  *(volatile uint64_t *)&spun = x;
}

// rounds_of returns how many rounds of spin take a time where nothing else runs.
static long rounds_of(double ns) {
  enum { ROUNDS = 20000 };
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 20; i++) {
    uint64_t start = now();
    spin(ROUNDS);
    uint64_t took = now() - start;
    if (took < best) best = took ? took : 1;
  }
  return ROUNDS * ns / best;
}

static void measure(uint32_t *samples, int iters, int warm, long work) {
  for (int i = -warm; i < iters; i++) {
    uint64_t start = now();
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t took = now() - start;
    if (i >= 0) samples[i] = took < UINT32_MAX ? took : UINT32_MAX;
    spin(work);
  }
}

static void fail(const char *what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) return fprintf(stderr, "usage: barrier ITERATIONS WARMUP WORK_NS FILE\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  int iters = atoi(argv[1]), warm = atoi(argv[2]);
  long work[] = {rounds_of(atof(argv[3])), 0};
  uint32_t *mine = calloc(iters, sizeof *mine), *all = rank ? NULL : calloc((size_t)iters * ranks, sizeof *all);
  FILE *out = rank ? NULL : fopen(argv[4], "w");
  if (!mine || (!rank && (!all || !out))) fail(argv[4]);
  for (int loop = 0; loop < 2; loop++) {
    measure(mine, iters, warm, work[loop]);
    MPI_Gather(mine, iters, MPI_UINT32_T, all, iters, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (!rank && fwrite(all, sizeof *all, (size_t)iters * ranks, out) != (size_t)iters * ranks) fail(argv[4]);
  }
  if (out && fclose(out)) fail(argv[4]);
  MPI_Finalize();
  return 0;
}
