/* A tuner plugin for NCCL that answers from a table of busbar's.
 *
 *   cc -O2 -shared -fPIC -o libnccl-tuner-busbar.so busbar_tuner.c
 *   NCCL_TUNER_PLUGIN=$PWD/libnccl-tuner-busbar.so BUSBAR_TUNER_TABLE=$PWD/tuner.tab  <job>
 *
 * A line of the table is
 *   collective  min_bytes  max_bytes  ranks  nodes  algorithm  protocol  channels
 * where ranks and nodes of 0 mean any, channels of 0 what NCCL takes by itself; # begins a
 * comment. The first line that matches counts. A line that cannot be read is left out with a
 * warning; what no line matches, and what NCCL says is not available, is left to NCCL. The
 * same table must lie on every host: ranks that answer differently hang.
 *
 * It speaks the interfaces v2 (NCCL 2.21) to v6 (2.30), and needs no header of NCCL.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

enum { LEVEL_WARN = 2, LEVEL_INFO = 3, FLAG_INIT = 1, FLAG_TUNING = 0x40, SUCCESS = 0, INTERNAL_ERROR = 3 };
enum { COLLECTIVES = 5, ALGORITHMS = 7, PROTOCOLS = 3, MAX_ROWS = 4096, MAX_LINE = 512, MAX_FILE = 4 << 20 };

static const char *collectives[COLLECTIVES] = {"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};
static const char *algorithms[ALGORITHMS] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
static const char *protocols[PROTOCOLS] = {"ll", "ll128", "simple"};

struct row {
  int collective, algorithm, protocol, channels;
  unsigned long long min, max;
};

struct table {
  logger log;
  int count;
  struct row rows[];
};

static int find(const char *word, const char *const *list, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(word, list[i]) == 0) return i;
  return -1;
}

#define SAY(log, level, flags, ...) \
  do { if (log) log(level, flags, __func__, __LINE__, __VA_ARGS__); } while (0)

/* read_row takes one line; 1: a row for this communicator, 0: none, -1: it cannot be read. */
static int read_row(const char *text, size_t ranks, size_t nodes, struct row *r) {
  char name[32], algo[32], proto[32], rest[2];
  unsigned long long lo, hi, want_ranks, want_nodes;
  long long channels;
  while (*text == ' ' || *text == '\t') text++;
  if (*text == '#' || *text == '\n' || *text == '\r' || *text == 0) return 0;
  if (strchr(text, '-')) return -1; /* which scanf would take for a huge number */
  int n = sscanf(text, "%31s %llu %llu %llu %llu %31s %31s %lld %1s", name, &lo, &hi, &want_ranks, &want_nodes, algo, proto, &channels, rest);
  if (n != 8 || lo > hi || channels < 0 || channels > 64) return -1;
  r->collective = find(name, collectives, COLLECTIVES);
  r->algorithm = find(algo, algorithms, ALGORITHMS);
  r->protocol = find(proto, protocols, PROTOCOLS);
  if (r->collective < 0 || r->algorithm < 0 || r->protocol < 0) return -1;
  if ((want_ranks && want_ranks != ranks) || (want_nodes && want_nodes != nodes)) return 0;
  r->min = lo, r->max = hi, r->channels = (int)channels;
  return 1;
}

/* next_line reads a line: 1, 0 for one that is too long or has a NUL in it, -1 at the end. */
static int next_line(FILE *f, char *line, int size) {
  int n = 0, good = 1, c;
  while ((c = fgetc(f)) != EOF && c != '\n') {
    if (c == 0 || n + 1 >= size) good = 0;
    else line[n++] = (char)c;
  }
  line[n] = 0;
  return c == EOF && n == 0 && good ? -1 : good;
}

static int open_table(size_t ranks, size_t nodes, logger log, void **out) {
  const char *path = getenv("BUSBAR_TUNER_TABLE");
  struct table *t = calloc(1, sizeof *t + MAX_ROWS * sizeof(struct row));
  *out = t;
  if (!t) return INTERNAL_ERROR;
  t->log = log;
  if (!path || !*path) {
    SAY(log, LEVEL_WARN, FLAG_INIT, "busbar tuner: BUSBAR_TUNER_TABLE is not set; NCCL chooses by itself");
    return SUCCESS;
  }
  /* A FIFO would stall the start of a job and a device never end: only a plain file of bounded size is read. */
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  FILE *f = NULL;
  if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_size <= MAX_FILE) f = fdopen(fd, "r");
  if (!f && fd >= 0) {
    close(fd);
    SAY(log, LEVEL_WARN, FLAG_INIT, "busbar tuner: %s is no plain file of at most %d bytes; NCCL chooses by itself", path, MAX_FILE);
    return SUCCESS;
  }
  if (!f) {
    SAY(log, LEVEL_WARN, FLAG_INIT, "busbar tuner: %s cannot be opened; NCCL chooses by itself", path);
    return SUCCESS;
  }
  char line[MAX_LINE];
  for (int number = 1, whole; (whole = next_line(f, line, sizeof line)) >= 0; number++) {
    struct row r;
    int got = whole ? read_row(line, ranks, nodes, &r) : -1;
    if (got < 0)
      SAY(log, LEVEL_WARN, FLAG_INIT, "busbar tuner: %s:%d cannot be read and is left out", path, number);
    else if (got > 0 && t->count < MAX_ROWS)
      t->rows[t->count++] = r;
  }
  fclose(f);
  SAY(log, LEVEL_INFO, FLAG_INIT | FLAG_TUNING, "busbar tuner: %d rows of %s for %zu ranks on %zu nodes", t->count, path, ranks, nodes);
  return SUCCESS;
}

static int close_table(void *context) {
  free(context);
  return SUCCESS;
}

static const struct row *match(const struct table *t, int collective, size_t bytes) {
  for (int i = 0; t && i < t->count; i++) {
    const struct row *r = &t->rows[i];
    if (r->collective == collective && bytes >= r->min && bytes <= r->max) return r;
  }
  return NULL;
}

static void said(const struct table *t, const struct row *r, size_t bytes) {
  SAY(t->log, LEVEL_INFO, FLAG_TUNING, "busbar tuner: %s of %zu bytes: %s %s, %d channels", collectives[r->collective], bytes, algorithms[r->algorithm], protocols[r->protocol], r->channels);
}

/* answer makes the table's choice the cheapest, where NCCL has it at all. The table of costs is
 * one block of floats whatever its type says. */
static int answer(void *context, int collective, size_t bytes, float **costs, int algos, int protos, int *channels) {
  const struct table *t = context;
  const struct row *r = match(t, collective, bytes);
  float *cost = (float *)costs;
  if (!r || r->algorithm >= algos || r->protocol >= protos) return SUCCESS;
  float *cell = &cost[r->algorithm * protos + r->protocol];
  if (*cell < 0) {
    SAY(t->log, LEVEL_INFO, FLAG_TUNING, "busbar tuner: %s of %zu bytes: %s %s is not available here", collectives[collective], bytes, algorithms[r->algorithm], protocols[r->protocol]);
    return SUCCESS;
  }
  *cell = 0;
  *channels = r->channels;
  said(t, r, bytes);
  return SUCCESS;
}

/* v2: NCCL 2.21 */
static int init_v2(size_t ranks, size_t nodes, logger log, void **context) { return open_table(ranks, nodes, log, context); }
static int info_v2(void *context, int collective, size_t bytes, int collnet, int nvls, int ops, int *algorithm, int *protocol, int *channels) {
  const struct table *t = context;
  const struct row *r = match(t, collective, bytes);
  (void)ops;
  if (!r || ((r->algorithm == 2 || r->algorithm == 3) && !collnet) || ((r->algorithm == 4 || r->algorithm == 5) && !nvls) || r->algorithm > 5) return SUCCESS;
  *algorithm = r->algorithm, *protocol = r->protocol;
  if (r->channels > 0) *channels = r->channels;
  said(t, r, bytes);
  return SUCCESS;
}
struct tuner_v2 {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*info)(void *, int, size_t, int, int, int, int *, int *, int *);
  int (*destroy)(void *);
};
__attribute__((visibility("default"))) const struct tuner_v2 ncclTunerPlugin_v2 = {"busbar", init_v2, info_v2, close_table};

/* v3: NCCL 2.22 and 2.23 */
static int info_v3(void *context, int collective, size_t bytes, int ops, float **costs, int algos, int protos, int *channels) {
  (void)ops;
  return answer(context, collective, bytes, costs, algos, protos, channels);
}
struct tuner_v3 {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*info)(void *, int, size_t, int, float **, int, int, int *);
  int (*destroy)(void *);
};
__attribute__((visibility("default"))) const struct tuner_v3 ncclTunerPlugin_v3 = {"busbar", init_v2, info_v3, close_table};

/* v4: NCCL 2.24 to 2.27 */
static int info_v4(void *context, int collective, size_t bytes, int ops, float **costs, int algos, int protos, int registered, int *channels) {
  (void)ops, (void)registered;
  return answer(context, collective, bytes, costs, algos, protos, channels);
}
struct tuner_v4 {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*info)(void *, int, size_t, int, float **, int, int, int, int *);
  int (*destroy)(void *);
};
__attribute__((visibility("default"))) const struct tuner_v4 ncclTunerPlugin_v4 = {"busbar", init_v2, info_v4, close_table};

/* v5: NCCL 2.28 and 2.29; v6: 2.30, whose last member may be missing */
static int init_v5(void **context, uint64_t id, size_t ranks, size_t nodes, logger log, void *domains, void *constants) {
  (void)id, (void)domains, (void)constants;
  return open_table(ranks, nodes, log, context);
}
struct tuner_v5 {
  const char *name;
  int (*init)(void **, uint64_t, size_t, size_t, logger, void *, void *);
  int (*info)(void *, int, size_t, int, float **, int, int, int, int *);
  int (*finalize)(void *);
};
__attribute__((visibility("default"))) const struct tuner_v5 ncclTunerPlugin_v5 = {"busbar", init_v5, info_v4, close_table};
struct tuner_v6 {
  struct tuner_v5 same;
  int (*chunk)(void *, int, size_t, int, int, int, size_t *);
};
__attribute__((visibility("default"))) const struct tuner_v6 ncclTunerPlugin_v6 = {{"busbar", init_v5, info_v4, close_table}, NULL};
