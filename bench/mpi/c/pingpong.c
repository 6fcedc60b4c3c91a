// What half a round trip between two ranks of another MPI takes.
//
//   mpirun -n 2 pingpong ITERATIONS WARMUP BYTES FILE
//
// Rank 0 writes half of each round trip to FILE: one uint32 for each, in ns, in the order of this machine's bytes.
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

static void fail(const char *what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 5) return fprintf(stderr, "usage: pingpong ITERATIONS WARMUP BYTES FILE\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  int iters = atoi(argv[1]), warm = atoi(argv[2]), size = atoi(argv[3]);
  char *out = calloc(size, 1), *in = calloc(size, 1);
  uint32_t *samples = calloc(iters, sizeof *samples);
  if (!out || !in || !samples) fail(argv[4]);
  for (int i = -warm; i < iters; i++) {
    uint64_t start = now();
    if (rank == 0) MPI_Send(out, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in, size, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    uint64_t half = (now() - start) / 2;
    if (i >= 0) samples[i] = half < UINT32_MAX ? half : UINT32_MAX;
  }
  if (rank == 0) {
    FILE *file = fopen(argv[4], "w");
    if (!file || fwrite(samples, sizeof *samples, iters, file) != (size_t)iters || fclose(file)) fail(argv[4]);
  }
  MPI_Finalize();
  return 0;
}
