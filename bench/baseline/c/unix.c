// A request and an answer over a Unix socket: the least that asking another process can cost. Both ends sleep.
#include "baseline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int s, request_len, answer_len;
static uint8_t buffer[SLOT];

static struct sockaddr_un at(const char *path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  strncpy(a.sun_path, path, sizeof a.sun_path - 1);
  return a;
}

static void transfer(const char *what, int all, ssize_t (*some)(int, void *, size_t, int)) {
  for (int done = 0; done < all;) {
    int n = some(s, buffer + done, all - done, 0);
    if (n < 0) die(what);
    if (n == 0) exit(0); // the other has ended
    done += n;
  }
}

static ssize_t give(int to, void *from, size_t n, int flags) { return send(to, from, n, flags | MSG_NOSIGNAL); }

void unix_echo(const char *path, int request, int answer) {
  struct sockaddr_un a = at(path);
  int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(path); // the last round was ended by a signal, and may have left it
  if (listening < 0 || bind(listening, (struct sockaddr *)&a, sizeof a) || listen(listening, 1)) die(path);
  ready();
  if ((s = accept(listening, NULL, NULL)) < 0) die("accept");
  for (;;) {
    transfer("recv", request, recv);
    transfer("send", answer, give);
  }
}

void unix_ping_open(const char *path, int request, int answer) {
  struct sockaddr_un a = at(path);
  s = socket(AF_UNIX, SOCK_STREAM, 0);
  if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof a)) die(path);
  request_len = request, answer_len = answer;
}

int unix_ping(void) {
  transfer("send", request_len, give);
  transfer("recv", answer_len, recv);
  return 1; // it loses nothing
}
