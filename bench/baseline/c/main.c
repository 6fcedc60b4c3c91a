// What the kernel allows, without a library: the baseline that rawlane is measured against.
//
//   baseline ring-echo IF CORE            baseline ring-ping   IF   CORE SIZE ITERS
//   baseline xsk-echo  IF CORE            baseline xsk-ping    IF   CORE SIZE ITERS; native-xsk-echo, native-xsk-ping
//   baseline xsk-sink  IF CORE            baseline xsk-send   IF   CORE SIZE ITERS BATCH; native-xsk-sink, native-xsk-send
//   baseline udp-echo  -  CORE            baseline udp-ping    PEER CORE SIZE ITERS
//   baseline tcp-echo  -  CORE            baseline tcp-ping    PEER CORE SIZE ITERS
//   baseline block-udp-echo ...           the same with calls that sleep; also of tcp and gso
//   baseline unix-echo PATH CORE REQUEST ITERS ANSWER       baseline unix-ping, likewise
//   baseline ring-sink IF CORE            baseline ring-send   IF   CORE SIZE ITERS BATCH
//                                         baseline ring-txring IF   CORE SIZE ITERS BATCH
//   baseline ring-both IF CORE SIZE MS BATCH    at both ends, at the same time
//   baseline tcp-sink  -  CORE            baseline tcp-send    PEER CORE SIZE ITERS BATCH
//   baseline tcp-sink-polled - CORE       baseline tcp-send-nagle, tcp-send-gathered, likewise
//   baseline gso-sink  -  CORE            baseline gso-send    PEER CORE SIZE ITERS BATCH
//   baseline sum-gso-sink, sum-gso-send   likewise; each datagram is written, and read
//   baseline barrier IF RANK N ITERS WAY
//
// Echoes and sinks run until they are told to end (SIGTERM), or until their stream does; they print "ready" first. Everything
// spins on a core of its own, but for block-, unix-, tcp-sink and tcp-send, which sleep; core -1 is any. A tenth more warms
// up, and does not count at either end. A ping prints minimum, median, 99th percentile and
// maximum of half a round trip, in ns. barrier.c says how barriers go.
#define _GNU_SOURCE
#include "baseline.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOSSES = 3 }; // in a row: who should answer is not there

volatile int over;

void die(const char *what) {
  perror(what);
  exit(1);
}

uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// A tenth, and ten batches at least: what these are compared with is as warm.
int warm_up(int iters, int batch) {
  enum { SHARE = 10, BATCHES = 10 };
  return iters / SHARE > BATCHES * batch ? iters / SHARE : BATCHES * batch;
}

void ready(void) {
  printf("ready\n");
  fflush(stdout);
}

static void end(int signal) {
  (void)signal;
  over = 1;
}

static void pin(int core) {
  cpu_set_t set;
  if (core < 0) return; // wherever the scheduler likes
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// measure repeats what is late or lost, and says so: on a shared machine either end may be stopped for a while.
static void measure(int (*ping)(void), int iters) {
  uint32_t *half = calloc(iters, sizeof *half);
  int lost = 0, in_a_row = 0, warm = iters / 10;
  for (int i = -warm; i < iters;) {
    uint64_t start = now();
    if (!ping()) {
      lost++;
      if (++in_a_row == LOSSES) errno = ETIMEDOUT, die("echo");
      continue;
    }
    in_a_row = 0;
    if (i >= 0) half[i] = (now() - start) / 2;
    i++;
  }
  if (lost) fprintf(stderr, "baseline: %d round trips were late or lost, and repeated\n", lost);
  qsort(half, iters, sizeof *half, by_size);
  printf("%u %u %u %u\n", half[0], half[iters / 2], half[(uint64_t)iters * 99 / 100], half[iters - 1]);
}

static int usage(const char *why) {
  fprintf(stderr, "baseline: %s (main.c says how it is called)\n", why);
  return 2;
}

int main(int argc, char **argv) {
  if (argc < 4) return usage("arguments are missing");
  const char *mode = argv[1], *where = argv[2];
  if (!strcmp(mode, "barrier")) return argc == 7 ? barrier_main(argv + 2) : usage("barrier IF RANK N ITERS WAY");
  int size = argc > 4 ? atoi(argv[4]) : 4, iters = argc > 5 ? atoi(argv[5]) : 1, batch = argc > 6 ? atoi(argv[6]) : 1;
  if (size < 1 || size > 1500 || iters < 1 || batch < 1 || batch > SLOT || (batch > MAX_BATCH && strncmp(mode, "unix-", 5))) return usage("size, iterations or batch out of range");
  pin(atoi(argv[3]));
  if (!strcmp(mode, "unix-echo")) unix_echo(where, size, batch);
  if (!strcmp(mode, "unix-ping")) return unix_ping_open(where, size, batch), measure(unix_ping, iters), 0;
  if (!strncmp(mode, "block-", 6)) inet_block(), mode += 6;
  if (!strcmp(mode, "udp-echo")) udp_echo();
  if (!strcmp(mode, "tcp-echo")) tcp_echo();
  if (!strcmp(mode, "udp-ping")) return udp_ping_open(where, size), measure(udp_ping, iters), 0;
  if (!strcmp(mode, "tcp-ping")) return tcp_ping_open(where, size), measure(tcp_ping, iters), 0;
  if (!strncmp(mode, "sum-", 4)) gso_sums(), mode += 4;
  if (!strcmp(mode, "gso-sink")) return signal(SIGTERM, end), gso_sink(), 0;
  if (!strcmp(mode, "gso-send")) return gso_send(where, size, iters, batch), 0;
  if (!strcmp(mode, "tcp-sink")) return tcp_sink(0), 0;
  if (!strcmp(mode, "tcp-sink-polled")) return tcp_sink(1), 0;
  if (!strcmp(mode, "tcp-send")) return tcp_send(where, size, iters, batch, NODELAY), 0;
  if (!strcmp(mode, "tcp-send-nagle")) return tcp_send(where, size, iters, batch, NAGLE), 0;
  if (!strcmp(mode, "tcp-send-gathered")) return tcp_send(where, size, iters, batch, GATHERED), 0;
  int native = !strncmp(mode, "native-", 7);
  if (native) mode += 7;
  if (!strncmp(mode, "xsk-", 4)) xsk_open(where, native);
  if (!strcmp(mode, "xsk-echo")) ready(), xsk_echo();
  if (!strcmp(mode, "xsk-ping")) return xsk_ping_open(size), measure(xsk_ping, iters), 0;
  if (!strcmp(mode, "xsk-sink")) return signal(SIGTERM, end), ready(), stream_sink(xsk_take), 0;
  if (!strcmp(mode, "xsk-send")) return xsk_send(size, iters, batch), 0;
  ring_open(where);
  if (!strcmp(mode, "ring-echo")) ready(), ring_echo();
  if (!strcmp(mode, "ring-ping")) return ring_ping_open(size), measure(ring_ping, iters), 0;
  if (!strcmp(mode, "ring-sink")) return signal(SIGTERM, end), ready(), stream_sink(ring_take), 0;
  if (!strcmp(mode, "ring-send")) return stream_send(size, iters, batch), 0;
  if (!strcmp(mode, "ring-both")) return signal(SIGTERM, end), ready(), stream_both(size, iters, batch), 0;
  if (!strcmp(mode, "ring-txring")) return stream_txring(where, size, iters, batch), 0;
  return usage("unknown mode");
}
