// A packet socket with a receive ring that is polled in user space, bound to all EtherTypes behind a filter: the one way
// to see VLAN tags. Frames go out by send, past the queueing discipline.
#include "baseline.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { LOOKS = 1 << 28 }; // at an empty slot, about 0.1 s, before an answer counts as late

int ring_socket;
static uint8_t *ring, mac[6];
static unsigned slot;

void ring_open(const char *ifname) {
  if ((ring_socket = socket(AF_PACKET, SOCK_RAW, 0)) < 0) die("socket(AF_PACKET)");
  struct ifreq ifr = {0};
  strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
  if (ioctl(ring_socket, SIOCGIFHWADDR, &ifr)) die(ifname);
  memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
  int version = TPACKET_V2, one = 1, s = ring_socket;
  struct sock_filter code[] = {{0x28, 0, 0, 12}, {0x15, 0, 1, TYPE}, {0x06, 0, 0, ~0u}, {0x06, 0, 0, 0}}; // tcpdump -dd
  struct sock_fprog filter = {4, code};
  struct tpacket_req req = {.tp_block_size = SLOT * 16, .tp_block_nr = SLOTS / 16, .tp_frame_size = SLOT, .tp_frame_nr = SLOTS};
  if (setsockopt(s, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) die("PACKET_VERSION");
  if (setsockopt(s, SOL_PACKET, PACKET_RX_RING, &req, sizeof req)) die("PACKET_RX_RING");
  if (setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) die("PACKET_QDISC_BYPASS");
  if (setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)) die("PACKET_IGNORE_OUTGOING");
  if (setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)) die("SO_ATTACH_FILTER");
  ring = mmap(NULL, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s, 0);
  if (ring == MAP_FAILED) die("mmap");
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(ifname)};
  if (bind(s, (struct sockaddr *)&to, sizeof to)) die("bind");
}

static volatile struct tpacket2_hdr *here(void) { return (void *)(ring + slot * SLOT); }

static int full(void) { return __atomic_load_n(&here()->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER; }

static void next(void) {
  __atomic_store_n(&here()->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
  slot = (slot + 1) % SLOTS;
}

static void head(uint8_t *frame, const uint8_t *dst) {
  memcpy(frame, dst, 6);
  memcpy(frame + 6, mac, 6);
  frame[12] = TYPE >> 8, frame[13] = TYPE & 0xff;
}

void ring_head(uint8_t *frame) { head(frame, (const uint8_t[6]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); }

int ring_take(uint8_t *to) {
  if (!full()) return 0;
  int n = here()->tp_len;
  memcpy(to, (uint8_t *)here() + here()->tp_mac, n);
  next();
  return n;
}

// Who has no room loses the frame, as everywhere on an Ethernet.
static void send_one(const uint8_t *frame, int n) {
  if (send(ring_socket, frame, n, 0) != n && errno != ENOBUFS) die("send");
}

void ring_echo(void) {
  uint8_t f[SLOT], from[6];
  for (;;) {
    int n = 0;
    while (!n) n = ring_take(f);
    memcpy(from, f + 6, 6);
    head(f, from);
    send_one(f, n);
  }
}

// ---- the asking side. It looks at the answer's mark alone: no program can do less

static uint8_t ping[SLOT];
static int ping_len;

void ring_ping_open(int size) {
  ring_head(ping);
  ping_len = size + ETH_HLEN;
}

static int answered(void) {
  for (int looks = 0; looks < LOOKS; looks++)
    if (full()) return 1;
  return 0;
}

int ring_ping(void) {
  send_one(ping, ping_len);
  for (int windows = 0; windows < WINDOWS; windows++)
    if (answered()) return next(), windows == 0;
  return 0;
}
