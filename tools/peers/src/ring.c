/* What plain sockets carry on the path of a ring: every process sends to the next and receives
 * from the one before at the same time, in one thread that waits in poll.
 * usage: ring RANKS RUNS WARM SIZE...   prints "row BYTES RUNS MICROSECONDS" for moving as many
 * bytes out of and into every process as an all-reduce of SIZE does: 2(n-1)/n of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most = 64, piece = 1 << 20 };
static double (*took)[most]; /* by size, by rank */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void quit(const char *what) {
  perror(what);
  _exit(3);
}

/* exchange sends and receives n bytes, walking through buffers of size bytes. */
static void exchange(int out, int in, char *a, char *b, long size, long n) {
  long sent = 0, got = 0;
  while (sent < n || got < n) {
    int idle = 1;
    if (sent < n) {
      long at = sent % size, k = n - sent;
      if (k > size - at) k = size - at;
      if (k > piece) k = piece;
      ssize_t r = send(out, a + at, (size_t)k, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (r > 0) sent += r, idle = 0;
      else if (errno != EAGAIN) quit("send");
    }
    if (got < n) {
      long at = got % size, k = n - got;
      if (k > size - at) k = size - at;
      if (k > piece) k = piece;
      ssize_t r = recv(in, b + at, (size_t)k, MSG_DONTWAIT);
      if (r > 0) got += r, idle = 0;
      else if (r == 0 || errno != EAGAIN) quit("recv");
    }
    if (idle) {
      struct pollfd p[2] = {{in, got < n ? POLLIN : 0, 0}, {out, sent < n ? POLLOUT : 0, 0}};
      poll(p, 2, 1000);
    }
  }
}

static void rank(int me, int n, int out, int in, long runs, int warm, int sizes, char **size) {
  for (int k = 0; k < sizes; k++) {
    long bytes = atol(size[k]), volume = bytes / n * 2 * (n - 1);
    char *a = malloc((size_t)bytes), *b = malloc((size_t)bytes);
    memset(a, 1, (size_t)bytes);
    memset(b, 1, (size_t)bytes);
    for (int i = 0; i < warm; i++) exchange(out, in, a, b, bytes, volume);
    double begin = seconds();
    for (long i = 0; i < runs; i++) exchange(out, in, a, b, bytes, volume);
    took[k][me] = (seconds() - begin) / (double)runs;
    free(a);
    free(b);
  }
  _exit(0);
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int n = atoi(argv[1]), warm = atoi(argv[3]), sizes = argc - 4;
  long runs = atol(argv[2]);
  if (n < 2 || n > most) return 2;
  took = mmap(NULL, sizeof *took * (size_t)sizes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int to[most], from[most]; /* socket of rank r towards the next; towards the one before */
  for (int r = 0; r < n; r++) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (bind(l, (struct sockaddr *)&at, len) || listen(l, 1) || getsockname(l, (struct sockaddr *)&at, &len)) quit("listen");
    to[r] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(to[r], (struct sockaddr *)&at, len)) quit("connect");
    from[(r + 1) % n] = accept(l, NULL, NULL);
    setsockopt(to[r], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(l);
  }
  for (int r = 0; r < n; r++)
    if (fork() == 0) rank(r, n, to[r], from[r], runs, warm, sizes, argv + 4);
  int bad = 0, status;
  while (wait(&status) > 0) bad |= status;
  for (int k = 0; k < sizes && !bad; k++) {
    double slowest = 0;
    for (int r = 0; r < n; r++)
      if (took[k][r] > slowest) slowest = took[k][r];
    printf("row %s %ld %.3f\n", argv[4 + k], runs, slowest * 1e6);
  }
  return bad != 0;
}
