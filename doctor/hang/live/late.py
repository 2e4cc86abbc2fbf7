#!/usr/bin/env python3
"""Jobs with a rank that comes late to every step, or to some, and healthy ones, and what busbar jobs says about them while they run.

    python3 late.py --busbar ./busbar --plugin libnccl-profiler-busbar.so --out DIR [--seed 1] [--at-once 2] [--mps] [--sweep]

Twenty jobs have a late rank and ten have none. Rank, lateness, groups, sizes and steps come from the seed. All ranks share the first GPU, as in drive.py; it should be under MPS
(--mps, or CUDA_MPS_PIPE_DIRECTORY), else a rank waits for its turn on the GPU. A job that did not run is repeated with a new MPS server, up to --tries times, and not scored before. A verdict is right if that rank is named as late and no communicator as slow.
Appends to DIR/late.jsonl; DIR/rings/NAME holds the rings at the time of the question. --sweep times collectives of an idle job instead, for a calibration."""

import argparse
import glob
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KIB = 1 << 10
SETTLED = 14  # the step from which on a job is judged


def scenarios(seed):
    draw = random.Random(seed)
    jobs = []
    for i in range(30):
        style = draw.choice(["mesh", "pairs", "world"])
        world = 4 if style != "world" else draw.choice([3, 4, 4, 6])
        job = {"name": f"{'healthy' if i % 3 == 2 else 'late'}-{i + 1}", "style": style, "world": world, "pace": round(draw.uniform(0.02, 0.05), 4), "noise": draw.choice([0.01, 0.03]),
               "bytes": draw.choice([256, 512, 1024, 2048, 4096]) * KIB, "calls": draw.choice([1, 2, 3]), "late": None}
        if i % 3 != 2:
            job["late"] = {"rank": draw.randrange(world), "share": round(draw.uniform(0.1, 0.5), 3), "every": 1}
            if draw.random() < 0.3:  # now and then, and longer
                job["late"].update(every=draw.choice([2, 3]), share=round(draw.uniform(0.3, 0.8), 3))
        jobs.append(job)
    return jobs


def groups(job, dist):
    """The groups that this rank is in, in the order of their use."""
    style, rank = job["style"], dist.get_rank()
    if style == "world":
        return [None] * 2
    pairs = [[0, 1], [2, 3], [0, 2], [1, 3]] + ([[0, 3], [1, 2]] if style == "pairs" else [])
    made = [dist.new_group(p) for p in pairs]
    return [g for p, g in zip(pairs, made) if rank in p]


def rank_main(job, run):
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if job["style"] == "sweep":
        return sweep(job, run, torch, dist)
    mine = groups(job, dist)
    x, w = torch.ones(job["bytes"] // 4, device="cuda"), torch.randn(1024, 1024, device="cuda")
    draw = random.Random(f"{job['name']} {rank}")
    late = job["late"] if job["late"] and job["late"]["rank"] == rank else None
    took, step = [], 0
    while True:
        began = time.perf_counter()
        extra = 0.0
        if late and step >= 10 and (late["every"] == 1 or draw.random() < 1 / late["every"]):
            extra = late["share"] * statistics.median(took[3:10])
        time.sleep(job["pace"] * max(0.5, draw.gauss(1, job["noise"])) + extra)
        stats = torch.zeros(16384, device="cuda")
        if rank == 0 and os.path.exists(f"{run}/stop"):
            stats[0] = 1
        y = w @ w
        for g in mine:
            for _ in range(job["calls"]):
                dist.all_reduce(x, group=g)
                x.mul_(0.5)
        dist.all_reduce(stats)
        done = stats[0].item() > 0
        took.append(time.perf_counter() - began)
        if rank == 0 and step == SETTLED:
            with open(f"{run}/settled", "w") as f:
                json.dump({"step_s": statistics.median(took[3:10])}, f)
        step += 1
        if done:
            break
    torch.cuda.synchronize()
    with open(f"{run}/took.{rank}", "w") as f:
        json.dump({"steps": step, "median_s": statistics.median(took[SETTLED:])}, f)


def sweep(job, run, torch, dist):
    """Times as nccl-tests has them: a number of calls in a row, over that number."""
    pair, rows = dist.new_group([0, 1]), []
    for ranks, group in ((dist.get_world_size(), None), (2, pair)):
        for size in [64 * KIB << k for k in range(8)] + [192 * KIB, 384 * KIB, 768 * KIB, 1536 * KIB, 3072 * KIB]:
            if dist.get_rank() < ranks:
                x = torch.ones(size // 4, device="cuda")
                for n in (3, 20):
                    torch.cuda.synchronize()
                    began = time.perf_counter()
                    for _ in range(n):
                        dist.all_reduce(x, group=group)
                    torch.cuda.synchronize()
                    took = (time.perf_counter() - began) / n
                rows.append({"ranks": ranks, "bytes": size, "us": round(1e6 * took, 2)})
        dist.barrier()
    if dist.get_rank() == 0:
        with open(f"{run}/sweep.json", "w") as f:
            json.dump(rows, f)


def mps(o, start=True):
    """A new MPS server in place of the one before, which may have failed with a killed process."""
    pipe = f"{o.out}/mps"
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=pipe, CUDA_MPS_LOG_DIRECTORY=pipe)
    if os.path.exists(pipe):
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 2\n", text=True, timeout=20, capture_output=True)
        except subprocess.TimeoutExpired:
            print("the MPS server did not end within 20 s", flush=True)
        time.sleep(1)
    os.makedirs(pipe, exist_ok=True)
    if start:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True, timeout=20)


def play(job, port, o):
    run = os.path.abspath(f"{o.out}/{job['name']}{'' if job['try'] == 1 else '.' + str(job['try'])}")
    os.makedirs(f"{run}/rings")
    result, procs, began = {"job": job}, [], time.time()
    import ranks

    for r in range(job["world"]):
        env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(job["world"]), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RUN_DIR=run, JOB=json.dumps(job), OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1",
                   NCCL_HOSTID=f"{job['name']}-{r}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_RAS_ENABLE="0", NCCL_DEBUG="WARN",
                   NCCL_PROFILER_PLUGIN=os.path.abspath(o.plugin), BUSBAR_PROFILE_DIR=f"{run}/rings", BUSBAR_PROFILE_RECORDS="2048", BUSBAR_HOST=f"node{r}", BUSBAR_JOB=job["name"])
        procs.append(ranks.Rank(o.ranks, os.path.abspath(__file__), env, f"{run}/rank_{r}.log", run))
    mark = f"{run}/sweep.json" if job["style"] == "sweep" else f"{run}/settled"
    try:
        while not os.path.exists(mark) and time.time() - began < o.give_up and time.time() < o.end and all(p.poll() is None for p in procs):
            time.sleep(0.1)
        if not os.path.exists(mark):
            result["error"] = "did not settle; exits " + str([p.poll() for p in procs]) + "; " + open(f"{run}/rank_0.log", errors="replace").read()[-400:]
            return result
        result["settled_s"] = round(time.time() - began, 1)
        if job["style"] != "sweep":
            time.sleep(o.seconds + 0.5)
            question(job, run, o, result)
        open(f"{run}/stop", "w").close()
        end = time.time() + 8
        result["exits"] = [p.wait(max(0, end - time.time())) for p in procs]
    finally:
        for p in procs:
            p.kill()
    try:
        result["step_ms"] = round(1e3 * json.load(open(f"{run}/settled"))["step_s"], 1)
        result["ran"] = json.load(open(f"{run}/took.0"))
    except OSError:
        pass
    return result


def question(job, run, o, result):
    rings = f"{o.out}/rings/{os.path.basename(run)}"
    done = subprocess.run([o.busbar, "jobs", f"{run}/rings", "--json", "--since", f"{o.seconds}s", "--fail-on", "never"], capture_output=True, text=True, timeout=30)
    os.makedirs(rings)
    for name in glob.glob(f"{run}/rings/*"):
        shutil.copy(name, rings)
    try:
        doc = json.loads(done.stdout)
    except ValueError:
        result["error"] = done.stderr[-400:]
        return
    result["findings"] = [{k: f.get(k) for k in ("kind", "severity", "ranks", "nodes", "confidence", "text")} for f in doc["findings"]]
    for j in doc["jobs"]:
        result["rows"] = [{k: r.get(k) for k in ("group", "ranks", "op", "bytes", "calls", "algo", "proto", "transfer_us", "wait_us", "verdict", "against", "peers")} for r in j["rows"]]
        result["waits"] = [round(r["wait"], 4) for r in j["ranks"]]
        result["named"] = j.get("late")
    loud = [f for f in result["findings"] if f["severity"] != "note"]
    result["late"] = [f["ranks"] for f in loud if f["kind"] == "late-rank"]
    result["slow"] = sum(f["kind"] == "slow-collective" for f in loud)
    want = [[job["late"]["rank"]]] if job["late"] else []
    result["right"] = result["late"] == want and not result["slow"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--plugin", required=True)
    p.add_argument("--busbar", required=True)
    p.add_argument("--out", default="late-runs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--at-once", type=int, default=2)
    p.add_argument("--mps", action="store_true", help="start an MPS server, and a new one after a job that did not run")
    p.add_argument("--tries", type=int, default=3, help="how often a job that did not run is tried")
    p.add_argument("--only", default="", help="names of jobs, separated by commas")
    p.add_argument("--seconds", type=int, default=5, help="how long a job is watched")
    p.add_argument("--give-up", type=float, default=45)
    p.add_argument("--port", type=int, default=24000)
    p.add_argument("--sweep", action="store_true")
    p.add_argument("--ranks", default="", help="socket of a running ranks.py (default: starts one; none: fresh interpreters)")
    p.add_argument("--until", type=float, default=1e12, help="seconds since 1970 after which no job is started")
    p.add_argument("--end", type=float, default=1e12, help="seconds since 1970 at which all jobs are ended")
    o = p.parse_args()
    import ranks

    o.busbar, o.out = os.path.abspath(o.busbar), os.path.abspath(o.out)
    os.makedirs(f"{o.out}/rings", exist_ok=True)
    if o.ranks == "":
        o.ranks = f"{o.out}/ranks.socket"
        ranks.start(o.ranks)
    elif o.ranks == "none":
        o.ranks = ""
    if o.mps:
        mps(o)
    if o.sweep:
        result = play({"name": "sweep", "style": "sweep", "world": 4, "try": 1}, o.port + 900, o)
        print(json.dumps(result), flush=True)
        sys.exit("error" in result)
    todo = [{**job, "try": 1, "port": o.port + 10 * i} for i, job in enumerate(scenarios(o.seed)) if not o.only or job["name"] in o.only.split(",")]
    results = []
    while todo and time.time() < o.until:
        before = len(results)
        stretch(todo, results, o)
        failed = [r["job"] for r in results[before:] if "right" not in r]
        todo += [{**j, "try": j["try"] + 1, "port": j["port"] + 1} for j in failed if j["try"] < o.tries]
        if len(failed) == len(results) > 3:
            break  # something is wrong with all of them
        if failed and o.mps:
            mps(o)
    if o.mps:
        mps(o, start=False)
    summary(results)


def stretch(todo, results, o):
    """Plays jobs until all are done or one did not run."""
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not todo or time.time() > o.until or any("right" not in r for r in results[before:]):
                    return
                job = todo.pop(0)
            try:
                result = play(job, job["port"], o)
            except (OSError, ValueError, subprocess.SubprocessError) as e:
                result = {"job": job, "error": repr(e)}
            with lock:
                results.append(result)
                say(result)
                with open(f"{o.out}/late.jsonl", "a") as f:
                    f.write(json.dumps(result) + "\n")

    before = len(results)
    threads = [threading.Thread(target=work) for _ in range(o.at_once)]
    for t in threads:
        t.start()
        time.sleep(1)
    for t in threads:
        t.join()


def summary(results):
    late, well = [r for r in results if r["job"]["late"] and "right" in r], [r for r in results if not r["job"]["late"] and "right" in r]
    print(f"{sum(r['right'] for r in late)} of {len(late)} late ranks named and called late; {sum(not r['right'] for r in well)} false alarms of {len(well)} healthy jobs; {sum('right' not in r for r in results)} tries did not run", flush=True)


def say(r):
    j, l = r["job"], r["job"]["late"]
    planted = f"rank {l['rank']} +{l['share']:.0%}{'' if l['every'] == 1 else ' in one of ' + str(l['every']) + ' steps'}" if l else "nobody"
    n = r.get("named")
    print(f"| {j['name']} | {j['style']} {j['world']} | {j['bytes'] // KIB} KiB x{j['calls']} | {r.get('step_ms')} ms | {planted} | {'error ' + r['error'][:300] if 'error' in r else 'ok' if r['right'] else 'WRONG'} | "
          f"named {r.get('late')}, share {round(n['share'], 3) if n else '-'}, {n['last'] if n else '-'} of 12; slow {r.get('slow')}; {sorted({str(x['verdict']) + ' by ' + str(x['against']) for x in r.get('rows', [])})} | settled {r.get('settled_s')} s, exits {r.get('exits')} |", flush=True)


if __name__ == "__main__":
    if "JOB" in os.environ and "RANK" in os.environ:
        rank_main(json.loads(os.environ["JOB"]), os.environ["RUN_DIR"])
        os._exit(0)  # nothing is under way: taking communicators apart sometimes lasted over 8 s, and MPS does not stand killed processes
    else:
        main()
