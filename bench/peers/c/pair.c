// What MPI does between two ranks, and among all: half round trips, streams, collective operations.
//
//   mpirun -n 2 pair latency ITERS SIZE...     us of half a round trip: the median
//   mpirun -n 2 pair stream  BYTES SIZE...     MB/s of messages one way, 64 under way at once
//   mpirun -n 2 pair both    BYTES SIZE...     MB/s of messages both ways at once, together
//   mpirun -n 2 pair put     ITERS SIZE...     us of a put and the flush behind it: the median
//   mpirun -n N pair barrier ITERS             us of a barrier: the mean of all ranks
//   mpirun -n N pair allreduce|alltoall|bcast ITERS SIZE...   us of a call: the mean of all ranks
//
// A line is a size, or the number of ranks, and a result; behind the last one is "end": what MPI_Finalize does, or does
// not, is no part of it. A tenth more warms up, and not less than ten calls or windows: connections are made with the
// first message. Arguments that nothing can be measured by end it with 2.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, LARGEST = 1 << 20, TAG = 1, LEAST_WARM = 10 };

static char message[LARGEST], received[LARGEST];
static char *many; // for each rank, and from each
static int rank, ranks;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void result(int size, double value) {
  if (rank == 0) printf("%d %g\n", size, value);
}

// warm_up is how many calls or windows come before so many that count.
static int warm_up(int count) { return count / 10 > LEAST_WARM ? count / 10 : LEAST_WARM; }

static void round_trip(int size) {
  for (int turn = 0; turn < 2; turn++) {
    if (turn == rank) MPI_Send(message, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD);
    else MPI_Recv(message, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void latency(int iters, int size) {
  double *half = calloc(iters, sizeof *half);
  for (int i = -warm_up(iters); i < iters; i++) {
    double start = MPI_Wtime();
    round_trip(size);
    if (i >= 0) half[i] = (MPI_Wtime() - start) * 1e6 / 2;
  }
  qsort(half, iters, sizeof *half, ascending);
  result(size, half[iters / 2]);
  free(half);
}

// one_way has so many messages under way at once, and returns when they are over.
static void one_way(int size, int count) {
  MPI_Request under_way[WINDOW];
  for (int i = 0; i < count; i++) {
    if (rank == 0) MPI_Isend(message, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &under_way[i]);
    else MPI_Irecv(message, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &under_way[i]);
  }
  MPI_Waitall(count, under_way, MPI_STATUSES_IGNORE);
}

static void stream(int bytes, int size) {
  int count = bytes / size;
  for (int i = 0; i < warm_up(count / WINDOW); i++) one_way(size, WINDOW);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int left = count; left > 0; left -= WINDOW) one_way(size, left < WINDOW ? left : WINDOW);
  MPI_Barrier(MPI_COMM_WORLD); // all have come
  result(size, (double)count * size / (MPI_Wtime() - start) / 1e6);
}

static void both(int bytes, int size) {
  MPI_Request out[WINDOW], in[WINDOW];
  int rounds = (bytes / size + WINDOW - 1) / WINDOW;
  double start = 0;
  for (int round = -warm_up(rounds); round < rounds; round++) {
    if (round == 0) MPI_Barrier(MPI_COMM_WORLD), start = MPI_Wtime();
    for (int i = 0; i < WINDOW; i++) MPI_Irecv(received, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &in[i]);
    for (int i = 0; i < WINDOW; i++) MPI_Isend(message, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &out[i]);
    MPI_Waitall(WINDOW, out, MPI_STATUSES_IGNORE);
    MPI_Waitall(WINDOW, in, MPI_STATUSES_IGNORE);
  }
  result(size, 2.0 * rounds * WINDOW * size / (MPI_Wtime() - start) / 1e6);
}

static void put(int iters, int size) {
  double *took = calloc(iters, sizeof *took);
  MPI_Win window;
  MPI_Win_create(received, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    for (int i = -warm_up(iters); i < iters; i++) {
      double start = MPI_Wtime();
      MPI_Put(message, size, MPI_BYTE, 1, 0, size, MPI_BYTE, window);
      MPI_Win_flush(1, window);
      if (i >= 0) took[i] = (MPI_Wtime() - start) * 1e6;
    }
    MPI_Win_unlock(1, window);
    qsort(took, iters, sizeof *took, ascending);
    result(size, took[iters / 2]);
  }
  MPI_Win_free(&window);
  free(took);
}

static void call(const char *what, int size) {
  if (!strcmp(what, "allreduce"))
    MPI_Allreduce(message, received, size / sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(what, "alltoall"))
    MPI_Alltoall(many, size, MPI_BYTE, many + (size_t)size * ranks, size, MPI_BYTE, MPI_COMM_WORLD);
  else
    MPI_Bcast(message, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

// collective has a barrier behind each call.
static void collective(const char *what, int iters, int size) {
  many = calloc(2 * (size_t)size, ranks);
  double took = 0, sum;
  for (int i = -warm_up(iters); i < iters; i++) {
    double start = MPI_Wtime();
    call(what, size);
    if (i >= 0) took += MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  took *= 1e6 / iters;
  MPI_Reduce(&took, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  result(size, sum / ranks);
  free(many);
}

static void barrier(int iters) {
  for (int i = 0; i < warm_up(iters); i++) MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime(), sum;
  for (int i = 0; i < iters; i++) MPI_Barrier(MPI_COMM_WORLD);
  double mean = (MPI_Wtime() - start) * 1e6 / iters;
  MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  result(ranks, sum / ranks);
}

static void misused(const char *why) {
  if (rank == 0) fprintf(stderr, "pair: %s (pair.c says how it is called)\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static int one_of(const char *what, const char *const *names) {
  while (*names && strcmp(what, *names)) names++;
  return *names != NULL;
}

static const char *const of_pairs[] = {"latency", "stream", "both", "put", NULL};
static const char *const of_all[] = {"allreduce", "alltoall", "bcast", NULL};

// check refuses a measurement of nothing.
static void check(const char *what, int number, int size) {
  if (size < 1 || size > LARGEST) misused("size out of range");
  if (one_of(what, of_pairs) && ranks != 2) misused("this is for 2 ranks");
  if ((!strcmp(what, "stream") || !strcmp(what, "both")) && number < size) misused("fewer bytes than a message has");
  if (!strcmp(what, "allreduce") && size % sizeof(float)) misused("no multiple of an element's size");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int number = argc > 2 ? atoi(argv[2]) : 0;
  const char *what = argc > 1 ? argv[1] : "";
  int alone = !strcmp(what, "barrier");
  if (!alone && !one_of(what, of_pairs) && !one_of(what, of_all)) misused("unknown measurement");
  if (number < 1 || alone != (argc == 3)) misused("want a number and, but for barriers, sizes");
  for (int i = 3; i < argc; i++) check(what, number, atoi(argv[i]));
  if (alone) barrier(number);
  for (int i = 3; i < argc; i++) {
    int size = atoi(argv[i]);
    if (!strcmp(what, "latency")) latency(number, size);
    else if (!strcmp(what, "stream")) stream(number, size);
    else if (!strcmp(what, "put")) put(number, size);
    else if (!strcmp(what, "both")) both(number, size);
    else collective(what, number, size);
  }
  if (rank == 0) puts("end");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
