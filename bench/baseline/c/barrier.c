// A barrier among N processes, with the least that frames can do it with: every rank but 0 tells rank 0 that it has arrived, and
// when all have, rank 0 releases all with one multicast frame. A frame that is lost ends it. WAY is how to wait for one:
//
//   block       sleep in the kernel
//   spin        ask the kernel again and again
//   yield       likewise, and give the core away (sched_yield) whenever there is nothing
//   ring        look at a receive ring in memory again and again, as ring.c does
//   ring-yield  likewise, and give the core away
//
// Two ranks can do with one frame each way at the same time, an exchange: exchange-spin, exchange-ring.
//
//   baseline barrier IF RANK N ITERS WAY
//
// Prints "ready", and begins when its input ends: when all the others are ready, too. Rank 0 then prints the mean time of a
// barrier, in ns.
#include "baseline.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { ARRIVAL = 1, RELEASE = 2, FRAME = ETH_ZLEN, BUFFER = 4 << 20, PATIENCE = 5 /* s */ };

struct message {
  uint8_t dst[6], src[6];
  uint16_t type;
  uint8_t kind, unused;
  uint32_t number; // of the barrier
  uint8_t padding[FRAME - 20];
};

static int s, flags, mapped, yields; // the socket, how to receive, whether by the ring, and what to do when there is nothing

static void open_socket(const char *ifname, struct message *own) {
  int one = 1, buffer = BUFFER;
  struct timeval patience = {.tv_sec = PATIENCE};
  struct ifreq ifr = {0};
  if ((s = socket(AF_PACKET, SOCK_RAW, 0)) < 0) die("socket(AF_PACKET)");
  strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
  if (ioctl(s, SIOCGIFHWADDR, &ifr)) die(ifname);
  memcpy(own->src, ifr.ifr_hwaddr.sa_data, 6);
  own->type = htons(TYPE);
  if (setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) die("PACKET_QDISC_BYPASS");
  if (setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)) die("PACKET_IGNORE_OUTGOING");
  if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience)) die("SO_RCVTIMEO");
  setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer); // an ordinary user's default does, too
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(TYPE), .sll_ifindex = if_nametoindex(ifname)};
  if (bind(s, (struct sockaddr *)&to, sizeof to)) die("bind");
}

static void put(const struct message *m) {
  if (send(s, m, sizeof *m, 0) != sizeof *m) die("send");
}

static void open_ring(const char *ifname, struct message *own) {
  ring_open(ifname);
  s = ring_socket;
  ring_head((uint8_t *)own);
}

// get takes the next message, and returns 0 if there is none.
static int get(struct message *m) {
  static union { struct message m; uint8_t room[SLOT]; } slot;
  int got;
  if (mapped) {
    got = ring_take(slot.room) && (*m = slot.m, 1);
  } else {
    int n = recv(s, m, sizeof *m, flags);
    if (n < 0 && (errno != EAGAIN || !flags)) die("recv: a message is lost?");
    got = n >= 0;
  }
  if (!got && yields) sched_yield();
  return got;
}

// take awaits so many messages of one kind, of one barrier. Others are what the bridge sent to all ports.
static void take(struct message *m, int count, int kind, uint32_t number) {
  uint64_t begun = 0;
  for (unsigned looks = 1; count; looks++) {
    if (get(m)) {
      if (m->kind == kind && m->number == number) count--;
    } else if (looks % POLLS == 0) {
      if (!begun) begun = now();
      if (now() - begun > PATIENCE * 1000000000ull) errno = ETIMEDOUT, die("a message is lost?");
    }
  }
}

// gather is a barrier by way of rank 0.
static void gather(struct message *own, int rank, int n, uint32_t number) {
  struct message got;
  if (rank == 0) {
    take(&got, n - 1, ARRIVAL, number);
    put(own);
  } else {
    put(own);
    take(&got, 1, RELEASE, number);
    memcpy(own->dst, got.src, 6); // from now on to rank 0 alone
  }
}

// exchange is a barrier of two: each tells the other, and awaits the same.
static void exchange(struct message *own, uint32_t number) {
  struct message got;
  put(own);
  take(&got, 1, ARRIVAL, number);
  memcpy(own->dst, got.src, 6);
}

int barrier_main(char **args) {
  int rank = atoi(args[1]), n = atoi(args[2]), iters = atoi(args[3]), warm = iters / 10 + 20;
  const char *way = args[4];
  int both = !strncmp(way, "exchange-", 9);
  flags = strcmp(way, "block") ? MSG_DONTWAIT : 0, mapped = !!strstr(way, "ring"), yields = !!strstr(way, "yield");
  struct message own = {.kind = rank || both ? ARRIVAL : RELEASE};
  if (mapped) open_ring(args[0], &own);
  else open_socket(args[0], &own);
  memcpy(own.dst, rank || both ? "\xff\xff\xff\xff\xff\xff" : "\x03\0\0\0\0\x01", 6); // a group's address
  ready();
  while (getchar() != EOF);
  uint64_t start = 0;
  for (int i = -warm; i < iters; i++) {
    if (i == 0) start = now();
    own.number = i;
    if (both) exchange(&own, i);
    else gather(&own, rank, n, i);
  }
  if (rank == 0) printf("%.0f\n", (double)(now() - start) / iters);
  return 0;
}
