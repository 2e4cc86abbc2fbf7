/* A program that calls a profiler plugin as NCCL does, by any of its interfaces. Its clock is its own, so that what
 * it measures does not depend on the machine's load.
 *
 *   drive LIB VERSION once                                     one process, one of everything, then what NCCL never does
 *   drive LIB VERSION job RANK RANKS STEPS SLOW_PERCENT FILE   one rank of a job; FILE is where ranks meet
 *   drive LIB VERSION many CALLS                               so many operations
 *   drive LIB VERSION steady CALLS MICROSECONDS FILE           so many operations by the machine's clock, that far apart, or until FILE is there
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t virtual_now = 1800000000ull * 1000000000ull;
int clock_gettime(clockid_t id, struct timespec *t) { /* instead of libc's, for the plugin too */
  (void)id;
  t->tv_sec = (time_t)(virtual_now / 1000000000ull), t->tv_nsec = (long)(virtual_now % 1000000000ull);
  return 0;
}

static void say(int level, unsigned long flags, const char *file, int line, const char *fmt, ...) {
  (void)flags, (void)file, (void)line;
  va_list a;
  va_start(a, fmt);
  printf("log%d ", level), vprintf(fmt, a), printf("\n");
  va_end(a);
}

struct coll2 { const char *name; uint64_t hash, seq; const char *func; const void *s; void *r; size_t count; int root; const char *type; size_t traffic; uint8_t channels, warps; const char *algo, *proto; };
struct coll3 { const char *name; uint64_t hash, seq; const char *func; const void *s; void *r; size_t count; int root; const char *type; uint8_t channels, warps; const char *algo, *proto; };
struct coll4 { uint64_t seq; const char *func; const void *s; void *r; size_t count; int root; const char *type; uint8_t channels, warps; const char *algo, *proto; void *group; };
struct p2p2 { const char *name; uint64_t hash; const char *func; void *b; const char *type; size_t count; int peer; };
struct p2p4 { const char *func; void *b; const char *type; size_t count; int peer; uint8_t channels; void *group; };
struct kernel { uint8_t channel; uint64_t timer; };
struct proxy { int pid; uint8_t channel; int peer, steps, chunk, send; };
union what { struct coll2 c2; struct coll3 c3; struct coll4 c4; struct p2p2 p2; struct p2p4 p4; struct kernel k; struct proxy x; char room[256]; };
struct d2 { uint8_t type; void *parent; int rank; union what u; };
struct d5 { uint64_t type; void *parent; int rank; union what u; };

static void **plugin;
static int version, mask;
static void *context;

static int start(void *ctx, void **handle, int type, void *parent, int rank, const union what *u) {
  int (*f)(void *, void **, void *) = plugin[2];
  if (version >= 5) {
    struct d5 d = {(uint64_t)type, parent, rank, *u};
    return f(ctx, handle, &d);
  }
  struct d2 d = {(uint8_t)type, parent, rank, *u};
  return f(ctx, handle, &d);
}
static int stop(void *h) { return h ? ((int (*)(void *))plugin[3])(h) : 0; }
static int state(void *h, int s, void *a) { return ((int (*)(void *, int, void *))plugin[4])(h, s, a); }

static void *init(uint64_t hash, const char *name, int rank, int ranks) {
  void *ctx = NULL;
  int rc;
  if (version < 4) rc = ((int (*)(void **, int *))plugin[1])(&ctx, &mask);
  else if (version == 4) rc = ((int (*)(void **, int *, const char *, uint64_t, int, int, int, void *))plugin[1])(&ctx, &mask, name, hash, (ranks + 1) / 2, ranks, rank, say);
  else rc = ((int (*)(void **, uint64_t, int *, const char *, int, int, int, void *))plugin[1])(&ctx, hash, &mask, name, (ranks + 1) / 2, ranks, rank, say);
  if (rc) printf("init: %d\n", rc);
  return ctx;
}

/* a collective with its channels: launched now, on the GPU from begin to end; end of 0: it never ends */
static void coll(void *ctx, uint64_t hash, uint64_t seq, const char *func, size_t count, const char *type, int rank, int channels, uint64_t begin, uint64_t end) {
  void *group = NULL, *api = NULL, *h = NULL, *ch[64] = {0};
  union what u = {0};
  if (version >= 5) start(ctx, &api, 512, NULL, rank, &u);
  start(ctx, &group, 1, NULL, rank, &u);
  if (version == 2) u.c2 = (struct coll2){"n", hash, seq, func, 0, 0, count, 0, type, 7, (uint8_t)channels, 1, "RING", "SIMPLE"};
  else if (version == 3) u.c3 = (struct coll3){"n", hash, seq, func, 0, 0, count, 0, type, (uint8_t)channels, 1, "RING", "SIMPLE"};
  else u.c4 = (struct coll4){seq, func, 0, 0, count, 0, type, (uint8_t)channels, 1, "RING", "SIMPLE", group};
  start(ctx, &h, 2, version >= 5 ? api : group, rank, &u);
  stop(h), stop(group), stop(api);
  memset(&u, 0, sizeof u);
  for (int c = 0; c < channels; c++) {
    virtual_now = begin + (uint64_t)c;
    if (mask & 64) u.k = (struct kernel){(uint8_t)c, begin + (uint64_t)c}, start(ctx, &ch[c], 64, h, rank, &u);
    else if (mask & 8) u.x = (struct proxy){getpid(), (uint8_t)c, 1, 1, 1, 1}, start(ctx, &ch[c], 8, h, rank, &u);
  }
  for (int c = 0; c < channels && end; c++) {
    uint64_t t = end - (uint64_t)c;
    virtual_now = end;
    if (ch[c] && version >= 4) state(ch[c], 22, &t);
    stop(ch[c]);
  }
}

static void once(void) {
  context = init(0xabcdef, "world", 3, 8);
  uint64_t t = virtual_now;
  coll(context, 0xabcdef, 0, "AllReduce", 1 << 20, "ncclBfloat16", 3, 8, t + 10000, t + 110000);
  coll(context, 0xabcdef, 0, "AllGather", 1 << 10, "ncclInt8", 3, 4, t + 200000, t + 250000);
  void *h = NULL;
  union what u = {0};
  if (version < 4) u.p2 = (struct p2p2){"n", 0xabcdef, "Send", 0, "ncclFloat32", 16, 5};
  else u.p4 = (struct p2p4){"Send", 0, "ncclFloat32", 16, 5, 1, NULL};
  start(context, &h, 4, NULL, 3, &u);
  coll(context, 0xabcdef, 1, "AllReduce", 1 << 20, "ncclBfloat16", 3, 8, t + 300000, 0);
}

/* hostile is what NCCL never does: the plugin must bear it. */
static void hostile(void) {
  union what u;
  memset(&u, 0, sizeof u);
  for (int type = -1; type < 40; type++) {
    if (type == 2 || type == 4) continue; /* with strings of nowhere */
    void *h = (void *)1;
    start(context, &h, type, (void *)~0ul, -1, &u);
    stop(h);
  }
  void *h = NULL;
  start(context, &h, 2, NULL, 1 << 30, &u); /* without any string */
  start((void *)100000ul, &h, 2, NULL, 0, &u);
  start(NULL, &h, 2, NULL, 0, &u);
  for (uint64_t v = 1; v; v <<= 1) stop((void *)v), state((void *)v, 22, &v), state((void *)v, 22, NULL);
  char *text = malloc(1 << 20);
  memset(text, 'x', (1 << 20) - 1), text[(1 << 20) - 1] = 0;
  init(~0ull, text, -5, -7);
  coll(context, 0, ~0ull, text, ~0ull, text, -1, 64, 5, 1);
  free(text);
  for (int i = 0; i < 400; i++) {
    void *c = init((uint64_t)i, NULL, 0, 2);
    coll(c, (uint64_t)i, 0, "Reduce", 1, "ncclInt8", 0, 1, 1, 2);
    if (i % 3 == 0) ((int (*)(void *))plugin[5])(c);
  }
}

struct meeting { volatile uint64_t arrived[64], at[64]; };

static void job(int rank, int ranks, int steps, int slow, const char *file) {
  int fd = open(file, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct meeting))) exit(3);
  struct meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void *ctx = init(0x77, NULL, rank, ranks);
  uint32_t noise = (uint32_t)rank * 2654435761u + 1;
  uint64_t seq = 0;
  for (int s = 0; s < steps; s++) {
    noise = noise * 1664525u + 1013904223u;
    virtual_now += 10000000ull * (uint64_t)(100 + slow) / 100 + (noise >> 8) % 200000u;
    for (int k = 0; k < 3; k++) {
      uint64_t begin = virtual_now, last = 0;
      m->at[rank] = begin;
      __sync_synchronize();
      m->arrived[rank] = ++seq * 2 - 1;
      for (int r = 0; r < ranks; r++) {
        while (m->arrived[r] < seq * 2 - 1) sched_yield();
        if (m->at[r] > last) last = m->at[r];
      }
      __sync_synchronize();
      m->arrived[rank] = seq * 2;
      for (int r = 0; r < ranks; r++) while (m->arrived[r] < seq * 2) sched_yield();
      coll(ctx, 0x77, seq - 1, "AllReduce", 1 << 20, "ncclFloat32", rank, 4, begin, last + 500000);
    }
  }
  ((int (*)(void *))plugin[5])(ctx);
}

static uint64_t machine_now(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void steady(int calls, int apart, const char *file) {
  void *ctx = init(0x5eed, "steady", 0, 2);
  int i = 0;
  for (; i < calls && access(file, F_OK); i++) {
    virtual_now = machine_now();
    coll(ctx, 0x5eed, (uint64_t)i, "AllReduce", 1 << 20, "ncclFloat32", 0, 4, virtual_now, virtual_now + 100000);
    usleep((useconds_t)apart);
  }
  printf("steady %d\n", i);
}

static void *half(void *calls) {
  for (int i = 0; i < *(int *)calls; i++) coll(context, 1, (uint64_t)i, "AllReduce", 1 << 20, "ncclFloat32", 0, 4, 1000, 2000);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!lib) return printf("%s\n", dlerror()), 1;
  version = atoi(argv[2]);
  char name[32];
  snprintf(name, sizeof name, "ncclProfiler_v%d", version);
  if (!(plugin = dlsym(lib, name))) return printf("no %s\n", name), 1;
  if (strcmp(argv[3], "once") == 0) once();
  else if (strcmp(argv[3], "hostile") == 0) once(), hostile();
  else if (strcmp(argv[3], "job") == 0 && argc == 9) job(atoi(argv[4]), atoi(argv[5]), atoi(argv[6]), atoi(argv[7]), argv[8]);
  else if (strcmp(argv[3], "steady") == 0 && argc == 7) steady(atoi(argv[4]), atoi(argv[5]), argv[6]);
  else if (strcmp(argv[3], "many") == 0 && argc == 5) {
    int calls = atoi(argv[4]);
    context = init(1, NULL, 0, 2);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, half, &calls);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  } else return 2;
  printf("mask %d done\n", mask);
  return 0;
}
