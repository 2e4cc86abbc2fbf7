#!/usr/bin/env python3
"""What the profiler plugin costs on a GPU, whether its times are CUDA's, and whether busbar jobs names a slow rank.

    python3 bench.py --plugin libnccl-profiler-busbar.so --busbar ./busbar --out DIR [--ranks 4]

All ranks share the first GPU: each says that it is a host of its own (NCCL_HOSTID), and NCCL connects them through sockets. Compute is time asleep with 1% noise, so
that ranks do not slow each other. Every figure is of one run of one job: recording is switched off and on again within it."""

import argparse
import ctypes
import glob
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import time


def rank_main(o):
    import torch
    import torch.distributed as dist

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    plugin = ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"])
    rings = os.environ["BUSBAR_PROFILE_DIR"]
    small, out = torch.ones(4096, device="cuda"), {}

    def say(name, value):
        out[name] = value
        if rank == 0:
            print(name, json.dumps(value), flush=True)

    def steps(n, compute, calls, slow=0.0):
        draw = random.Random(rank * 1000 + n)
        for _ in range(n):
            time.sleep(compute * (1 + slow) * draw.gauss(1, 0.01))
            for _ in range(calls):
                dist.all_reduce(small)
            torch.cuda.synchronize()

    steps(50, 0.002, 10)
    parts, named = o.parts.split(","), []
    if "overhead" in parts:
        # 1. overhead: blocks of steps, with and without in turn
        calls = 10
        began = time.perf_counter()
        steps(40, 0.0, calls)
        each = (time.perf_counter() - began) / 40
        compute = max(0.0, calls / 1000 - each)  # 1,000 collectives a second, where the machine can
        times = {0: [], 1: []}
        for block in range(2 * o.blocks):
            on = (block + block // 2) % 2  # 0 1 1 0
            plugin.busbar_profiler_record(on)
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
            steps(o.steps, compute, calls)
            times[on].append((time.perf_counter() - began) / o.steps)
        plugin.busbar_profiler_record(1)
        ratios = [b / a for a, b in zip(times[0], times[1])]
        say("overhead", {"ms_without": [round(1e3 * t, 4) for t in times[0]], "ms_with": [round(1e3 * t, 4) for t in times[1]], "median_ratio": statistics.median(times[1]) / statistics.median(times[0]),
                         "mean_ratio": statistics.mean(ratios), "error_of_mean": statistics.stdev(ratios) / len(ratios) ** 0.5, "collectives_per_s": calls / statistics.median(times[1]), "collectives_alone_ms": each * 1e3})
        # the same with nothing but collectives, which no job is
        alone = {0: [], 1: []}
        for block in range(8):
            on = (block + block // 2) % 2
            plugin.busbar_profiler_record(on)
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
            steps(o.steps // 2, 0, calls)
            alone[on].append((time.perf_counter() - began) / (o.steps // 2) / calls)
        plugin.busbar_profiler_record(1)
        say("collectives_only", {"us_without": [round(1e6 * t, 1) for t in alone[0]], "us_with": [round(1e6 * t, 1) for t in alone[1]]})
    if "events" in parts:
        # 2. times against CUDA events, on NCCL's stream
        # The first event is early by the time that the host takes to launch what follows, unless the GPU is busy meanwhile.
        for size, busy in [(size, busy) for size in (1 << 20, 16 << 20, 64 << 20) for busy in (False, True)]:
            data = torch.ones(size // 4, device="cuda")
            events = []
            for _ in range(20):
                dist.barrier()
                torch.cuda.synchronize()
                a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                if busy:
                    torch.cuda._sleep(1_000_000)  # half a millisecond
                a.record()
                dist.all_reduce(data)
                b.record()
                torch.cuda.synchronize()
                events.append(1e3 * a.elapsed_time(b))
            time.sleep(0.2)
            mine = [t for t in took(rings, os.getpid(), size)][-20:]
            both = [(e, m) for e, m in zip(events, mine)]
            say(f"events_{size >> 20}MiB{'_busy' if busy else ''}", {
                "median_us_events": statistics.median(events), "median_us_ring": statistics.median(mine) if mine else None, "calls": len(mine),
                "median_difference": statistics.median(abs(m - e) / e for e, m in both) if both else None, "worst": max((abs(m - e) / e for e, m in both), default=None)})
    if "late" in parts:
        # 3. slow ranks
        draw = random.Random(o.seed)
        plan = [(share, draw.randrange(world)) for share in [0, 0.1, 0.2, 0.3] for _ in range(o.repeat)]
        draw.shuffle(plan)
        for share, who in plan:
            dist.barrier()
            torch.cuda.synchronize()
            began = time.time()
            steps(o.late_steps, 0.02, 3, share if rank == who else 0.0)
            if rank == 0:
                since = max(1, round(time.time() - began - 0.3))
                doc = json.loads(subprocess.run([o.busbar, "jobs", rings, "--json", "--since", f"{since}s"], capture_output=True, text=True).stdout)
                late = doc["jobs"][0].get("late") if doc["jobs"] else None
                kinds = [f["kind"] for f in doc["findings"]]
                named.append({"slow": share, "rank": who, "named": late["ranks"] if late else [], "share": late and round(late["share"], 4), "stretches": late and late["last"], "waits": [round(r["wait"], 4) for r in doc["jobs"][0]["ranks"]], "findings": kinds,
                              "right": (late is None or late["share"] < 0.03) if share == 0 else bool(late) and late["ranks"] == [who], "network": "slow-collective" in kinds})
                print(json.dumps(named[-1]), flush=True)
    dist.barrier()
    if rank == 0:
        out["late"] = named
        with open(f"{o.out}/bench.json", "w") as f:
            json.dump(out, f, indent=1)
        text = subprocess.run([o.busbar, "jobs", rings, "--since", "5s", "-v"], capture_output=True, text=True)
        print(text.stdout + text.stderr, flush=True)
    dist.barrier()
    dist.destroy_process_group()


def took(folder, pid, size):
    """Times of the ring's collectives of a size in µs, in the order of their launch: what input/profile reads, without Go."""
    list = []
    for name in glob.glob(f"{folder}/busbar-{pid}-*.ring"):
        data = open(name, "rb").read()
        head, rec, n = struct.unpack_from("<3I", data, 12)
        for i in range(n):
            at = head + i * rec
            stamp, _, count, _, begin, end = struct.unpack_from("<6Q", data, at)
            if stamp and count * 4 == size and data[at + 80] == 1 and end > begin:
                list.append((stamp, (end - begin) / 1e3))
    return [t for _, t in sorted(list)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--plugin", required=True)
    p.add_argument("--busbar", required=True)
    p.add_argument("--out", default="bench-run")
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--blocks", type=int, default=12)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--late-steps", type=int, default=100)
    p.add_argument("--repeat", type=int, default=4)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--parts", default="overhead,events,late", help="what to measure")
    o = p.parse_args()
    o.busbar, o.out = os.path.abspath(o.busbar), os.path.abspath(o.out)
    if "RANK" in os.environ:
        return rank_main(o)
    os.makedirs(f"{o.out}/rings", exist_ok=True)
    procs = []
    for r in range(o.ranks):
        env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(o.ranks), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29611", NCCL_HOSTID=f"bench-{r}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1",
                   NCCL_PROFILER_PLUGIN=os.path.abspath(o.plugin), BUSBAR_PROFILE_DIR=f"{o.out}/rings", BUSBAR_HOST=f"node{r}", OMP_NUM_THREADS="1", NCCL_DEBUG="WARN", NCCL_RAS_ENABLE="0")
        procs.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], env=env, stdout=None if r == 0 else subprocess.DEVNULL))
    sys.exit(max(abs(p.wait()) for p in procs))


if __name__ == "__main__":
    main()
