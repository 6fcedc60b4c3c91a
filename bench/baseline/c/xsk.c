// A socket of AF_XDP that is polled in user space: generic or native XDP, the kernel copies. The program in the kernel
// passes on all EtherTypes but ours, as it has to beside TCP/IP.
#define _GNU_SOURCE
#include "baseline.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RX, TX, FILL, COMPLETION, RINGS, LOOKS = 1 << 28, TRIES = 2000 };

struct ring {
  uint32_t *producer, *consumer;
  void *entries;
  uint32_t next;
};

static int s;
static uint8_t *umem, mac[6];
static struct ring rings[RINGS];
static uint64_t frame_to_send;

static int sys_bpf(int command, union bpf_attr *attr) { return syscall(SYS_bpf, command, attr, sizeof *attr); }

static int load(int map) {
  struct bpf_insn code[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 0},                     // data
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 1, .off = 4},                     // its end
      {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 4, .src_reg = 2},
      {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 4, .imm = ETH_HLEN},
      {.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 4, .src_reg = 3, .off = 8},                     // too short
      {.code = BPF_LDX | BPF_MEM | BPF_H, .dst_reg = 4, .src_reg = 2, .off = 12},
      {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 4, .imm = htons(TYPE), .off = 6},
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 16},                    // the queue
      {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
      {0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
      {.code = BPF_JMP | BPF_EXIT},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr a = {.prog_type = BPF_PROG_TYPE_XDP, .insns = (uintptr_t)code, .insn_cnt = sizeof code / sizeof *code, .license = (uintptr_t)"GPL"};
  int fd = sys_bpf(BPF_PROG_LOAD, &a);
  if (fd < 0) die("BPF_PROG_LOAD");
  return fd;
}

static void map_ring(int which, struct xdp_ring_offset *at, size_t entry, off_t page) {
  uint8_t *m = mmap(NULL, at->desc + SLOTS * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s, page);
  if (m == MAP_FAILED) die("mmap of a ring");
  rings[which] = (struct ring){(void *)(m + at->producer), (void *)(m + at->consumer), m + at->desc, 0};
}

static void attach(unsigned index, int native) {
  union bpf_attr m = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
  int map = sys_bpf(BPF_MAP_CREATE, &m);
  if (map < 0) die("BPF_MAP_CREATE");
  union bpf_attr l = {.link_create = {.prog_fd = load(map), .target_ifindex = index, .attach_type = BPF_XDP,
                                      .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE}};
  if (sys_bpf(BPF_LINK_CREATE, &l) < 0) die("BPF_LINK_CREATE");
  struct sockaddr_xdp to = {.sxdp_family = AF_XDP, .sxdp_ifindex = index, .sxdp_flags = XDP_COPY};
  for (int tries = 0; bind(s, (struct sockaddr *)&to, sizeof to); tries++) { // the kernel gives a queue back late
    if (errno != EBUSY || tries == TRIES) die("bind");
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  uint32_t queue = 0;
  union bpf_attr u = {.map_fd = map, .key = (uintptr_t)&queue, .value = (uintptr_t)&s};
  if (sys_bpf(BPF_MAP_UPDATE_ELEM, &u)) die("BPF_MAP_UPDATE_ELEM");
}

void xsk_open(const char *ifname, int native) {
  int n = SLOTS, asking = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq ifr = {0};
  strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
  if (asking < 0 || ioctl(asking, SIOCGIFHWADDR, &ifr)) die(ifname);
  close(asking);
  memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
  if ((s = socket(AF_XDP, SOCK_RAW, 0)) < 0) die("socket(AF_XDP)");
  umem = mmap(NULL, 2 * SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (umem == MAP_FAILED) die("mmap");
  struct xdp_umem_reg r = {.addr = (uintptr_t)umem, .len = 2 * SLOTS * SLOT, .chunk_size = SLOT};
  if (setsockopt(s, SOL_XDP, XDP_UMEM_REG, &r, sizeof r)) die("XDP_UMEM_REG");
  const int options[] = {XDP_RX_RING, XDP_TX_RING, XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING};
  for (int i = 0; i < RINGS; i++)
    if (setsockopt(s, SOL_XDP, options[i], &n, sizeof n)) die("a ring");
  struct xdp_mmap_offsets at;
  socklen_t size = sizeof at;
  if (getsockopt(s, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size)) die("XDP_MMAP_OFFSETS");
  map_ring(RX, &at.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
  map_ring(TX, &at.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
  map_ring(FILL, &at.fr, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
  map_ring(COMPLETION, &at.cr, sizeof(uint64_t), XDP_UMEM_PGOFF_COMPLETION_RING);
  for (int i = 0; i < SLOTS; i++) ((uint64_t *)rings[FILL].entries)[i] = (uint64_t)i * SLOT;
  __atomic_store_n(rings[FILL].producer, rings[FILL].next = SLOTS, __ATOMIC_RELEASE);
  attach(if_nametoindex(ifname), native);
}

static int full(void) { return __atomic_load_n(rings[RX].producer, __ATOMIC_ACQUIRE) != rings[RX].next; }

// take returns the next frame; it is the kernel's again at once, which takes another SLOTS frames to write to it.
static uint8_t *take(int *n) {
  struct xdp_desc d = ((struct xdp_desc *)rings[RX].entries)[rings[RX].next++ % SLOTS];
  __atomic_store_n(rings[RX].consumer, rings[RX].next, __ATOMIC_RELEASE);
  ((uint64_t *)rings[FILL].entries)[rings[FILL].next++ % SLOTS] = d.addr & ~(uint64_t)(SLOT - 1);
  __atomic_store_n(rings[FILL].producer, rings[FILL].next, __ATOMIC_RELEASE);
  *n = d.len;
  return umem + d.addr;
}

// One frame is under way at a time, so two chunks do.
static uint8_t *chunk(void) { return umem + (frame_to_send = (SLOTS + (rings[TX].next & 1)) * SLOT); }

static void head(uint8_t *frame, const uint8_t *dst) {
  memcpy(frame, dst, 6);
  memcpy(frame + 6, mac, 6);
  frame[12] = TYPE >> 8, frame[13] = TYPE & 0xff;
}

// sent takes the chunks back that were sent, and returns how many were since the beginning.
static uint32_t sent(void) {
  uint32_t n = __atomic_load_n(rings[COMPLETION].producer, __ATOMIC_ACQUIRE);
  __atomic_store_n(rings[COMPLETION].consumer, n, __ATOMIC_RELEASE);
  return n;
}

static void push(uint64_t frame, int n) {
  ((struct xdp_desc *)rings[TX].entries)[rings[TX].next++ % SLOTS] = (struct xdp_desc){.addr = frame, .len = n};
}

static void kick(void) {
  __atomic_store_n(rings[TX].producer, rings[TX].next, __ATOMIC_RELEASE);
  if (sendto(s, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) die("sendto");
}

static void send_one(int n) {
  sent();
  push(frame_to_send, n);
  kick();
}

static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// send_frames sends so many frames, a batch for each call, and returns when all are sent.
static void send_frames(int left, int size, int batch, int as) {
  for (int i = SLOTS; i < 2 * SLOTS; i++) umem[i * SLOT + ETH_HLEN] = as;
  for (; left > 0; kick()) {
    uint32_t end = sent() + SLOTS;
    for (int i = 0; i < batch && left > 0 && rings[TX].next != end; i++, left--)
      push((SLOTS + rings[TX].next % SLOTS) * SLOT, size + ETH_HLEN);
  }
  while (sent() != rings[TX].next) kick();
}

// xsk_send sends frames that are written once, as stream_send does, a batch for each call.
void xsk_send(int size, int iters, int batch) {
  for (int i = SLOTS; i < 2 * SLOTS; i++) head(umem + i * SLOT, all);
  send_frames(warm_up(iters, batch), size, batch, WARMS_UP);
  uint64_t start = now();
  send_frames(iters, size, batch, COUNTS);
  report(start);
}

int xsk_take(uint8_t *to) {
  int n;
  if (!full()) return 0;
  uint8_t *in = take(&n);
  memcpy(to, in, n);
  return n;
}

void xsk_echo(void) {
  for (;;) {
    int n;
    while (!full());
    uint8_t *in = take(&n), *out = chunk();
    memcpy(out, in, n);
    head(out, in + 6);
    send_one(n);
  }
}

static int ping_len;

void xsk_ping_open(int size) { ping_len = size + ETH_HLEN; }

static int answered(void) {
  for (int looks = 0; looks < LOOKS; looks++)
    if (full()) return 1;
  return 0;
}

int xsk_ping(void) {
  int n;
  head(chunk(), all);
  send_one(ping_len);
  for (int windows = 0; windows < WINDOWS; windows++)
    if (answered()) return take(&n), windows == 0;
  return 0;
}
