// What the files of this program share.
#ifndef FLOOR_H
#define FLOOR_H
#include <stdint.h>

enum {
  TYPE = 0x88b6,    // EtherType for experiments, of all our frames
  SLOT = 2048,      // bytes: one slot of a ring, one buffer
  SLOTS = 1024,     // of a ring; rawlane's default
  MAX_BATCH = 64,   // frames of one sendmmsg
  POLLS = 1 << 19,  // system calls that find nothing, about 0.1 s, before an answer counts as late
  WINDOWS = 20,     // that an answer is awaited for, before it counts as lost: one that came later would be taken for the next
};

// main.c
void die(const char *what);
void ready(void);      // tells who waits for it that this program answers from now on
uint64_t now(void);    // ns
int warm_up(int iters, int batch); // how many of what is sent in batches come before those that count
enum { COUNTS, WARMS_UP };         // what a frame or a datagram says of itself: which it is of
extern volatile int over; // set by SIGTERM

// ring.c: a packet socket with a receive ring
extern int ring_socket;
void ring_open(const char *ifname);
void ring_head(uint8_t *frame); // writes a header: broadcast, from the interface's address
int ring_take(uint8_t *to);     // copies the next frame, if there is one, and returns its length, or 0
void ring_echo(void);
int ring_ping(void); // sends and awaits the answer; 0 if that is late or lost, and its time means nothing
void ring_ping_open(int size);

// xsk.c: a socket of AF_XDP
void xsk_open(const char *ifname, int native);
void xsk_echo(void);
int xsk_ping(void);
void xsk_ping_open(int size);
int xsk_take(uint8_t *to); // as ring_take
void xsk_send(int size, int iters, int batch);

// inet.c: sockets of the internet
void udp_echo(void);
void tcp_echo(void);
void udp_ping_open(const char *peer, int size);
void tcp_ping_open(const char *peer, int size);
int udp_ping(void);
int tcp_ping(void);
void tcp_sink(int polled);
enum tcp_way { NODELAY, NAGLE, GATHERED };
void tcp_send(const char *peer, int size, int iters, int batch, enum tcp_way way);
void inet_block(void);  // from now on calls sleep
extern int wait_flags;  // of recv(2): MSG_DONTWAIT, or none
void impatient(int s);  // calls that sleep end after a while

// gso.c: datagrams in trains
void gso_sums(void); // before the next two
void gso_sink(void);
void gso_send(const char *peer, int size, int iters, int batch);

// unix.c: a request and an answer over a Unix socket
void unix_echo(const char *path, int request, int answer);
void unix_ping_open(const char *path, int request, int answer);
int unix_ping(void);

// stream.c: as many frames as one core sends
void stream_sink(int (*take)(uint8_t *to)); // ring_take or xsk_take
void stream_send(int size, int iters, int batch);
void stream_both(int size, int ms, int batch);
void report(uint64_t since); // prints how many ns have passed
void stream_txring(const char *ifname, int size, int iters, int batch);

// barrier.c: barriers among processes
int barrier_main(char **args); // IF RANK N ITERS WAY
#endif
