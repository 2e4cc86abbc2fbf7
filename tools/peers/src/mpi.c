/* One MPI program for all collectives that busbar is held against.
 * usage: mpi OP ITERS BUDGET_SECONDS WARM SIZE...
 * Sizes are those of nccl-tests: the whole vector of a rank on its longer side.
 * all_reduce and broadcast run in place, the others out of place. Rank 0 prints
 * "row BYTES RUNS MICROSECONDS": runs follow each other without a barrier, the
 * time is the slowest rank's total over the number of runs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, ranks;

static void call(const char *op, float *a, float *b, long n) {
  int part = (int)(n / ranks), all = (int)n;
  if (!strcmp(op, "all_reduce"))
    MPI_Allreduce(MPI_IN_PLACE, b, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(op, "reduce_scatter"))
    MPI_Reduce_scatter_block(a, b, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(op, "all_gather"))
    MPI_Allgather(a, part, MPI_FLOAT, b, part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (!strcmp(op, "broadcast"))
    MPI_Bcast(b, all, MPI_FLOAT, 0, MPI_COMM_WORLD);
  else if (!strcmp(op, "all_to_all"))
    MPI_Alltoall(a, part, MPI_FLOAT, b, part, MPI_FLOAT, MPI_COMM_WORLD);
  else
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 6) MPI_Abort(MPI_COMM_WORLD, 2);
  const char *op = argv[1];
  long most = atol(argv[2]);
  double budget = atof(argv[3]);
  int warm = atoi(argv[4]);
  for (int k = 5; k < argc; k++) {
    long bytes = atol(argv[k]), n = bytes / (long)sizeof(float);
    float *a = NULL, *b = NULL;
    if (posix_memalign((void **)&a, 4096, bytes + 4096) || posix_memalign((void **)&b, 4096, bytes + 4096)) MPI_Abort(MPI_COMM_WORLD, 3);
    for (long i = 0; i < n; i++) a[i] = b[i] = (float)(me + 1);
    call(op, a, b, n);
    if (!strcmp(op, "all_reduce"))
      for (long i = 0; i < n; i++)
        if (b[i] != (float)(ranks * (ranks + 1) / 2)) MPI_Abort(MPI_COMM_WORLD, 4);
    memset(a, 0, bytes);
    memset(b, 0, bytes);
    double begin = MPI_Wtime();
    for (int i = 0; i < warm; i++) call(op, a, b, n);
    long runs = most;
    if (warm > 0 && (MPI_Wtime() - begin) / warm * runs > budget) runs = (long)(budget / ((MPI_Wtime() - begin) / warm));
    if (runs < 2) runs = 2;
    MPI_Bcast(&runs, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (long i = 0; i < runs; i++) call(op, a, b, n);
    double took = MPI_Wtime() - begin, slowest = 0;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me == 0) printf("row %ld %ld %.3f\n", bytes, runs, slowest / (double)runs * 1e6);
    fflush(stdout);
    free(a);
    free(b);
  }
  MPI_Finalize();
  return 0;
}
