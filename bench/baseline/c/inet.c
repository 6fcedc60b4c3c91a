// Sockets of UDP and TCP: polled, which is what remains of their cost when nobody sleeps, or blocking.
#include "baseline.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

enum { PORT = 7777 };

static int sock, ping_len, windows_of_polls = POLLS;

int wait_flags = MSG_DONTWAIT;

// Blocking calls end after as long as a window of polls, too: an answer may be lost.
void inet_block(void) { wait_flags = 0, windows_of_polls = 1; }

void impatient(int s) {
  struct timeval window = {.tv_usec = 100000};
  if (!wait_flags && setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &window, sizeof window)) die("SO_RCVTIMEO");
}

static uint8_t buffer[SLOT];

static struct sockaddr_in address(const char *ip) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = INADDR_ANY};
  if (ip && inet_pton(AF_INET, ip, &a.sin_addr) != 1) die(ip);
  return a;
}

static void nodelay(int s) {
  int one = 1;
  if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("TCP_NODELAY");
}

static int bound(int type) {
  struct sockaddr_in a = address(NULL);
  int one = 1, s = socket(AF_INET, type, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a)) die("bind");
  return s;
}

static void connected(int type, const char *peer, int size) {
  struct sockaddr_in a = address(peer);
  sock = socket(AF_INET, type, 0);
  if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof a)) die("connect");
  impatient(sock);
  ping_len = size;
}

static int empty(int n) {
  if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) die("recv");
  return n < 0;
}

void udp_echo(void) {
  int s = bound(SOCK_DGRAM);
  ready();
  for (;;) {
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int n = recvfrom(s, buffer, sizeof buffer, wait_flags, (struct sockaddr *)&from, &len);
    if (!empty(n) && sendto(s, buffer, n, 0, (struct sockaddr *)&from, len) != n) die("sendto");
  }
}

void udp_ping_open(const char *peer, int size) { connected(SOCK_DGRAM, peer, size); }

static int answered(void) {
  for (int polls = 0; polls < windows_of_polls; polls++)
    if (!empty(recv(sock, buffer, sizeof buffer, wait_flags))) return 1;
  return 0;
}

int udp_ping(void) {
  if (send(sock, buffer, ping_len, 0) != ping_len) die("send");
  for (int windows = 0; windows < WINDOWS; windows++)
    if (answered()) return windows == 0;
  return 0;
}

void tcp_echo(void) {
  int listening = bound(SOCK_STREAM);
  if (listen(listening, 1)) die("listen");
  ready();
  int s = accept(listening, NULL, NULL);
  if (s < 0) die("accept");
  nodelay(s);
  for (;;) {
    int n = recv(s, buffer, sizeof buffer, wait_flags);
    if (n == 0) exit(0); // the stream has ended
    if (!empty(n) && send(s, buffer, n, 0) != n) die("send");
  }
}

void tcp_ping_open(const char *peer, int size) {
  connected(SOCK_STREAM, peer, size);
  nodelay(sock);
}

int tcp_ping(void) {
  if (send(sock, buffer, ping_len, 0) != ping_len) die("send");
  for (int got = 0; got < ping_len;) {
    int n = recv(sock, buffer + got, ping_len - got, wait_flags);
    if (n == 0) errno = ECONNRESET, die("recv");
    if (!empty(n)) got += n;
  }
  return 1; // TCP loses nothing
}

// ---- records over a stream

// tcp_sink reads how many bytes warm up, and these; then a stream to its end. It answers each time with the number that came.
void tcp_sink(int polled) {
  static uint8_t chunk[1 << 16];
  uint64_t came = 0, warm;
  int listening = bound(SOCK_STREAM), flags = polled ? MSG_DONTWAIT : 0, n = -1;
  if (listen(listening, 1)) die("listen");
  ready();
  int s = accept(listening, NULL, NULL);
  if (s < 0) die("accept");
  if (recv(s, &warm, sizeof warm, MSG_WAITALL) != sizeof warm) die("recv");
  while (n && came < warm) // the other side sends no more before it has the answer
    if (!empty(n = recv(s, chunk, sizeof chunk, flags))) came += n;
  if (send(s, &came, sizeof came, 0) != sizeof came) die("send");
  for (came = 0; (n = recv(s, chunk, sizeof chunk, flags)) != 0;)
    if (!empty(n)) came += n;
  if (send(s, &came, sizeof came, 0) != sizeof came) die("send");
}

// send_gathered sends a batch of records that lie apart, as a program's do, in one call.
static int send_gathered(int size, int count) {
  static uint8_t apart[MAX_BATCH][SLOT];
  static struct iovec iov[MAX_BATCH];
  for (int i = 0; i < count; i++) iov[i] = (struct iovec){apart[i], size};
  return writev(sock, iov, count);
}

// send_records sends so many bytes of records, a batch in each call.
static void send_records(uint64_t left, int size, int batch, enum tcp_way way) {
  static uint8_t records[MAX_BATCH * SLOT];
  while (left > 0) {
    uint64_t want = (uint64_t)size * batch;
    if (want > left) want = left;
    int n = way == GATHERED && want % size == 0 ? send_gathered(size, want / size) : send(sock, records, want, 0);
    if (n < 0) die("send");
    left -= n;
  }
}

static void other_has(uint64_t all) {
  uint64_t came = 0;
  if (recv(sock, &came, sizeof came, MSG_WAITALL) != sizeof came) die("recv");
  if (came != all) errno = EPROTO, die("the other side did not get all");
}

// tcp_send sends records, so many in each call, and prints how many ns it took until the other side had them all. With
// Nagle's algorithm the kernel may gather records of one send each; gathered, each call gives the kernel a list of records.
void tcp_send(const char *peer, int size, int iters, int batch, enum tcp_way way) {
  uint64_t all = (uint64_t)size * iters, warm = (uint64_t)size * warm_up(iters, batch);
  connected(SOCK_STREAM, peer, size);
  if (way != NAGLE) nodelay(sock);
  if (send(sock, &warm, sizeof warm, 0) != sizeof warm) die("send");
  send_records(warm, size, batch, way);
  other_has(warm);
  uint64_t start = now();
  send_records(all, size, batch, way);
  if (shutdown(sock, SHUT_WR)) die("shutdown");
  other_has(all);
  printf("%llu\n", (unsigned long long)(now() - start));
}
