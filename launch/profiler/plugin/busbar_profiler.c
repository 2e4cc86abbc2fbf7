/* A profiler plugin for NCCL that writes every operation into a ring in shared memory.
 *
 *   cc -O2 -shared -fPIC -o libnccl-profiler-busbar.so busbar_profiler.c
 *   NCCL_PROFILER_PLUGIN=$PWD/libnccl-profiler-busbar.so  <job>
 *   busbar jobs
 *
 * BUSBAR_PROFILE_DIR      folder of the rings (default /dev/shm)
 * BUSBAR_PROFILE_RECORDS  operations that a ring holds, 64 to 1048576 (default 16384)
 * BUSBAR_PROFILE_TIMING   0: launches only, without the GPU's clock (default 1)
 * BUSBAR_JOB              the job's name (default: that of Slurm, torchrun, PBS, LSF)
 *
 * A ring is one file for each process, of fixed size: the oldest record is overwritten. The plugin
 * starts no thread, takes no lock, waits for nobody and allocates nothing after a communicator's
 * creation; who reads the file is unknown to it. Where the file cannot be made or its memory
 * not reserved, the job runs without it.
 *
 * It speaks the interfaces v2 (NCCL 2.24) to v6 (2.29 and later), and needs no header of NCCL. The
 * layout of a ring is that of Go package busbar.dev/input/profile.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

enum { LEVEL_WARN = 2, LEVEL_INFO = 3, FLAG_INIT = 1, SUCCESS = 0 };
enum { EVENT_GROUP = 1, EVENT_COLL = 2, EVENT_P2P = 4, EVENT_PROXY_OP = 8, EVENT_KERNEL = 64, EVENT_COLL_API = 512, EVENT_P2P_API = 1024 };
enum { STATE_KERNEL_STOP = 22 };
enum { MAX_COMMS = 256, MIN_RECORDS = 64, MAX_RECORDS = 1 << 20, DEFAULT_RECORDS = 1 << 14, MAX_STALE = 4096 };

struct record {
  uint64_t stamp; /* number of the record plus one; 0 while it is written */
  uint64_t sequence, count, launched, gpu_start, gpu_stop, host_start, host_stop;
  uint32_t comm;
  int32_t peer; /* or root */
  uint32_t started, stopped; /* channels */
  uint8_t function, type, algorithm, protocol, channels, api, unused[2];
  int32_t rank;
  uint32_t unused2;
};

struct comm {
  uint64_t hash;
  int32_t rank, ranks, nodes;
  uint32_t state; /* 0 free, 1 in use, 2 ended */
  uint64_t created;
  char name[96];
};

struct header {
  char magic[8];
  uint32_t version, header_size, record_size, records, comm_size, comms;
  uint64_t pid, created;
  uint64_t next; /* records begun so far */
  uint64_t lost; /* operations of communicators beyond MAX_COMMS */
  int32_t rank, local_rank, world, unused;
  char host[64], job[96];
  char reserved[4096 - 240];
  struct comm table[MAX_COMMS];
};

_Static_assert(sizeof(struct record) == 96 && sizeof(struct comm) == 128 && sizeof(struct header) == 4096 + MAX_COMMS * 128, "the layout of busbar.dev/input/profile");

static struct header *ring;
static struct record *records;
static uint32_t capacity, mask, events;
static int ring_fd = -1, tried, open_comms, opening;
static int *switched; /* NCCL's own mask, which may change at any time */

#define SAY(log, level, ...) \
  do { if (log) log(level, FLAG_INIT, __func__, __LINE__, __VA_ARGS__); } while (0)

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint8_t find(const char *word, const char *const *list) {
  if (word)
    for (int i = 0; list[i]; i++)
      if (strcasecmp(word, list[i]) == 0) return (uint8_t)(i + 1);
  return 0;
}

static const char *const functions[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "AlltoAll", "Gather", "Scatter", NULL};
static const char *const types[] = {"ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2", NULL};
static const char *const algorithms[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", NULL};
static const char *const protocols[] = {"ll", "ll128", "simple", NULL};

/* setting is the first variable that is set to a number in bounds. */
static long setting(const char *const *names, long least, long most, long otherwise) {
  for (int i = 0; names[i]; i++) {
    const char *text = getenv(names[i]);
    char *end;
    if (!text || !*text) continue;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (!errno && !*end && v >= least && v <= most) return v;
  }
  return otherwise;
}

static void copy(char *to, size_t size, const char *from) {
  size_t n = from ? strnlen(from, size - 1) : 0;
  if (n) memcpy(to, from, n);
  to[n] = 0;
}

/* clean removes the rings of this user that no process holds any more and that are older than ten minutes. */
static void clean(int dir) {
  int own = dup(dir), seen = 0;
  DIR *list = own >= 0 ? fdopendir(own) : NULL;
  if (!list) {
    if (own >= 0) close(own);
    return;
  }
  struct dirent *e;
  while (seen++ < MAX_STALE && (e = readdir(list))) {
    size_t n = strlen(e->d_name);
    struct stat info;
    if (strncmp(e->d_name, "busbar-", 7) || n < 12 || strcmp(e->d_name + n - 5, ".ring")) continue;
    int fd = openat(dir, e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid() && info.st_ctime + 600 < time(NULL) && !flock(fd, LOCK_EX | LOCK_NB)) unlinkat(dir, e->d_name, 0);
    close(fd);
  }
  closedir(list);
}

static void identify(void) {
  static const char *const ranks[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL};
  static const char *const locals[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", NULL};
  static const char *const worlds[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
  static const char *const jobs[] = {"BUSBAR_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID", NULL};
  ring->rank = (int32_t)setting(ranks, 0, 1 << 30, -1);
  ring->local_rank = (int32_t)setting(locals, 0, 1 << 20, -1);
  ring->world = (int32_t)setting(worlds, 1, 1 << 30, 0);
  if (gethostname(ring->host, sizeof ring->host)) ring->host[0] = 0;
  ring->host[sizeof ring->host - 1] = 0;
  const char *name = getenv("BUSBAR_HOST"), *job = NULL;
  if (name && *name) copy(ring->host, sizeof ring->host, name);
  for (int i = 0; jobs[i] && (!job || !*job); i++) job = getenv(jobs[i]);
  copy(ring->job, sizeof ring->job, job);
}

/* open_ring makes the file. Its memory is reserved at once: a page that a full file system cannot give would end the
 * process at the first write. */
static void open_ring(logger log) {
  static const char *const sizes[] = {"BUSBAR_PROFILE_RECORDS", NULL};
  const char *folder = getenv("BUSBAR_PROFILE_DIR");
  if (!folder || !*folder) folder = "/dev/shm";
  int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (dir < 0) {
    SAY(log, LEVEL_WARN, "busbar profiler: %.300s is no folder that can be opened; operations are not recorded", folder);
    return;
  }
  clean(dir);
  uint32_t want = (uint32_t)setting(sizes, MIN_RECORDS, MAX_RECORDS, DEFAULT_RECORDS);
  capacity = MIN_RECORDS;
  while (capacity < want) capacity *= 2;
  mask = capacity - 1;
  size_t size = sizeof(struct header) + (size_t)capacity * sizeof(struct record);
  char name[64];
  snprintf(name, sizeof name, "busbar-%ld-%llx.ring", (long)getpid(), (unsigned long long)now());
  int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  void *memory = MAP_FAILED;
  if (fd >= 0 && posix_fallocate(fd, 0, (off_t)size) == 0) memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    if (fd >= 0) close(fd), unlinkat(dir, name, 0);
    close(dir);
    SAY(log, LEVEL_WARN, "busbar profiler: %.300s has no room for %zu bytes, or cannot be written; operations are not recorded", folder, size);
    return;
  }
  close(dir);
  (void)!flock(fd, LOCK_SH | LOCK_NB); /* says that the ring is in use, for as long as this process lives */
  ring_fd = fd;
  ring = memory;
  records = (struct record *)(ring + 1);
  ring->version = 1, ring->header_size = sizeof(struct header), ring->record_size = sizeof(struct record);
  ring->records = capacity, ring->comm_size = sizeof(struct comm), ring->comms = MAX_COMMS;
  ring->pid = (uint64_t)getpid(), ring->created = now();
  identify();
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(ring->magic, "BUSBARP1", 8);
  SAY(log, LEVEL_INFO, "busbar profiler: %.300s/%s holds %u operations", folder, name, capacity);
}

/* begin makes a communicator known. Its context is a number, not a pointer: nothing that NCCL hands back is followed. */
static int begin(void **context, int *activation, const char *name, uint64_t hash, int nodes, int ranks, int rank, logger log, uint32_t wanted) {
  static const char *const timing[] = {"BUSBAR_PROFILE_TIMING", NULL};
  while (__atomic_exchange_n(&opening, 1, __ATOMIC_ACQUIRE)) usleep(100); /* communicators are made side by side */
  if (!tried) {
    tried = 1;
    open_ring(log);
    events = setting(timing, 0, 1, 1) ? wanted : wanted & (EVENT_COLL | EVENT_P2P);
  }
  *context = NULL;
  *activation = 0;
  if (ring) {
    uint32_t at = 0;
    while (at < MAX_COMMS && ring->table[at].state == 1) at++;
    /* an ended one is taken again only where no free one is left, since its operations are still in the ring */
    for (uint32_t i = 0; i < MAX_COMMS; i++)
      if (ring->table[i].state == 0) {
        at = i;
        break;
      }
    *activation = (int)events;
    switched = activation;
    *context = (void *)(uintptr_t)(at + 1); /* MAX_COMMS + 1: counted as lost */
    if (at < MAX_COMMS) {
      struct comm *c = &ring->table[at];
      c->state = 0, c->hash = hash, c->rank = rank, c->ranks = ranks, c->nodes = nodes, c->created = now();
      copy(c->name, sizeof c->name, name);
      __atomic_store_n(&c->state, 1, __ATOMIC_RELEASE);
    }
    open_comms++;
  }
  __atomic_store_n(&opening, 0, __ATOMIC_RELEASE);
  return SUCCESS;
}

static int end(void *context) {
  uintptr_t n = (uintptr_t)context;
  while (__atomic_exchange_n(&opening, 1, __ATOMIC_ACQUIRE)) usleep(100);
  if (ring && n >= 1 && n <= MAX_COMMS) __atomic_store_n(&ring->table[n - 1].state, 2, __ATOMIC_RELEASE);
  /* NCCL unloads the plugin after its last communicator: what is mapped would stay for nothing. The file stays readable. */
  if (ring && open_comms > 0 && --open_comms == 0) {
    munmap(ring, sizeof(struct header) + (size_t)capacity * sizeof(struct record));
    close(ring_fd);
    ring = NULL, records = NULL, ring_fd = -1, tried = 0;
  }
  __atomic_store_n(&opening, 0, __ATOMIC_RELEASE);
  return SUCCESS;
}

/* A handle is a number: what it is in the upper bits, the record in the lower ones. */
enum { HANDLE_RECORD = 1, HANDLE_CHANNEL = 2, HANDLE_NOTHING = 3 };
#define HANDLE(kind, number) ((void *)(uintptr_t)((uint64_t)(kind) << 60 | ((number) & 0xffffffffffffffull)))

static struct record *record_of(void *handle, uint64_t kind) {
  uint64_t h = (uint64_t)(uintptr_t)handle, number = h & 0xffffffffffffffull;
  if (h >> 60 != kind || !ring || !number) return NULL;
  struct record *r = &records[(number - 1) & mask];
  return __atomic_load_n(&r->stamp, __ATOMIC_ACQUIRE) == number ? r : NULL; /* else overwritten */
}

struct operation {
  uint64_t hash, sequence, count;
  const char *function, *type, *algorithm, *protocol;
  int peer, rank, channels, api;
};

static void launch(void *context, void **handle, const struct operation *o) {
  uintptr_t n = (uintptr_t)context;
  if (!ring || !n) return;
  if (n > MAX_COMMS) {
    __atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
    return;
  }
  struct comm *c = &ring->table[n - 1];
  if (o->api < 4 && !c->hash) c->hash = o->hash, c->rank = o->rank;
  uint64_t number = __atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED) + 1;
  struct record *r = &records[(number - 1) & mask];
  __atomic_store_n(&r->stamp, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  r->sequence = o->sequence, r->count = o->count, r->launched = now();
  r->gpu_start = r->gpu_stop = r->host_start = r->host_stop = 0;
  r->comm = (uint32_t)(n - 1), r->peer = o->peer, r->started = r->stopped = 0;
  r->function = find(o->function, functions), r->type = find(o->type, types);
  r->algorithm = find(o->algorithm, algorithms), r->protocol = find(o->protocol, protocols);
  r->channels = (uint8_t)o->channels, r->api = (uint8_t)o->api, r->rank = o->rank;
  __atomic_store_n(&r->stamp, number, __ATOMIC_RELEASE);
  *handle = HANDLE(HANDLE_RECORD, number);
}

/* first keeps the least, last the greatest of what channels report; several threads may. */
static void first(uint64_t *at, uint64_t v) {
  uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (v && (!old || v < old) && !__atomic_compare_exchange_n(at, &old, v, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static void last(uint64_t *at, uint64_t v) {
  uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (v > old && !__atomic_compare_exchange_n(at, &old, v, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static void channel_start(void **handle, void *parent, uint64_t gpu) {
  struct record *r = record_of(parent, HANDLE_RECORD);
  if (!r) return;
  first(&r->host_start, now());
  first(&r->gpu_start, gpu);
  __atomic_fetch_add(&r->started, 1, __ATOMIC_RELAXED);
  *handle = HANDLE(HANDLE_CHANNEL, (uint64_t)(uintptr_t)parent);
}

/* stop ends a channel. That an operation ends means only that it is enqueued: nothing is to be done. */
static int stop(void *handle) {
  struct record *r = record_of(handle, HANDLE_CHANNEL);
  if (!r) return SUCCESS;
  last(&r->host_stop, now());
  __atomic_fetch_add(&r->stopped, 1, __ATOMIC_RELEASE);
  return SUCCESS;
}

static int state(void *handle, int what, void *arguments) {
  if (what != STATE_KERNEL_STOP || !arguments) return SUCCESS;
  struct record *r = record_of(handle, HANDLE_CHANNEL);
  if (r) last(&r->gpu_stop, *(const uint64_t *)arguments);
  return SUCCESS;
}
static int no_state(void *handle, int what, void *arguments) {
  (void)handle, (void)what, (void)arguments;
  return SUCCESS;
}

/* Descriptors: what precedes the union has the same offsets in all versions, but for the width of the type. */
struct proxy_op {
  int pid;
  uint8_t channel;
};
struct coll_v2 { const char *name; uint64_t hash, sequence; const char *function; const void *send; void *receive; size_t count; int root; const char *type; size_t traffic; uint8_t channels, warps; const char *algorithm, *protocol; };
struct coll_v3 { const char *name; uint64_t hash, sequence; const char *function; const void *send; void *receive; size_t count; int root; const char *type; uint8_t channels, warps; const char *algorithm, *protocol; };
struct coll_v4 { uint64_t sequence; const char *function; const void *send; void *receive; size_t count; int root; const char *type; uint8_t channels, warps; const char *algorithm, *protocol; };
struct p2p_v2 { const char *name; uint64_t hash; const char *function; void *buffer; const char *type; size_t count; int peer; };
struct p2p_v4 { const char *function; void *buffer; const char *type; size_t count; int peer; uint8_t channels; };
struct kernel_v4 { uint8_t channel; uint64_t timer; };
union what {
  struct coll_v2 coll2;
  struct coll_v3 coll3;
  struct coll_v4 coll4;
  struct p2p_v2 p2p2;
  struct p2p_v4 p2p4;
  struct kernel_v4 kernel4;
  struct proxy_op proxy;
};
struct descriptor_v2 { uint8_t type; void *parent; int rank; union what u; };
struct descriptor_v5 { uint64_t type; void *parent; int rank; union what u; };

static void start(void *context, void **handle, uint64_t type, void *parent, int rank, const union what *u, int api) {
  *handle = NULL;
  struct operation o = {.rank = rank, .api = api};
  switch (type) {
  case EVENT_GROUP:
  case EVENT_COLL_API:
  case EVENT_P2P_API:
    /* NCCL counts operations of captured graphs only where these have a handle. */
    *handle = HANDLE(HANDLE_NOTHING, 1);
    return;
  case EVENT_COLL:
#define COLL(m) o.sequence = u->m.sequence, o.count = u->m.count, o.function = u->m.function, o.type = u->m.type, o.algorithm = u->m.algorithm, o.protocol = u->m.protocol, o.peer = u->m.root
    if (api == 2) COLL(coll2), o.hash = u->coll2.hash;
    else if (api == 3) COLL(coll3), o.hash = u->coll3.hash;
    else COLL(coll4), o.channels = u->coll4.channels;
    launch(context, handle, &o);
    return;
  case EVENT_P2P:
#define P2P(m) o.count = u->m.count, o.function = u->m.function, o.type = u->m.type, o.peer = u->m.peer
    if (api < 4) P2P(p2p2), o.hash = u->p2p2.hash;
    else P2P(p2p4), o.channels = u->p2p4.channels;
    launch(context, handle, &o);
    return;
  case EVENT_KERNEL:
    channel_start(handle, parent, api >= 4 ? u->kernel4.timer : 0);
    return;
  case EVENT_PROXY_OP:
    /* another process's proxy may work for us, and its numbers are of its own ring */
    if (u->proxy.pid == (int)getpid()) channel_start(handle, parent, 0);
    return;
  }
}

#define VISIBLE __attribute__((visibility("default")))

/* busbar_profiler_record turns recording off and on again, for programs that load this library too: operations that are
 * launched from now on. */
VISIBLE void busbar_profiler_record(int on) {
  if (switched) __atomic_store_n(switched, on ? (int)events : 0, __ATOMIC_RELAXED);
}

/* v2: NCCL 2.24 and 2.25, without events of kernels: proxies say when the network's part ends. v3: 2.26 */
static int init_v2(void **context, int *activation) { return begin(context, activation, NULL, 0, 0, 0, -1, NULL, EVENT_COLL | EVENT_P2P | EVENT_PROXY_OP); }
static int init_v3(void **context, int *activation) { return begin(context, activation, NULL, 0, 0, 0, -1, NULL, EVENT_COLL | EVENT_P2P | EVENT_KERNEL); }
static int start_v2(void *context, void **handle, struct descriptor_v2 *d) { return start(context, handle, d->type, d->parent, d->rank, &d->u, 2), SUCCESS; }
static int start_v3(void *context, void **handle, struct descriptor_v2 *d) { return start(context, handle, d->type, d->parent, d->rank, &d->u, 3), SUCCESS; }
struct profiler_v2 {
  const char *name;
  int (*init)(void **, int *);
  int (*start)(void *, void **, struct descriptor_v2 *);
  int (*stop)(void *);
  int (*state)(void *, int, void *);
  int (*finalize)(void *);
};
VISIBLE const struct profiler_v2 ncclProfiler_v2 = {"busbar", init_v2, start_v2, stop, no_state, end};
VISIBLE const struct profiler_v2 ncclProfiler_v3 = {"busbar", init_v3, start_v3, stop, no_state, end};

/* v4: NCCL 2.27 */
static int init_v4(void **context, int *activation, const char *name, uint64_t hash, int nodes, int ranks, int rank, logger log) {
  return begin(context, activation, name, hash, nodes, ranks, rank, log, EVENT_COLL | EVENT_P2P | EVENT_KERNEL);
}
static int start_v4(void *context, void **handle, struct descriptor_v2 *d) { return start(context, handle, d->type, d->parent, d->rank, &d->u, 4), SUCCESS; }
struct profiler_v4 {
  const char *name;
  int (*init)(void **, int *, const char *, uint64_t, int, int, int, logger);
  int (*start)(void *, void **, struct descriptor_v2 *);
  int (*stop)(void *);
  int (*state)(void *, int, void *);
  int (*finalize)(void *);
};
VISIBLE const struct profiler_v4 ncclProfiler_v4 = {"busbar", init_v4, start_v4, stop, state, end};

/* v5: NCCL 2.28; v6: 2.29 and later, whose copies by copy engines are not recorded */
static int init_v5(void **context, uint64_t hash, int *activation, const char *name, int nodes, int ranks, int rank, logger log) {
  return init_v4(context, activation, name, hash, nodes, ranks, rank, log);
}
static int start_v5(void *context, void **handle, struct descriptor_v5 *d) { return start(context, handle, d->type, d->parent, d->rank, &d->u, 5), SUCCESS; }
struct profiler_v5 {
  const char *name;
  int (*init)(void **, uint64_t, int *, const char *, int, int, int, logger);
  int (*start)(void *, void **, struct descriptor_v5 *);
  int (*stop)(void *);
  int (*state)(void *, int, void *);
  int (*finalize)(void *);
};
VISIBLE const struct profiler_v5 ncclProfiler_v5 = {"busbar", init_v5, start_v5, stop, state, end};
VISIBLE const struct profiler_v5 ncclProfiler_v6 = {"busbar", init_v5, start_v5, stop, state, end};
