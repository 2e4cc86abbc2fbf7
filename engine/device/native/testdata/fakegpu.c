// A stand-in for the libraries of a GPU, over the memory of the host: CUDA's driver, HIP, NCCL between processes, NVML and
// cuBLASLt, as far as busbar-gpu calls them. Everything is done when it is called, and done right, so that sums, products and
// refusals are real.
//
// FAKE_GPUS is how many GPUs there are, FAKE_MEMORY their bytes. FAKE_WRONG=1 makes NCCL lose the contribution of the last
// rank. FAKE_LOG=FILE appends the name of every HIP call, and rank 0's collectives with what they
// were called with; FAKE_ASYNC is what NCCL's own threads fail with. FAKE_HANG=RANK lets that rank wait for ever in its first collective.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long setting(const char *name, long otherwise) {
  const char *v = getenv(name);
  return v && *v ? atol(v) : otherwise;
}
static void note(const char *name) {
  const char *path = getenv("FAKE_LOG");
  if (!path) return;
  FILE *f = fopen(path, "a");
  if (f) { fprintf(f, "%s\n", name); fclose(f); }
}

// The driver.
static size_t used;
#define FULL 2
int cuInit(unsigned f) { return setting("FAKE_INIT", 0); }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = setting("FAKE_GPUS", 1); return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *b, int n, int d) { snprintf(b, n, "%s", getenv("FAKE_NAME") ? getenv("FAKE_NAME") : "Fake GPU"); return 0; }
int cuDeviceGetPCIBusId(char *b, int n, int d) { snprintf(b, n, "0000:%02X:00.0", 16 + d); return 0; }
int cuDeviceGetUuid(char *u, int d) { memset(u, 0xab, 16); u[15] = d; return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = setting("FAKE_MEMORY", 1L << 30); return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(d + 1); return setting("FAKE_BUSY", 0); }
int cuCtxSetCurrent(void *c) { return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *t = setting("FAKE_MEMORY", 1L << 30); *f = *t - used; return 0; }
int cuMemAlloc_v2(void **p, size_t n) {
  if (used + n > (size_t)setting("FAKE_MEMORY", 1L << 30)) return FULL;
  size_t *b = malloc(n + 64);
  b[0] = n; used += n; *p = (char *)b + 64;
  return 0;
}
int cuMemFree_v2(void *p) { size_t *b = (size_t *)((char *)p - 64); used -= b[0]; free(b); return 0; }
int cuMemHostAlloc(void **p, size_t n, unsigned f) { *p = malloc(n); return 0; }
int cuMemFreeHost(void *p) { free(p); return 0; }
int cuMemcpyHtoD_v2(void *d, const void *s, size_t n) { memcpy(d, s, n); return 0; }
int cuMemcpyDtoH_v2(void *d, const void *s, size_t n) { memcpy(d, s, n); return 0; }
int cuMemcpyHtoDAsync_v2(void *d, const void *s, size_t n, void *q) { memcpy(d, s, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *d, const void *s, size_t n, void *q) { memcpy(d, s, n); return 0; }
int cuMemcpyDtoDAsync_v2(void *d, const void *s, size_t n, void *q) { memmove(d, s, n); return 0; }
int cuMemcpyPeerAsync(void *d, void *dc, const void *s, void *sc, size_t n, void *q) { memcpy(d, s, n); return 0; }
int cuDeviceCanAccessPeer(int *can, int a, int b) { *can = 1; return 0; }
int cuCtxEnablePeerAccess(void *c, unsigned f) { return 0; }
int cuMemsetD8Async(void *p, unsigned char v, size_t n, void *q) { memset(p, v, n); return 0; }
int cuMemsetD32Async(uint32_t *p, uint32_t v, size_t n, void *q) { for (size_t i = 0; i < n; i++) p[i] = v; return 0; }
int cuStreamCreate(void **s, unsigned f) { *s = (void *)1; return 0; }
int cuStreamSynchronize(void *s) { return setting("FAKE_SYNC", 0); }
int cuStreamQuery(void *s) { // not ready now and then
  static int asked;
  return setting("FAKE_SYNC", 0) ? setting("FAKE_SYNC", 0) : setting("FAKE_ASYNC", 0) || asked++ % 3 ? 600 : 0;
}
int cuEventCreate(void **e, unsigned f) { *e = malloc(sizeof(struct timespec)); return 0; }
int cuEventRecord(struct timespec *e, void *s) { clock_gettime(CLOCK_MONOTONIC, e); return 0; }
int cuEventElapsedTime(float *ms, struct timespec *a, struct timespec *b) {
  *ms = (b->tv_sec - a->tv_sec) * 1e3 + (b->tv_nsec - a->tv_nsec) / 1e6;
  return 0;
}
int cuGetErrorName(int e, const char **s) { *s = e == FULL ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 46 ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : e == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : "CUDA_ERROR_UNKNOWN"; return 0; }
int cuGetErrorString(int e, const char **s) { *s = e == FULL ? "out of memory" : "fake error"; return 0; }

// HIP: the same under other names, recorded.
#define HIP(name, args, as, of) int name args { note(#name); return of as; }
HIP(hipInit, (unsigned f), (f), cuInit)
HIP(hipDriverGetVersion, (int *v), (v), cuDriverGetVersion)
HIP(hipGetDeviceCount, (int *n), (n), cuDeviceGetCount)
HIP(hipDeviceGet, (int *d, int i), (d, i), cuDeviceGet)
HIP(hipDeviceGetName, (char *b, int n, int d), (b, n, d), cuDeviceGetName)
HIP(hipDeviceGetPCIBusId, (char *b, int n, int d), (b, n, d), cuDeviceGetPCIBusId)
HIP(hipDeviceTotalMem, (size_t *b, int d), (b, d), cuDeviceTotalMem_v2)
HIP(hipMemGetInfo, (size_t *f, size_t *t), (f, t), cuMemGetInfo_v2)
HIP(hipMalloc, (void **p, size_t n), (p, n), cuMemAlloc_v2)
HIP(hipFree, (void *p), (p), cuMemFree_v2)
HIP(hipHostMalloc, (void **p, size_t n, unsigned f), (p, n, f), cuMemHostAlloc)
HIP(hipHostFree, (void *p), (p), cuMemFreeHost)
HIP(hipMemcpyHtoD, (void *d, void *s, size_t n), (d, s, n), cuMemcpyHtoD_v2)
HIP(hipMemcpyDtoH, (void *d, void *s, size_t n), (d, s, n), cuMemcpyDtoH_v2)
HIP(hipMemcpyHtoDAsync, (void *d, void *s, size_t n, void *q), (d, s, n, q), cuMemcpyHtoDAsync_v2)
HIP(hipMemcpyDtoHAsync, (void *d, void *s, size_t n, void *q), (d, s, n, q), cuMemcpyDtoHAsync_v2)
HIP(hipMemcpyDtoDAsync, (void *d, void *s, size_t n, void *q), (d, s, n, q), cuMemcpyDtoDAsync_v2)
HIP(hipMemsetD8Async, (void *p, unsigned char v, size_t n, void *q), (p, v, n, q), cuMemsetD8Async)
HIP(hipMemsetD32Async, (void *p, uint32_t v, size_t n, void *q), (p, v, n, q), cuMemsetD32Async)
HIP(hipStreamCreateWithFlags, (void **s, unsigned f), (s, f), cuStreamCreate)
HIP(hipStreamSynchronize, (void *s), (s), cuStreamSynchronize)
HIP(hipStreamQuery, (void *s), (s), cuStreamQuery)
HIP(hipEventCreateWithFlags, (void **e, unsigned f), (e, f), cuEventCreate)
HIP(hipEventRecord, (void *e, void *s), (e, s), cuEventRecord)
HIP(hipEventElapsedTime, (float *ms, void *a, void *b), (ms, a, b), cuEventElapsedTime)
HIP(hipDeviceCanAccessPeer, (int *can, int a, int b), (can, a, b), cuDeviceCanAccessPeer)
int hipSetDevice(int d) { note("hipSetDevice"); return 0; }
int hipDeviceEnablePeerAccess(int d, unsigned f) { note("hipDeviceEnablePeerAccess"); return 0; }
int hipMemcpyPeerAsync(void *d, int dd, const void *s, int sd, size_t n, void *q) { note("hipMemcpyPeerAsync"); memcpy(d, s, n); return 0; }
const char *hipGetErrorString(int e) { return e == FULL ? "out of memory" : "fake error"; }

// Elements as numbers, by NCCL's types.
static const int sizes[12] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static double minifloat(unsigned b, int e, int f) {
  int x = b >> f & ((1 << e) - 1);
  double m = (b & ((1u << f) - 1)) / (double)(1 << f);
  double v = x ? ldexp(1 + m, x - ((1 << (e - 1)) - 1)) : ldexp(m, 2 - (1 << (e - 1)));
  return b >> (e + f) & 1 ? -v : v;
}
static unsigned tiny(double v, int e, int f) { // cut, not rounded: what is not exact is wrong
  if (v == 0) return 0;
  int x;
  double m = frexp(fabs(v), &x);
  return (unsigned)(x - 1 + ((1 << (e - 1)) - 1)) << f | (unsigned)((m * 2 - 1) * (1 << f)) | (v < 0) << (e + f);
}
static double get(const char *p, int t, size_t i) {
  switch (t) {
  case 0: return ((int8_t *)p)[i];
  case 1: return ((uint8_t *)p)[i];
  case 2: return ((int32_t *)p)[i];
  case 3: return ((uint32_t *)p)[i];
  case 4: return ((int64_t *)p)[i];
  case 5: return ((uint64_t *)p)[i];
  case 6: return minifloat(((uint16_t *)p)[i], 5, 10);
  case 7: return ((float *)p)[i];
  case 8: return ((double *)p)[i];
  case 9: return minifloat(((uint16_t *)p)[i], 8, 7);
  case 10: return minifloat(((uint8_t *)p)[i], 4, 3);
  default: return minifloat(((uint8_t *)p)[i], 5, 2);
  }
}
static void put(char *p, int t, size_t i, double v) {
  switch (t) {
  case 0: ((int8_t *)p)[i] = v; break;
  case 1: ((uint8_t *)p)[i] = v; break;
  case 2: ((int32_t *)p)[i] = v; break;
  case 3: ((uint32_t *)p)[i] = v; break;
  case 4: ((int64_t *)p)[i] = v; break;
  case 5: ((uint64_t *)p)[i] = v; break;
  case 6: ((uint16_t *)p)[i] = tiny(v, 5, 10); break;
  case 7: ((float *)p)[i] = v; break;
  case 8: ((double *)p)[i] = v; break;
  case 9: ((uint16_t *)p)[i] = tiny(v, 8, 7); break;
  case 10: ((uint8_t *)p)[i] = tiny(v, 4, 3); break;
  default: ((uint8_t *)p)[i] = tiny(v, 5, 2); break;
  }
}

// NCCL between processes, through a file in memory. Its name is the key.
#define RANKS 16
#define SLOT (256 << 10)
#define BOX (32 << 10)
struct shared {
  int come, turn, left;
  char slot[RANKS][SLOT];
  struct { int full; size_t n; char data[BOX]; } box[RANKS][RANKS];
};
struct comm { struct shared *s; int rank, ranks; char name[128]; };
typedef struct { char b[128]; } ncclUniqueId;

#ifdef OLD
int ncclGetVersion(int *v) { *v = 22203; return 0; }
#else
int ncclGetVersion(int *v) { *v = 22809; return 0; }
#endif
const char *ncclGetErrorString(int e) { return e == 4 ? "invalid argument (run with NCCL_DEBUG=WARN for details)" : "fake NCCL error"; }
const char *ncclGetLastError(void *c) { return ""; }
int ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->b, 128, "/dev/shm/fakenccl.XXXXXX");
  int fd = mkstemp(id->b);
  if (fd < 0) return 2;
  int bad = ftruncate(fd, sizeof(struct shared));
  close(fd);
  return bad ? 2 : 0;
}
static void barrier(struct comm *c) {
  struct shared *s = c->s;
  int turn = __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&s->come, 1, __ATOMIC_ACQ_REL) == c->ranks) {
    __atomic_store_n(&s->come, 0, __ATOMIC_RELEASE);
    __atomic_add_fetch(&s->turn, 1, __ATOMIC_ACQ_REL);
    return;
  }
  while (__atomic_load_n(&s->turn, __ATOMIC_ACQUIRE) == turn) usleep(20);
}
int ncclCommInitRank(struct comm **out, int ranks, ncclUniqueId id, int rank) {
  if (ranks > RANKS || rank >= ranks) return 4;
  int fd = open(id.b, O_RDWR);
  if (fd < 0) return 2;
  struct comm *c = calloc(1, sizeof *c);
  c->s = mmap(0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  c->rank = rank; c->ranks = ranks;
  memcpy(c->name, id.b, 128);
  barrier(c);
  if (rank == 0) unlink(c->name);
  *out = c;
  return 0;
}
#ifndef OLD
int ncclCommInitRankScalable(struct comm **out, int ranks, int rank, int ids, ncclUniqueId *id, void *config) {
  struct { size_t size; unsigned magic, version; int a[4]; char *net; int b[2]; char *name; int c[6]; } *x = config; // of 2.28
  if (ids != 1 || x && (x->size != sizeof *x || x->magic != 0xcafebeef || x->version != 22800 || x->c[5] != 1)) return 4;
  for (int i = 0; x && i < 4; i++) if (x->a[i] != -2147483647 - 1) return 4;
  for (int i = 0; x && i < 5; i++) if (x->c[i] != -2147483647 - 1) return 4;
  note(x ? "config" : "no config");
  return ncclCommInitRank(out, ranks, *id, rank);
}
#endif
int ncclCommDestroy(struct comm *c) { munmap(c->s, sizeof(struct shared)); free(c); return 0; }

int ncclCommGetAsyncError(struct comm *c, int *e) { *e = setting("FAKE_ASYNC", 0); return 0; }

// called records a call of a collective by one rank.
static void called(const char *name, const void *s, const void *r, size_t n, struct comm *c) {
  char line[128];
  if (c->rank) return;
  snprintf(line, sizeof line, "%s %zu %zu %zu", name, (size_t)s, (size_t)r, n);
  note(line);
}
static void hang(struct comm *c) {
  while (c->ranks > 1 && setting("FAKE_HANG", -1) == c->rank) sleep(1);
}
static void combine(struct comm *c, char *to, size_t n, int type, int op) {
  int last = c->ranks - (c->ranks > 1 && n > 1 && setting("FAKE_WRONG", 0)); // a barrier of one element stays whole
  for (size_t i = 0; i < n; i++) {
    double v = get(c->s->slot[0], type, i);
    for (int r = 1; r < last; r++) {
      double x = get(c->s->slot[r], type, i);
      v = op == 1 ? v * x : op == 2 ? fmax(v, x) : op == 3 ? fmin(v, x) : v + x;
    }
    put(to, type, i, op == 4 ? v / c->ranks : v);
  }
}
// all reduces a vector; only those with somewhere to put it keep it.
static int all(const char *send, char *recv, size_t count, int type, int op, struct comm *c) {
  hang(c);
  size_t most = SLOT / sizes[type];
  for (size_t off = 0; off < count || off == 0; off += most) {
    size_t n = count - off < most ? count - off : most;
    memcpy(c->s->slot[c->rank], send + off * sizes[type], n * sizes[type]);
    barrier(c);
    if (recv) combine(c, recv + off * sizes[type], n, type, op);
    barrier(c);
  }
  return 0;
}
int ncclAllReduce(const char *s, char *r, size_t n, int t, int op, struct comm *c, void *q) { called("ncclAllReduce", s, r, n, c); return all(s, r, n, t, op, c); }
int ncclReduce(const char *s, char *r, size_t n, int t, int op, int root, struct comm *c, void *q) { called("ncclReduce", s, r, n, c); return all(s, c->rank == root ? r : 0, n, t, op, c); }
int ncclReduceScatter(const char *s, char *r, size_t n, int t, int op, struct comm *c, void *q) {
  called("ncclReduceScatter", s, r, n, c);
  for (int b = 0; b < c->ranks; b++) all(s + b * n * sizes[t], c->rank == b ? r : 0, n, t, op, c);
  return 0;
}
static int spread(const char *from, char *to, size_t bytes, int root, struct comm *c) {
  hang(c);
  for (size_t off = 0; off < bytes; off += SLOT) {
    size_t n = bytes - off < SLOT ? bytes - off : SLOT;
    if (c->rank == root) memcpy(c->s->slot[root], from + off, n);
    barrier(c);
    memcpy(to + off, c->s->slot[root], n);
    barrier(c);
  }
  return 0;
}
int ncclBroadcast(const char *s, char *r, size_t n, int t, int root, struct comm *c, void *q) { called("ncclBroadcast", s, r, n, c); return spread(s, r, n * sizes[t], root, c); }
int ncclAllGather(const char *s, char *r, size_t n, int t, struct comm *c, void *q) {
  called("ncclAllGather", s, r, n, c);
  for (int b = 0; b < c->ranks; b++) spread(s, r + b * n * sizes[t], n * sizes[t], b, c);
  return 0;
}

static struct op { char *at; size_t left; int peer, out; struct comm *c; } ops[4 * RANKS];
static int pending, depth;
static int flush(void) {
  for (int busy = 1; busy;) {
    busy = 0;
    for (int i = 0; i < pending; i++) {
      struct op *o = &ops[i];
      if (!o->left) continue;
      busy = 1;
      int from = o->out ? o->c->rank : o->peer, to = o->out ? o->peer : o->c->rank;
      int *full = &o->c->s->box[from][to].full;
      if (__atomic_load_n(full, __ATOMIC_ACQUIRE) == o->out) continue;
      size_t n = o->left < BOX ? o->left : BOX;
      char *data = o->c->s->box[from][to].data;
      if (o->out) memcpy(data, o->at, n); else memcpy(o->at, data, n);
      o->at += n; o->left -= n;
      __atomic_store_n(full, o->out, __ATOMIC_RELEASE);
    }
    if (busy) usleep(5);
  }
  pending = 0;
  return 0;
}
static int later(char *at, size_t bytes, int peer, int out, struct comm *c) {
  if (peer < 0 || peer >= c->ranks || pending == 4 * RANKS) return 4;
  ops[pending++] = (struct op){at, bytes, peer, out, c};
  return depth ? 0 : flush();
}
int ncclSend(char *p, size_t n, int t, int peer, struct comm *c, void *q) { called("ncclSend", p, 0, n, c); return later(p, n * sizes[t], peer, 1, c); }
int ncclRecv(char *p, size_t n, int t, int peer, struct comm *c, void *q) { called("ncclRecv", 0, p, n, c); return later(p, n * sizes[t], peer, 0, c); }
int ncclGroupStart(void) { depth++; return 0; }
int ncclGroupEnd(void) { return --depth ? 0 : flush(); }
#ifndef OLD
int ncclAlltoAll(char *s, char *r, size_t n, int t, struct comm *c, void *q) {
  called("ncclAlltoAll", s, r, n, c);
  depth++;
  for (int i = 0; i < c->ranks; i++) { later(s + i * n * sizes[t], n * sizes[t], i, 1, c); later(r + i * n * sizes[t], n * sizes[t], i, 0, c); }
  return ncclGroupEnd();
}
int ncclGather(char *s, char *r, size_t n, int t, int root, struct comm *c, void *q) {
  called("ncclGather", s, r, n, c);
  depth++;
  later(s, n * sizes[t], root, 1, c);
  for (int i = 0; i < c->ranks && c->rank == root; i++) later(r + i * n * sizes[t], n * sizes[t], i, 0, c);
  return ncclGroupEnd();
}
int ncclScatter(char *s, char *r, size_t n, int t, int root, struct comm *c, void *q) {
  called("ncclScatter", s, r, n, c);
  depth++;
  for (int i = 0; i < c->ranks && c->rank == root; i++) later(s + i * n * sizes[t], n * sizes[t], i, 1, c);
  later(r, n * sizes[t], root, 0, c);
  return ncclGroupEnd();
}
#endif

// NVML.
int nvmlInit_v2(void) { return 0; }
const char *nvmlErrorString(int e) { return e == 4 ? "Insufficient Permissions" : e == 15 ? "GPU is lost" : "fake NVML error"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = setting("FAKE_GPUS", 1); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(intptr_t)(i + 1); return setting("FAKE_LOST", -1) == i ? 15 : 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *b, void **d) { *d = (void *)1; return 0; }
int nvmlDeviceGetName(void *d, char *b, unsigned n) { snprintf(b, n, "Fake GPU"); return 0; }
int nvmlDeviceGetUUID(void *d, char *b, unsigned n) { snprintf(b, n, "GPU-fake-%d", (int)(intptr_t)d - 1); return 0; }
int nvmlDeviceGetPciInfo_v3(void *d, char *p) { memset(p, 0, 68); snprintf(p + 36, 32, "00000000:%02X:00.0", 15 + (int)(intptr_t)d); return 0; }
int nvmlDeviceGetClockInfo(void *d, int t, unsigned *v) { *v = t == 2 ? 3201 : setting("FAKE_MHZ", 1980); return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, int t, unsigned *v) { *v = t == 2 ? 3201 : 1980; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *v) { *v = setting("FAKE_REASONS", 0); return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *v) { *v = 123000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *v) { *v = 700000; return 0; }
int nvmlDeviceGetTemperature(void *d, int s, unsigned *v) { *v = setting("FAKE_CELSIUS", 40); return 0; }
int nvmlDeviceGetTotalEccErrors(void *d, int e, int c, unsigned long long *v) { *v = e == 1 ? setting("FAKE_ECC", 0) : 0; return 0; }
int nvmlDeviceGetRemappedRows(void *d, unsigned *a, unsigned *b, unsigned *p, unsigned *f) { *a = 0; *b = setting("FAKE_ROWS", 0); *p = setting("FAKE_PENDING", 0); *f = 0; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *v) { *v = setting("FAKE_WIDTH", 16); return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *d, unsigned *v) { *v = 16; return 0; }
int nvmlDeviceGetNvLinkState(void *d, unsigned l, unsigned *v) { *v = l != setting("FAKE_DOWN", -1); return l < 4 ? 0 : 3; }
int nvmlDeviceGetNvLinkErrorCounter(void *d, unsigned l, int c, unsigned long long *v) { *v = 0; return 0; }
int nvmlDeviceSetGpuLockedClocks(void *d, unsigned a, unsigned b) { return setting("FAKE_DENIED", 0) ? 4 : 0; }
int nvmlDeviceResetGpuLockedClocks(void *d) { return 0; }

// cuBLASLt: column by column, in doubles.
struct layout { int type; uint64_t rows, cols; int64_t ld; };
struct desc { int op[8]; };
int cublasLtCreate(void **h) { *h = (void *)1; return 0; }
int cublasLtMatmulDescCreate(struct desc **d, int c, int s) { *d = calloc(1, sizeof **d); return 0; }
int cublasLtMatmulDescSetAttribute(struct desc *d, int a, int *v, size_t n) { if (a < 8 && n == 4) d->op[a] = *v; return 0; }
int cublasLtMatmulDescDestroy(void *d) { free(d); return 0; }
int cublasLtMatrixLayoutCreate(struct layout **l, int t, uint64_t r, uint64_t c, int64_t ld) { *l = malloc(sizeof **l); **l = (struct layout){t, r, c, ld}; return 0; }
int cublasLtMatrixLayoutDestroy(void *l) { free(l); return 0; }
int cublasLtMatmulPreferenceCreate(void **p) { *p = malloc(8); return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int a, void *v, size_t n) { return 0; }
int cublasLtMatmulPreferenceDestroy(void *p) { free(p); return 0; }
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *e, void *p, int n, void *r, int *found) { *found = setting("FAKE_ALGOS", 1); return 0; }
static int ncclType(int t) { return t == 0 ? 7 : t == 1 ? 8 : t == 2 ? 6 : t == 14 ? 9 : 10; }
int cublasLtMatmul(void *h, struct desc *o, const void *alpha, const char *a, struct layout *la, const char *b, struct layout *lb, const void *beta, const char *c,
                   struct layout *lc, char *d, struct layout *ld, void *algo, void *work, size_t room, void *q) {
  uint64_t k = o->op[3] ? la->rows : la->cols;
  for (uint64_t i = 0; i < ld->rows; i++)
    for (uint64_t j = 0; j < ld->cols; j++) {
      double v = 0;
      for (uint64_t x = 0; x < k; x++)
        v += get(a, ncclType(la->type), o->op[3] ? x + i * la->ld : i + x * la->ld) * get(b, ncclType(lb->type), o->op[4] ? j + x * lb->ld : x + j * lb->ld);
      put(d, ncclType(ld->type), i + j * ld->ld, setting("FAKE_WRONG", 0) ? v + 1e3 : v);
    }
  return 0;
}

// cuBLAS: the same product, described in one call.
int cublasCreate_v2(void **h) { *h = (void *)1; return 0; }
int cublasSetStream_v2(void *h, void *q) { return 0; }
int cublasSetWorkspace_v2(void *h, void *w, size_t n) { return 0; }
int cublasSetMathMode(void *h, int m) { return 0; }
int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int at, int lda, const char *b, int bt, int ldb, const void *beta,
                 char *c, int ct, int ldc, int compute, int algo) {
  struct desc o = {{0}};
  o.op[3] = ta;
  o.op[4] = tb;
  struct layout la = {at, ta ? k : m, ta ? m : k, lda}, lb = {bt, tb ? n : k, tb ? k : n, ldb}, lc = {ct, m, n, ldc};
  return cublasLtMatmul(h, &o, alpha, a, &la, b, &lb, beta, c, &lc, c, &lc, 0, 0, 0, 0);
}
