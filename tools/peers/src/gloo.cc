// One rank of a Gloo program for the collectives that busbar is held against.
// usage: gloo RANK RANKS FOLDER INTERFACE ALGORITHM OP ITERS BUDGET_SECONDS WARM SIZE...
// The ranks meet in FOLDER. ALGORITHM (ring, bcube, hd) counts for all_reduce. Sizes, forms and
// the lines of rank 0 are those of mpi.c.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

static double seconds() {
  auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

static void add(void* out, const void* x, const void* y, size_t n) {
  auto z = static_cast<float*>(out);
  auto a = static_cast<const float*>(x), b = static_cast<const float*>(y);
  for (size_t i = 0; i < n; i++) z[i] = a[i] + b[i];
}

static void greater(void* out, const void* x, const void* y, size_t n) {
  auto z = static_cast<double*>(out);
  auto a = static_cast<const double*>(x), b = static_cast<const double*>(y);
  for (size_t i = 0; i < n; i++) z[i] = std::max(a[i], b[i]);
}

using Group = std::shared_ptr<gloo::rendezvous::Context>;

// prepared is the collective as something to call.
static std::function<void()> prepared(Group g, const std::string& op, const std::string& algorithm, float* a, float* b, long n) {
  long part = n / g->size;
  if (op == "all_reduce" && algorithm == "hd") {
    auto x = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(g, std::vector<float*>{b}, n);
    return [x] { x->run(); };
  }
  if (op == "all_reduce") {
    auto how = algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE : gloo::AllreduceOptions::Algorithm::RING;
    return [=] {
      gloo::AllreduceOptions o(g);
      o.setOutput(b, n);
      o.setReduceFunction(add);
      o.setAlgorithm(how);
      gloo::allreduce(o);
    };
  }
  if (op == "reduce_scatter") {
    std::vector<int> counts(g->size, part);
    auto x = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(g, std::vector<float*>{b}, part * g->size, counts);
    return [x] { x->run(); };
  }
  if (op == "all_gather") return [=] {
    gloo::AllgatherOptions o(g);
    o.setInput(a, part);
    o.setOutput(b, part * g->size);
    gloo::allgather(o);
  };
  if (op == "broadcast") return [=] {
    gloo::BroadcastOptions o(g);
    o.setOutput(b, n);
    o.setRoot(0);
    gloo::broadcast(o);
  };
  if (op == "all_to_all") return [=] {
    gloo::AlltoallOptions o(g);
    o.setInput(a, part * g->size);
    o.setOutput(b, part * g->size);
    gloo::alltoall(o);
  };
  std::exit(2);
}

static void barrier(Group g) {
  gloo::BarrierOptions o(g);
  o.setTag(901);
  gloo::barrier(o);
}

// highest is the greatest of all ranks' numbers.
static double highest(Group g, double x) {
  gloo::AllreduceOptions o(g);
  o.setOutput(&x, 1);
  o.setReduceFunction(greater);
  o.setTag(902);
  gloo::allreduce(o);
  return x;
}

int main(int argc, char** argv) {
  if (argc < 11) return 2;
  int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
  gloo::transport::tcp::attr where;
  where.iface = argv[4];
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(argv[3]);
  auto g = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  g->setTimeout(std::chrono::seconds(60));
  g->connectFullMesh(store, device);
  std::string algorithm = argv[5], op = argv[6];
  long most = std::atol(argv[7]);
  double budget = std::atof(argv[8]);
  int warm = std::atoi(argv[9]);
  for (int k = 10; k < argc; k++) {
    long bytes = std::atol(argv[k]), n = bytes / static_cast<long>(sizeof(float));
    std::vector<float> a(n + 64, 0), b(n + 64, 0);
    auto call = prepared(g, op, algorithm, a.data(), b.data(), n);
    std::fill(a.begin(), a.end(), rank + 1);
    std::fill(b.begin(), b.end(), rank + 1);
    call();
    if (op == "all_reduce")
      for (long i = 0; i < n; i++)
        if (b[i] != ranks * (ranks + 1) / 2) return 4;
    std::fill(a.begin(), a.end(), 0);
    std::fill(b.begin(), b.end(), 0);
    double begin = seconds();
    for (int i = 0; i < warm; i++) call();
    double each = warm > 0 ? highest(g, (seconds() - begin) / warm) : 0;
    long runs = most;
    if (each * runs > budget) runs = static_cast<long>(budget / each);
    runs = std::max(runs, 2L);
    barrier(g);
    begin = seconds();
    for (long i = 0; i < runs; i++) call();
    double took = highest(g, seconds() - begin);
    if (rank == 0) std::printf("row %ld %ld %.3f\n", bytes, runs, took / runs * 1e6);
    std::fflush(stdout);
  }
  barrier(g);
  return 0;
}
