// Datagrams in trains: so many of one length go through the kernel as one (UDP_SEGMENT), and come as one (UDP_GRO).
#define _GNU_SOURCE
#include "baseline.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { GSO_PORT = 7778, TRAIN = 65507, SOCKET_BUFFER = 8 << 20, DRAIN = 20000000 /* ns */,
       WORDS = 3 /* of a message: what is left, a counter, and what it is of */ };

static char train[1 << 16];
static int sums; // messages are copied into the train, with a sum that the receiver checks

void gso_sums(void) { sums = 1; }

// sum adds up the words of so many bytes; what is left of the last word does not count.
__attribute__((optimize("O3"))) static uint64_t sum(const char *bytes, size_t n) {
  uint64_t total = 0, word;
  for (size_t i = 0; i + sizeof word <= n; i += sizeof word) memcpy(&word, bytes + i, sizeof word), total += word;
  return total;
}

static char message[1500];

// write_train copies a message into each datagram, behind a word by which all words add up to nothing.
static void write_train(int size, int batch) {
  message[sizeof(uint64_t)]++; // another one each time
  for (int k = 0; k < batch; k++) {
    char *datagram = train + (size_t)k * size;
    memcpy(datagram, message, size);
    uint64_t rest = -sum(datagram + sizeof rest, size - sizeof rest);
    memcpy(datagram, &rest, sizeof rest);
  }
}

static int gso_socket(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0), size = SOCKET_BUFFER;
  if (s < 0) die("socket");
  if (setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size)) setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  if (setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size)) setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  return s;
}

// gso_sink receives until it is told to end, takes what comes soon after, as the kernel may have it, and prints how many bytes came that count, and in how many ns. A train counts as
// its last byte says.
void gso_sink(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(GSO_PORT)};
  int s = gso_socket(), one = 1;
  if (bind(s, (struct sockaddr *)&a, sizeof a)) die("bind");
  if (setsockopt(s, IPPROTO_UDP, UDP_GRO, &one, sizeof one)) die("UDP_GRO");
  impatient(s);
  ready();
  uint64_t first = 0, last = 0, bytes = 0, told = 0;
  for (;;) {
    ssize_t n = recv(s, train, sizeof train, over ? MSG_DONTWAIT : wait_flags);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) die("recv");
      if (over && !told) told = now();
      if (told && now() - told > DRAIN) break;
      continue;
    }
    if (n == 0 || train[n - 1] != COUNTS) continue;
    last = now();
    if (!first) first = last;
    if (sums && sum(train, n)) errno = EBADMSG, die("sum");
    bytes += n;
  }
  printf("%llu %llu\n", (unsigned long long)bytes, (unsigned long long)(last - first));
}

// send_trains sends datagrams, a train in each call, whose last bytes say what they are of.
static void send_trains(int s, int left, int size, int batch, int as) {
  message[size - 1] = as;
  for (int k = 1; k <= batch; k++) train[(size_t)k * size - 1] = as;
  for (; left > 0; left -= batch) {
    if (sums) write_train(size, batch);
    ssize_t n = send(s, train, (size_t)size * batch, 0);
    if (n < 0 && errno != ENOBUFS && errno != ECONNREFUSED) die("send");
  }
}

// gso_send sends datagrams of a size, so many in each call. Between those that warm up and those that count it lets the
// receiver take all, so that no train is of both.
void gso_send(const char *peer, int size, int iters, int batch) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(GSO_PORT)};
  int s = gso_socket();
  if (inet_pton(AF_INET, peer, &a.sin_addr) != 1) die(peer);
  if (connect(s, (struct sockaddr *)&a, sizeof a)) die("connect");
  if (size * batch > TRAIN) errno = EMSGSIZE, die("train");
  if (sums && (size % sizeof(uint64_t) || size < WORDS * (int)sizeof(uint64_t))) errno = EINVAL, die("a size without whole words");
  if (batch > 1 && setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size)) die("UDP_SEGMENT");
  send_trains(s, warm_up(iters, batch), size, batch, WARMS_UP);
  for (uint64_t warm = now(); now() - warm < DRAIN;);
  uint64_t start = now();
  send_trains(s, iters, size, batch, COUNTS);
  printf("%llu\n", (unsigned long long)(now() - start));
}
