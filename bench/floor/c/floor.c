// What the kernel allows, without a library: the floor that rawlane is measured against.
//
//   floor ring-echo IF CORE            floor ring-ping IF CORE SIZE ITERS
//   floor udp-echo  -  CORE            floor udp-ping  PEER CORE SIZE ITERS
//   floor tcp-echo  -  CORE            floor tcp-ping  PEER CORE SIZE ITERS
//   floor ring-sink IF CORE            floor ring-send IF CORE SIZE ITERS BATCH
//                                      floor ring-txring IF CORE SIZE ITERS BATCH
//
// Echoes and sinks run until they are killed; they print "ready" first. Everything spins on a core of its own. A ping
// prints minimum, median, 99th percentile and maximum of half a round trip, in ns; a sender the ns of all its sends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x88b6, PORT = 7777, SLOT = 2048, SLOTS = 1024, MAX_BATCH = 64, PATIENCE_NS = 100000000 };

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

// ---- a packet socket with a receive ring, polled in user space. It is bound to all EtherTypes behind a filter: the
// one way to see VLAN tags

static int sock;
static uint8_t *ring, mac[6];
static unsigned slot;

static void ring_open(const char *ifname) {
  if ((sock = socket(AF_PACKET, SOCK_RAW, 0)) < 0) die("socket(AF_PACKET)");
  struct ifreq ifr = {0};
  strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
  if (ioctl(sock, SIOCGIFHWADDR, &ifr)) die(ifname);
  memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
  int version = TPACKET_V2, one = 1;
  struct sock_filter code[] = {{0x28, 0, 0, 12}, {0x15, 0, 1, TYPE}, {0x06, 0, 0, ~0u}, {0x06, 0, 0, 0}}; // tcpdump -dd
  struct sock_fprog filter = {4, code};
  struct tpacket_req req = {.tp_block_size = SLOT * 16, .tp_block_nr = SLOTS / 16, .tp_frame_size = SLOT, .tp_frame_nr = SLOTS};
  if (setsockopt(sock, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) die("PACKET_VERSION");
  if (setsockopt(sock, SOL_PACKET, PACKET_RX_RING, &req, sizeof req)) die("PACKET_RX_RING");
  if (setsockopt(sock, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) die("PACKET_QDISC_BYPASS");
  if (setsockopt(sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)) die("PACKET_IGNORE_OUTGOING");
  if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)) die("SO_ATTACH_FILTER");
  ring = mmap(NULL, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, sock, 0);
  if (ring == MAP_FAILED) die("mmap");
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(ifname)};
  if (bind(sock, (struct sockaddr *)&to, sizeof to)) die("bind");
}

static volatile struct tpacket2_hdr *ring_slot(void) { return (void *)(ring + slot * SLOT); }

static int ring_ready(void) { return __atomic_load_n(&ring_slot()->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER; }

static uint8_t *ring_frame(void) { return (uint8_t *)ring_slot() + ring_slot()->tp_mac; }

static void ring_next(void) {
  __atomic_store_n(&ring_slot()->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
  slot = (slot + 1) % SLOTS;
}

static void frame_head(uint8_t *f, const uint8_t *dst) {
  memcpy(f, dst, 6);
  memcpy(f + 6, mac, 6);
  f[12] = TYPE >> 8, f[13] = TYPE & 0xff;
}

static void ring_echo(void) {
  uint8_t f[SLOT];
  for (;;) {
    while (!ring_ready()) {}
    int n = ring_slot()->tp_len;
    memcpy(f, ring_frame(), n);
    ring_next();
    uint8_t back[6];
    memcpy(back, f + 6, 6);
    frame_head(f, back);
    if (send(sock, f, n, 0) != n) die("send");
  }
}

// A sink copies what it receives, as a program that wants it would.
static void ring_sink(void) {
  static uint8_t message[SLOT];
  for (;;) {
    while (!ring_ready()) {}
    memcpy(message, ring_frame(), ring_slot()->tp_len);
    __asm__ volatile("" : : "r"(message) : "memory"); // it is wanted
    ring_next();
  }
}

static void ring_ping_once(uint8_t *f, int n) {
  if (send(sock, f, n, 0) != n) die("send");
  uint64_t start = now();
  while (!ring_ready())
    if (now() - start > PATIENCE_NS) errno = ETIMEDOUT, die("echo");
  ring_next();
}

// ---- sockets of the internet, polled as well

static struct sockaddr_in address(const char *ip) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = INADDR_ANY};
  if (ip) inet_pton(AF_INET, ip, &a.sin_addr);
  return a;
}

static void nodelay(int s) {
  int one = 1;
  if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("TCP_NODELAY");
}

static int inet_listen(int type) {
  struct sockaddr_in a = address(NULL);
  int one = 1, s = socket(AF_INET, type, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a)) die("bind");
  if (type == SOCK_STREAM && listen(s, 1)) die("listen");
  return s;
}

static int inet_connect(int type, const char *peer) {
  struct sockaddr_in a = address(peer);
  int s = socket(AF_INET, type, 0);
  if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof a)) die("connect");
  if (type == SOCK_STREAM) nodelay(s);
  return s;
}

// spin_recv takes what is there, and at least want bytes of a stream.
static int spin_recv(int s, uint8_t *b, int size, int want, struct sockaddr_in *from) {
  int got = 0;
  socklen_t len = sizeof *from;
  do {
    int n = recvfrom(s, b + got, size - got, MSG_DONTWAIT, (struct sockaddr *)from, from ? &len : NULL);
    if (n == 0 && want) exit(0); // the stream has ended
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) die("recv");
    if (n < 0) continue;
    got += n;
    if (!want) return got;
  } while (got < want);
  return got;
}

static void udp_echo(int s) {
  uint8_t b[SLOT];
  struct sockaddr_in from;
  for (;;) {
    int n = -1;
    socklen_t len = sizeof from;
    while (n < 0) n = recvfrom(s, b, sizeof b, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    if (sendto(s, b, n, 0, (struct sockaddr *)&from, len) != n) die("sendto");
  }
}

static void tcp_echo(int listening) {
  int s = accept(listening, NULL, NULL);
  if (s < 0) die("accept");
  nodelay(s);
  uint8_t b[SLOT];
  for (;;) {
    int n = spin_recv(s, b, sizeof b, 1, NULL);
    if (send(s, b, n, 0) != n) die("send");
  }
}

// ---- measuring

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static int ping_sock, ping_size;
static uint8_t ping_frame[SLOT];

static void ping_ring(void) { ring_ping_once(ping_frame, ping_size + ETH_HLEN); }

static void ping_udp(void) {
  if (send(ping_sock, ping_frame, ping_size, 0) != ping_size) die("send");
  while (recv(ping_sock, ping_frame, sizeof ping_frame, MSG_DONTWAIT) < 0) {}
}

static void ping_tcp(void) {
  if (send(ping_sock, ping_frame, ping_size, 0) != ping_size) die("send");
  spin_recv(ping_sock, ping_frame, ping_size, ping_size, NULL);
}

static void measure(void (*ping)(void), int iters) {
  uint32_t *half = calloc(iters, sizeof *half);
  for (int i = 0; i < iters / 10; i++) ping();
  for (int i = 0; i < iters; i++) {
    uint64_t start = now();
    ping();
    half[i] = (now() - start) / 2;
  }
  qsort(half, iters, sizeof *half, by_size);
  printf("%u %u %u %u\n", half[0], half[iters / 2], half[(uint64_t)iters * 99 / 100], half[iters - 1]);
}

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// The rate is that of sends alone; a batch of 1 is a send for each frame, others are sendmmsg. Each frame of a batch is
// somewhere else, as messages are.
static void ring_send(int size, int iters, int batch) {
  static uint8_t f[MAX_BATCH][SLOT];
  int n = size + ETH_HLEN;
  struct iovec iov[MAX_BATCH];
  struct mmsghdr msgs[MAX_BATCH] = {0};
  for (int i = 0; i < batch; i++) {
    frame_head(f[i], broadcast);
    iov[i] = (struct iovec){f[i], n};
    msgs[i].msg_hdr.msg_iov = &iov[i];
    msgs[i].msg_hdr.msg_iovlen = 1;
  }
  uint64_t start = now();
  for (int left = iters; left > 0;) {
    int want = left < batch ? left : batch;
    int sent = batch == 1 ? (send(sock, f[0], n, 0) == n ? 1 : -1) : sendmmsg(sock, msgs, want, 0);
    if (sent < 0 && errno != ENOBUFS) die("send");
    if (sent > 0) left -= sent;
  }
  printf("%llu\n", (unsigned long long)(now() - start));
}

// The same by a transmit ring: frames are written to slots that the kernel sends from when it is kicked.
static void ring_txring(const char *ifname, int size, int iters, int batch) {
  int version = TPACKET_V2, one = 1, n = size + ETH_HLEN, tx = socket(AF_PACKET, SOCK_RAW, 0);
  struct tpacket_req req = {.tp_block_size = SLOT * 16, .tp_block_nr = SLOTS / 16, .tp_frame_size = SLOT, .tp_frame_nr = SLOTS};
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(ifname)};
  if (tx < 0 || setsockopt(tx, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) die("PACKET_VERSION");
  if (setsockopt(tx, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) die("PACKET_QDISC_BYPASS");
  if (setsockopt(tx, SOL_PACKET, PACKET_TX_RING, &req, sizeof req)) die("PACKET_TX_RING");
  uint8_t *slots = mmap(NULL, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, tx, 0);
  if (slots == MAP_FAILED || bind(tx, (struct sockaddr *)&to, sizeof to)) die("bind");
  static uint8_t f[SLOT];
  frame_head(f, broadcast);
  uint64_t start = now();
  for (int i = 0; i < iters; i++) {
    struct tpacket2_hdr *h = (void *)(slots + (i % SLOTS) * SLOT);
    while (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE) send(tx, NULL, 0, MSG_DONTWAIT);
    memcpy((uint8_t *)h + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll), f, n);
    h->tp_len = n;
    __atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
    if ((i + 1) % batch == 0 && send(tx, NULL, 0, MSG_DONTWAIT) < 0 && errno != EAGAIN) die("kick");
  }
  send(tx, NULL, 0, 0);
  printf("%llu\n", (unsigned long long)(now() - start));
}

static void ready(void) {
  printf("ready\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: see floor.c\n"), 2;
  const char *mode = argv[1], *where = argv[2];
  pin(atoi(argv[3]));
  int size = argc > 4 ? atoi(argv[4]) : 0, iters = argc > 5 ? atoi(argv[5]) : 0, batch = argc > 6 ? atoi(argv[6]) : 1;
  if (size < 0 || size > 1500 || batch < 1 || batch > MAX_BATCH) return fprintf(stderr, "size or batch out of range\n"), 2;
  ping_size = size;
  if (!strncmp(mode, "ring-", 5)) ring_open(where);
  if (!strcmp(mode, "ring-echo")) ready(), ring_echo();
  else if (!strcmp(mode, "ring-sink")) ready(), ring_sink();
  else if (!strcmp(mode, "udp-echo")) { int s = inet_listen(SOCK_DGRAM); ready(), udp_echo(s); }
  else if (!strcmp(mode, "tcp-echo")) { int s = inet_listen(SOCK_STREAM); ready(), tcp_echo(s); }
  else if (!strcmp(mode, "ring-send")) ring_send(size, iters, batch);
  else if (!strcmp(mode, "ring-txring")) ring_txring(where, size, iters, batch);
  else if (!strcmp(mode, "ring-ping")) frame_head(ping_frame, broadcast), measure(ping_ring, iters);
  else if (!strcmp(mode, "udp-ping")) ping_sock = inet_connect(SOCK_DGRAM, where), measure(ping_udp, iters);
  else if (!strcmp(mode, "tcp-ping")) ping_sock = inet_connect(SOCK_STREAM, where), measure(ping_tcp, iters);
  else return fprintf(stderr, "unknown mode %s\n", mode), 2;
  return 0;
}
