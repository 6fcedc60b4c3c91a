// As many frames as one core sends, by each of the kernel's calls, and a receiver that counts them. The senders print how
// many ns all frames took.
#define _GNU_SOURCE
#include "baseline.h"
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

// stream_sink copies what it receives, as a program that wants it would. Told to end, it takes what has come and prints
// how many frames there were that count.
void stream_sink(int (*take)(uint8_t *to)) {
  static uint8_t frame[SLOT];
  uint64_t received = 0;
  for (;;) {
    if (take(frame)) received += frame[ETH_HLEN] == COUNTS;
    else if (over) break;
    __asm__ volatile("" : : "r"(frame) : "memory"); // the copy is wanted
  }
  printf("%llu\n", (unsigned long long)received);
}

void report(uint64_t since) { printf("%llu\n", (unsigned long long)(now() - since)); }

static uint8_t frames[MAX_BATCH][SLOT]; // each frame of a batch is somewhere else, as messages are
static struct mmsghdr msgs[MAX_BATCH];

static void fill(int n, int batch) {
  static struct iovec iov[MAX_BATCH];
  for (int i = 0; i < batch; i++) {
    ring_head(frames[i]);
    iov[i] = (struct iovec){frames[i], n};
    msgs[i].msg_hdr.msg_iov = &iov[i];
    msgs[i].msg_hdr.msg_iovlen = 1;
  }
}

// send_some returns how many frames were sent. A batch of 1 is a send for each frame, others are sendmmsg.
static int send_some(int n, int batch, int want) {
  int sent = batch == 1 ? (send(ring_socket, frames[0], n, 0) == n ? 1 : -1) : sendmmsg(ring_socket, msgs, want, 0);
  if (sent < 0 && errno != ENOBUFS) die("send");
  return sent < 0 ? 0 : sent;
}

static void mark(int as) {
  for (int i = 0; i < MAX_BATCH; i++) frames[i][ETH_HLEN] = as;
}

void stream_send(int size, int iters, int batch) {
  int n = size + ETH_HLEN;
  fill(n, batch);
  mark(WARMS_UP);
  for (int left = warm_up(iters, batch); left > 0;) left -= send_some(n, batch, left < batch ? left : batch);
  mark(COUNTS);
  uint64_t start = now();
  for (int left = iters; left > 0;) left -= send_some(n, batch, left < batch ? left : batch);
  report(start);
}

// stream_both sends for some ms, and takes what comes meanwhile from the other, who does the same. It begins when it has
// heard of the other, warms up for a tenth of the time, and prints how many frames it sent from then on, and how many came. Told to end, it waits for nobody; what it has
// begun it does in full, as the other has.
void stream_both(int size, int ms, int batch) {
  static uint8_t frame[SLOT];
  uint64_t sent = 0, received = 0;
  int n = size + ETH_HLEN;
  fill(n, batch);
  for (int heard = 0; !heard && !over;) {
    send_some(n, 1, 1);
    for (uint64_t start = now(); !heard && now() - start < 1000000;) heard = ring_take(frame);
  }
  uint64_t start = now() + ms * 100000ull;
  for (uint64_t t; (t = now()) < start + ms * 1000000ull;) {
    if (t < start) sent = received = 0;
    sent += send_some(n, batch, batch);
    while (ring_take(frame)) {
      received++;
      __asm__ volatile("" : : "r"(frame) : "memory"); // the copy is wanted
    }
  }
  printf("%llu %llu\n", (unsigned long long)sent, (unsigned long long)received);
}

// The same by a transmit ring: frames are written to slots that the kernel sends from when it is kicked.
void stream_txring(const char *ifname, int size, int iters, int batch) {
  int version = TPACKET_V2, one = 1, n = size + ETH_HLEN, tx = socket(AF_PACKET, SOCK_RAW, 0);
  struct tpacket_req req = {.tp_block_size = SLOT * 16, .tp_block_nr = SLOTS / 16, .tp_frame_size = SLOT, .tp_frame_nr = SLOTS};
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(ifname)};
  if (tx < 0 || setsockopt(tx, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) die("PACKET_VERSION");
  if (setsockopt(tx, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one)) die("PACKET_QDISC_BYPASS");
  if (setsockopt(tx, SOL_PACKET, PACKET_TX_RING, &req, sizeof req)) die("PACKET_TX_RING");
  uint8_t *slots = mmap(NULL, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, tx, 0);
  if (slots == MAP_FAILED || bind(tx, (struct sockaddr *)&to, sizeof to)) die("bind");
  static uint8_t f[SLOT];
  ring_head(f);
  f[ETH_HLEN] = WARMS_UP;
  uint64_t start = 0;
  for (int i = 0, warm = warm_up(iters, batch); i < warm + iters; i++) {
    if (i == warm) f[ETH_HLEN] = COUNTS, start = now();
    struct tpacket2_hdr *h = (void *)(slots + (i % SLOTS) * SLOT);
    while (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE) send(tx, NULL, 0, MSG_DONTWAIT);
    memcpy((uint8_t *)h + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll), f, n);
    h->tp_len = n;
    __atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
    if ((i + 1) % batch == 0 && send(tx, NULL, 0, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ENOBUFS) die("kick");
  }
  while (send(tx, NULL, 0, 0) < 0)
    if (errno != EAGAIN && errno != ENOBUFS) die("kick");
  report(start);
}
