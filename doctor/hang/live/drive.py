#!/usr/bin/env python3
"""Hangs and slow phases of real jobs, and what busbar hang says about them while they last.

    python3 drive.py --busbar ./busbar --out DIR [--seed 1] [--at-once 4] [--only late-a,healthy-3]

Twenty jobs hang, two of each of ten kinds, and twenty are healthy and asked in a slow phase. Ranks, steps, groups and programs come from the seed. All ranks of
a job share the first GPU: each says that it is a host of its own (NCCL_HOSTID), and NCCL connects them through sockets. Every job has its own RAS port.
busbar is asked --after seconds after the fault; a verdict is right if it names the ranks and the kind, and a healthy job is a false alarm above note.
Prints a table and writes DIR/results.json; DIR/NAME holds what each job said: RAS answers, recorder dumps, logs, stacks.
A healthy job counts if it took steps after the question, and ends by itself: it may run under MPS (CUDA_MPS_PIPE_DIRECTORY), which a killed process would upset."""

import argparse
import fnmatch
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import ranks

PLUGIN = ""  # busbar's profiler plugin, which --plugin has all ranks load
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"late": ["late-rank"], "exited": ["exited"], "killed": ["killed"], "stopped": ["stopped"], "op": ["op-mismatch"], "size": ["size-mismatch"], "type": ["size-mismatch"],
         "never": ["never-joined"], "order": ["order-deadlock"], "kernel": ["gpu-kernel"]}


def scenarios(seed):
    draw = random.Random(seed)
    jobs = []

    def add(name, style, world, **more):
        job = {"name": name, "style": style, "world": world, "timeout": 120, "pace": round(draw.uniform(0.02, 0.08), 3), "info": True, "stacks": True}
        job.update(more)
        jobs.append(job)

    def fault(kind, world, **more):
        return {"kind": kind, "ranks": [draw.randrange(world)], "step": draw.randrange(6, 16), **more}

    # b: as little as a job says by default: no INFO log, no stacks
    bare = {"info": False, "stacks": False}
    for kind in ("late", "exited", "killed", "stopped"):
        a, b = draw.sample(["mesh", "ddp", "fsdp"], 2)
        add(kind + "-a", a, 4, fault=fault(kind, 4))
        add(kind + "-b", b, 4, fault=fault(kind, 4, busy=True, clean=True), stay=kind in ("exited", "killed"), **bare)
    add("op-a", "mesh", 4, fault=fault("op", 4, group=draw.choice(["tp", "dp", "world"])))
    add("op-b", draw.choice(["ddp", "fsdp"]), 4, fault=fault("op", 4, call="broadcast"), **bare)
    add("size-a", "mesh", 4, fault=fault("size", 4, elements=1 << 26))
    add("size-b", draw.choice(["ddp", "fsdp"]), 4, fault=fault("size", 4, elements=1 << 26, part=4), **bare)
    add("type-a", draw.choice(["ddp", "fsdp"]), 4, fault=fault("type", 4, elements=1 << 26))
    add("type-b", "mesh", 4, fault=fault("type", 4, elements=1 << 26, group="dp"), **bare)
    pairs = draw.choice([[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]])
    add("never-a", draw.choice(["mesh", "ddp"]), 4, fault=fault("never", 4, groups=pairs))
    add("never-b", draw.choice(["ddp", "fsdp"]), 4, fault=fault("never", 4, first=True), stacks=False)
    add("order-a", "mesh", 4, fault=fault("order", 4))
    add("order-b", draw.choice(["ddp", "fsdp"]), 4, fault=fault("order", 4), **bare)
    add("kernel-a", "mesh", 4, fault=fault("kernel", 4), timing=True)
    add("kernel-b", draw.choice(["mesh", "ddp"]), 4, fault=fault("kernel", 4), **bare)

    def phase(kind, ranks, **more):
        return {"kind": kind, "ranks": ranks, "step": draw.randrange(6, 16), "seconds": 11, **more}

    every, style = [0, 1, 2, 3], lambda: draw.choice(["mesh", "ddp", "fsdp"])
    one = lambda: [draw.randrange(4)]
    healthy = [
        dict(style="mesh"), dict(style="ddp", timing=True), dict(style="fsdp"), dict(style="pp"),
        dict(phase=phase("checkpoint", [0], barrier=True)), dict(phase=phase("checkpoint", [0])), dict(phase=phase("checkpoint", every, barrier=True)), dict(phase=phase("checkpoint", [0]), style="pp"),
        dict(phase=phase("evaluation", [0])), dict(phase=phase("evaluation", every)), dict(phase=phase("evaluation", one(), barrier=True)),
        dict(phase=phase("compile", every)), dict(phase=phase("compile", [0])), dict(phase=phase("compile", every, autotune=True)),
        dict(phase=phase("loading", one(), workers=True)), dict(phase=phase("loading", every, workers=True)), dict(phase=phase("loading", one())),
        dict(phase=phase("garbage", one())), dict(phase=phase("kernels", every)), dict(phase={"kind": "evaluation", "ranks": one(), "step": draw.choice([-2, -1]), "seconds": 11}),
    ]
    for i, h in enumerate(healthy):
        h = {"style": style(), **(bare if i % 2 else {}), **h}
        add(f"healthy-{i + 1}", h.pop("style"), 4, **h)
    return jobs


def environment(job, run, rank, port):
    env = dict(os.environ)
    env.update(RANK=str(rank), WORLD_SIZE=str(job["world"]), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RUN_DIR=run, JOB=json.dumps(job), OMP_NUM_THREADS="1",
               PYTHONUNBUFFERED="1", NCCL_HOSTID=f"{job['name']}-{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_RAS_ADDR=f"127.0.0.1:{port + 1}",
               TORCH_FR_BUFFER_SIZE="512", TORCH_FR_DUMP_TEMP_FILE=f"{run}/fr/nccl_trace_rank_", TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{run}/pipe_", TORCH_INCLUDE_STACK_TRACE="0",
               TORCHINDUCTOR_CACHE_DIR=f"{run}/inductor.{rank}", TRITON_CACHE_DIR=f"{run}/triton.{rank}", TORCHINDUCTOR_COMPILE_THREADS="1", PYTHONPYCACHEPREFIX="/tmp/pyc")
    if job["info"]:
        env.update(NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=f"{run}/logs/nccl.{rank}.log")
    if job["stacks"]:
        env["STACKS"] = "1"
    if job.get("stay"):  # as with transports that do not notice a peer that is gone
        env["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"
    if PLUGIN:
        env.update(NCCL_PROFILER_PLUGIN=PLUGIN, BUSBAR_PROFILE_DIR=f"{run}/rings", BUSBAR_PROFILE_RECORDS="1024")
    if job.get("timing"):
        env["TORCH_NCCL_ENABLE_TIMING"] = "1"
    return env


def ras(port, path):
    """Keeps an answer, for judging it again later."""
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as s:
            s.settimeout(4)
            s.sendall(b"CLIENT PROTOCOL 2\nTIMEOUT 1\nSET FORMAT json\nVERBOSE STATUS\n")
            data = b""
            while chunk := s.recv(65536):
                data += chunk
        with open(path, "wb") as f:
            f.write(data[data.index(b"{"):])
    except (OSError, ValueError) as e:
        with open(path + ".error", "w") as f:
            f.write(repr(e))


def begun(job, run):
    """When all ranks that do something did it; 0 before."""
    spec = job.get("fault") or job.get("phase")
    if not spec:
        return os.path.getmtime(f"{run}/logs/rank_0.log") if os.path.exists(f"{run}/logs/rank_0.log") and b"step 10 " in open(f"{run}/logs/rank_0.log", "rb").read() else 0
    names = [f"{run}/mark.{r}" for r in (range(job["world"]) if spec.get("first") else spec["ranks"])]
    if not all(os.path.exists(n) for n in names):
        return 0
    return max(json.load(open(n))["t"] for n in names)


def play(job, port, o):
    run = os.path.abspath(f"{o.out}/{job['name']}")
    for d in ("fr", "logs", "stacks", "ras", "rings"):
        os.makedirs(f"{run}/{d}", exist_ok=True)
    result = {"name": job["name"], "style": job["style"], "planted": job.get("fault") or job.get("phase") or {"kind": "none", "ranks": []}}
    procs = []
    start = time.time()
    for r in range(job["world"]):
        procs.append(ranks.Rank(o.ranks, f"{HERE}/job.py", environment(job, run, r, port), f"{run}/logs/rank_{r}.log", run))
    try:
        at = 0
        while not at and time.time() - start < o.give_up and time.time() < o.end:
            time.sleep(0.1)
            at = begun(job, run)
        if not at:
            result["error"] = f"nothing happened within {o.give_up} s"
            return result
        result["began_s"] = round(at - start, 1)
        time.sleep(max(0, at + o.after - time.time()))
        ask(job, run, port, procs, o, result)
        result["exits"] = [p.poll() for p in procs]
        result["watchdog"] = any(b"Watchdog caught" in open(n, "rb").read() for n in glob.glob(f"{run}/logs/rank_*"))
        if not job.get("fault"):
            result["went_on"] = wait_on(run, procs, o.end)
            result["ended"] = result["went_on"] and stop(run, procs, o.end)
    finally:
        for p in procs:
            if p.poll() is None:
                p.kill()
        for p in procs:
            p.wait()
        for pattern in ("pipe_*", "ckpt.*", "inductor.*", "triton.*", ".mark.*"):
            for n in glob.glob(f"{run}/{pattern}"):
                shutil.rmtree(n, ignore_errors=True) if os.path.isdir(n) else os.unlink(n)
    return result


def steps(run):
    return [int(word) for word in re.findall(r"^step (\d+) ", open(f"{run}/logs/rank_0.log", errors="replace").read(), re.M)]


def wait_on(run, procs, end):
    """Whether a healthy job takes steps after its slow phase: that it was healthy is shown, not assumed."""
    before = len(steps(run))
    end = min(end, time.time() + 60)
    while time.time() < end and all(p.poll() is None for p in procs):
        if len(steps(run)) > before:
            return True
        time.sleep(0.3)
    return False


def stop(run, procs, end):
    """Has all ranks leave after the same step, and tells whether they did so."""
    with open(f"{run}/.stop", "w") as f:
        f.write(str(steps(run)[-1] + 50))
    os.rename(f"{run}/.stop", f"{run}/stop")
    end = min(end, time.time() + 20)
    return all(p.wait(max(0, end - time.time())) == 0 for p in procs)


def ask(job, run, port, procs, o, result):
    saved = [threading.Thread(target=ras, args=(port + 1, f"{run}/ras/ras.{k}.json")) for k in range(2)]
    saved[0].start()
    result.update(question(job, run, port, procs, o.busbar, o.ask, "busbar.json"))
    saved[1].start()
    if o.then:
        result["then"] = question(job, run, port, procs, os.path.abspath(o.then), o.then_ask, "then.json")
    for t in saved:
        t.join()
    shutil.copytree(f"{run}/logs", f"{run}/asked", dirs_exist_ok=True)  # as they were then


def question(job, run, port, procs, busbar, words, name):
    """Asks once, and scores the answer."""
    began = time.time()
    alive = [p for p in procs if p.poll() is None]
    if job["stacks"]:
        for p in alive:
            p.send_signal(signal.SIGUSR1)
    if "PID" in words and not alive:
        words = "RUN/logs RUN/fr RUN/stacks"
    words = [w.replace("RUN", run).replace("PORT", str(port + 1)).replace("PID", str(alive[0].pid) if alive else "") for w in words.split()]
    try:
        done = subprocess.run([busbar, "hang", "--json", *words], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return {"error": "busbar did not answer within 60 s"}
    result = {"seconds": round(time.time() - began, 2), "stderr": done.stderr[-500:], "code": done.returncode}
    with open(f"{run}/{name}", "w") as f:
        f.write(done.stdout)
    try:
        doc = json.loads(done.stdout)
    except ValueError:
        doc = {"verdict": "no answer", "kind": "", "ranks": [], "findings": [], "text": done.stderr[-300:]}
    named = sorted(r["rank"] for r in doc["ranks"])
    result.update(verdict=doc["verdict"], kind=doc["kind"], ranks=named, confidence=doc.get("confidence", 0), text=doc["text"], signals=doc.get("signals"))
    if job.get("fault"):
        result["right"] = doc["kind"] in KINDS[job["fault"]["kind"]] and named == job["fault"]["ranks"]
    else:
        result["false_alarm"] = any(f["severity"] != "note" for f in doc["findings"])
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--busbar", default="./busbar")
    p.add_argument("--out", default="live-runs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--at-once", type=int, default=4)
    p.add_argument("--after", type=float, default=6)
    p.add_argument("--give-up", type=float, default=70)
    p.add_argument("--only", default="", help="names or patterns of jobs: healthy-*,late-a")
    p.add_argument("--skip", default="", help="names or patterns of jobs to leave out")
    p.add_argument("--ranks", default="", help="socket of a running ranks.py (default: starts one; none: fresh interpreters)")
    p.add_argument("--until", type=float, default=1e12, help="seconds since 1970 after which no job is started")
    p.add_argument("--end", type=float, default=1e12, help="seconds since 1970 at which all jobs are ended")
    p.add_argument("--port", type=int, default=21000)
    p.add_argument("--plugin", default="", help="libnccl-profiler-busbar.so")
    p.add_argument("--then", default="", help="another busbar to ask after the first")
    p.add_argument("--then-ask", default="--pid PID RUN/stacks")
    p.add_argument("--ask", default="--ras 127.0.0.1:PORT --trigger RUN/pipe_ --dumps RUN/fr RUN/logs RUN/stacks")
    o = p.parse_args()
    global PLUGIN
    o.busbar, PLUGIN = os.path.abspath(o.busbar), os.path.abspath(o.plugin) if o.plugin else ""
    jobs = scenarios(o.seed)
    matches = lambda job, patterns: any(fnmatch.fnmatch(job["name"], p) for p in patterns.split(",") if p)
    jobs = [j for j in jobs if (not o.only or matches(j, o.only)) and not matches(j, o.skip)]
    results, lock, todo = [], threading.Lock(), list(enumerate(jobs))
    os.makedirs(o.out, exist_ok=True)
    if o.ranks == "":
        o.ranks = os.path.abspath(f"{o.out}/ranks.socket")
        ranks.start(o.ranks)
    elif o.ranks == "none":
        o.ranks = ""

    def work():
        while True:
            with lock:
                if not todo or time.time() > o.until:
                    return
                i, job = todo.pop(0)
            result = play(job, o.port + 10 * i, o)
            with lock:
                results.append(result)
                line(result)
                if len(results) == o.at_once + 1 and all("error" in r for r in results):
                    todo.clear()  # something is wrong with all of them
                with open(f"{o.out}/results.json", "w") as f:
                    json.dump({"seed": o.seed, "jobs": jobs, "results": results}, f, indent=1)

    threads = [threading.Thread(target=work) for _ in range(o.at_once)]
    for t in threads:
        t.start()
        time.sleep(0.5)
    for t in threads:
        t.join()
    summary("", results)
    if o.then:
        summary("then: ", [{**r.get("then", {}), "watchdog": r.get("watchdog")} for r in results])


def summary(name, results):
    hangs, well = [r for r in results if "right" in r], [r for r in results if "false_alarm" in r]
    print(f"{name}{sum(r['right'] for r in hangs)} of {len(hangs)} hangs named right; {sum(r['false_alarm'] for r in well)} false alarms of {len(well)} healthy jobs; "
          f"{sum(r.get('seconds', 0) > 5 for r in results)} answers took over 5 s; {sum(bool(r.get('watchdog')) for r in results)} after a watchdog; {sum('error' in r for r in results)} not scored; "
          f"{sum(bool(r.get('went_on')) for r in well)} healthy jobs took steps afterwards, {sum(bool(r.get('ended')) for r in well)} ended by themselves")


def line(r):
    s = r["planted"]
    print(f"| {r['name']} | {r['style']} | {s['kind']} {s['ranks']} | {cell(r)} | {cell(r['then']) + ' | ' if 'then' in r else ''}"
          f"began {r.get('began_s')} s, exits {r.get('exits')}{'' if r.get('went_on', True) else ', DID NOT GO ON'} |", flush=True)


def cell(r):
    ok = {True: "ok", False: "WRONG"}.get(r.get("right"), "FALSE ALARM" if r.get("false_alarm") else "ok" if "false_alarm" in r else "not scored")
    return f"{ok}: {r.get('verdict', '')} {r.get('kind', '')} {r.get('ranks', '')} {r.get('confidence', '')} in {r.get('seconds', '')} s {r.get('error', '')}{'' if ok == 'ok' else r.get('text', '')[:120]}"


if __name__ == "__main__":
    main()
