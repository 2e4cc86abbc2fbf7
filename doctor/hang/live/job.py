"""One rank of a small training job that can be made to hang, or to spend time in a slow phase.

Started by drive.py. JOB (JSON) says which program runs (mesh, ddp, fsdp), what is planted and where:
    {"style": "mesh", "steps": 400, "pace": 0.05, "timeout": 120,
     "fault": {"kind": "late", "ranks": [2], "step": 9, ...}, "phase": {"kind": "checkpoint", "ranks": [0], "step": 9, "seconds": 12}}
The ranks named do it at that step; mark.RANK in RUN_DIR says when it began."""

import datetime
import faulthandler
import json
import os
import signal
import sys
import time

RANK, WORLD, RUN = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["RUN_DIR"]
JOB = json.loads(os.environ["JOB"])
FAULT, PHASE = JOB.get("fault") or {}, JOB.get("phase") or {}
STEP = [-1]
if os.environ.get("STACKS"):
    faulthandler.register(signal.SIGUSR1, file=open(f"{RUN}/stacks/stack.{RANK}.txt", "w"), all_threads=True)

import torch
import torch.distributed as dist
import torch.nn as nn

TIMEOUT = datetime.timedelta(seconds=JOB.get("timeout", 120))


def mark(what):
    with open(f"{RUN}/.mark.{RANK}", "w") as f:
        json.dump({"t": time.time(), "rank": RANK, "what": what, "step": STEP[0]}, f)
    os.rename(f"{RUN}/.mark.{RANK}", f"{RUN}/mark.{RANK}")


def planted(spec, kind):
    return spec.get("kind") == kind and RANK in spec["ranks"] and STEP[0] == spec["step"]


# ---- faults


def wait_for_license():
    while True:
        time.sleep(3600)


def parse_records():
    import re

    while True:
        re.findall(r"(a|b)+c", "abab" * 200)


def before_collectives():
    """Faults of the process itself, between two collectives of a step."""
    if planted(FAULT, "late"):
        mark("late")
        parse_records() if FAULT.get("busy") else wait_for_license()
    if planted(FAULT, "exited"):
        mark("exited")
        if FAULT.get("clean"):
            sys.exit(0)
        raise ValueError(f"loss is NaN at step {STEP[0]}")
    if planted(FAULT, "killed"):
        mark("killed")
        os.kill(os.getpid(), signal.SIGKILL)
    if planted(FAULT, "stopped"):
        mark("stopped")
        os.kill(os.getpid(), signal.SIGSTOP)
    if planted(FAULT, "kernel"):
        mark("kernel")
        torch.cuda._sleep(1 << 62)


BIG = {}


def big(elements, dtype=torch.float32):
    return torch.ones(elements, dtype=dtype, device="cuda")


def differing(group=None):
    """A collective that one rank calls with another operation, size or type."""
    if FAULT.get("kind") not in ("op", "size", "type") or STEP[0] != FAULT["step"]:
        return
    mine = RANK in FAULT["ranks"] and dist.get_rank(group) >= 0
    n = FAULT.get("elements", 1 << 20)
    x = big(n)
    if mine:
        mark(FAULT["kind"])
    if mine and FAULT["kind"] == "op":
        if FAULT.get("call") == "broadcast":
            dist.broadcast(x, src=dist.get_global_rank(group, 0) if group else 0, group=group)
        else:
            dist.all_gather_into_tensor(big(n * dist.get_world_size(group)), x, group=group)
    elif mine and FAULT["kind"] == "size":
        x = x[: n // FAULT.get("part", 2)]
        dist.broadcast(x, src=dist.get_global_rank(group, 0) if group else 0, group=group) if FAULT.get("call") == "broadcast" else dist.all_reduce(x, group=group)
    elif mine:
        dist.all_reduce(big(n, torch.bfloat16), group=group)
    elif FAULT["kind"] == "size" and FAULT.get("call") == "broadcast":
        dist.broadcast(x, src=dist.get_global_rank(group, 0) if group else 0, group=group)
    else:
        dist.all_reduce(x, group=group)
    x.sum().item()


def extra_group(groups):
    """A group that is first used late in the run: one member never comes to it."""
    if FAULT.get("kind") != "never" or FAULT.get("first") or STEP[0] != FAULT["step"]:
        return
    if RANK in FAULT["ranks"]:
        mark("never")
        return
    group = groups.get(RANK)
    if group is not None:
        x = torch.ones(1024, device="cuda")
        dist.all_reduce(x, group=group)
        x.sum().item()


# ---- slow phases of a healthy job


def save_checkpoint(seconds):
    end = time.time() + seconds
    while time.time() < end:
        torch.save({"w": torch.randn(1 << 20)}, f"{RUN}/ckpt.{RANK}.pt")
        time.sleep(0.1)


def evaluate(seconds):
    x = torch.randn(2048, 2048, device="cuda")
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(20):
            x = (x @ x).tanh()
        x.sum().item()


def compile_model(seconds):
    """One network after another, as long as it takes: the first with every choice tried where asked."""
    end, k = time.time() + seconds, 0
    while time.time() < end:
        torch._dynamo.reset()
        tuned = k == 0 and PHASE.get("autotune")
        net = nn.Sequential(*[nn.Sequential(nn.Linear(256 + k, 256 + k), nn.GELU(), nn.LayerNorm(256 + k)) for _ in range(1 if tuned else 3)]).cuda()
        f = torch.compile(net, mode="max-autotune-no-cudagraphs" if tuned else None)
        with torch.set_grad_enabled(not tuned):
            y = f(torch.randn(64, 256 + k, device="cuda")).sum()
        y.item() if tuned else y.backward()
        k += 1


def collect_garbage(seconds):
    import gc

    end = time.time() + seconds
    keep = [[i] for i in range(1 << 20)]
    while time.time() < end:
        gc.collect()
    return len(keep)


def long_kernels(seconds):
    torch.cuda._sleep(int(seconds * 1.5e9))
    torch.cuda.synchronize()


def slow_phase():
    if not PHASE or STEP[0] != PHASE["step"]:
        return
    if RANK in PHASE["ranks"]:
        mark(PHASE["kind"])
        s = PHASE.get("seconds", 12)
        {"checkpoint": save_checkpoint, "evaluation": evaluate, "garbage": collect_garbage, "kernels": long_kernels, "loading": lambda s: None,
         "compile": compile_model}[PHASE["kind"]](s)
    if PHASE.get("barrier"):
        dist.barrier()


class Shards(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        if PHASE.get("kind") == "loading" and RANK in PHASE["ranks"] and i == PHASE["step"]:
            STEP[0] = i
            mark("loading")
            time.sleep(PHASE.get("seconds", 12))
        return torch.full((32, 256), float(i % 7))


def batches():
    workers = 1 if PHASE.get("kind") == "loading" and PHASE.get("workers") else 0
    yield from torch.utils.data.DataLoader(Shards(), batch_size=None, num_workers=workers)


# ---- programs


class Mesh:
    """Tensor-parallel pairs, data-parallel groups and all ranks."""

    def __init__(self):
        from torch.distributed.device_mesh import init_device_mesh

        tp = JOB.get("tp", 2)
        mesh = init_device_mesh("cuda", (WORLD // tp, tp), mesh_dim_names=("dp", "tp"))
        self.tp, self.dp = mesh.get_group("tp"), mesh.get_group("dp")
        self.w = torch.randn(256, 256, device="cuda") * 0.01
        self.gathered, self.local = torch.empty(32 * tp, 256, device="cuda"), torch.empty(32, 256, device="cuda")
        self.buckets = [torch.ones(1 << 18, device="cuda"), torch.ones(1 << 16, device="cuda")]
        self.stats = torch.ones(64, device="cuda")

    def forward(self, x):
        dist.all_gather_into_tensor(self.gathered, x, group=self.tp)
        dist.reduce_scatter_tensor(self.local, self.gathered @ self.w, group=self.tp)

    def gradients(self):
        for b in self.buckets:
            dist.all_reduce(b, group=self.dp)
            b.mul_(1.0 / dist.get_world_size(self.dp))

    def norm(self):
        dist.all_reduce(self.stats)
        self.stats.mul_(1.0 / WORLD)
        return self.stats.sum()

    def step(self, x):
        if planted(FAULT, "order"):
            mark("order")
            loss = self.norm()  # before the groups, where the others do it after them
            self.forward(x)
            self.gradients()
            return loss.item()
        self.forward(x)
        before_collectives()
        differing({"tp": self.tp, "dp": self.dp}.get(FAULT.get("group")))
        self.gradients()
        return self.norm().item()


class Wrapped:
    """A small network under DDP or FSDP2."""

    def __init__(self, style):
        net = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6)]).cuda()
        if style == "ddp":
            self.net = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.5)
        else:
            from torch.distributed.fsdp import fully_shard

            for layer in net:
                fully_shard(layer)
            self.net = fully_shard(net)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.metrics = dist.new_group(list(range(WORLD)), timeout=TIMEOUT, group_desc="metrics")

    def step(self, x):
        swapped = planted(FAULT, "order")
        if swapped:
            mark("order")
            m = torch.ones(8, device="cuda")
            dist.all_reduce(m, group=self.metrics)
        loss = self.net(x).square().mean()
        before_collectives()
        loss.backward()
        differing()
        if not swapped:
            m = torch.ones(8, device="cuda")
            dist.all_reduce(m, group=self.metrics)
        self.opt.step()
        self.opt.zero_grad()
        return loss.item() + m.sum().item()


class Pipeline:
    """Stages that send activations to the next one."""

    def __init__(self):
        self.x = torch.ones(64, 256, device="cuda")

    def step(self, x):
        for _ in range(4):
            if RANK > 0:
                dist.recv(self.x, RANK - 1)
            before_collectives()
            if RANK + 1 < WORLD:
                dist.send(self.x, RANK + 1)
        differing()
        y = self.x.clone()
        dist.all_reduce(y)
        return y.sum().item()


def last_step():
    """The step that all ranks leave at, once the driver said so: it is well ahead of them then."""
    try:
        with open(f"{RUN}/stop") as f:
            return int(f.read())
    except FileNotFoundError:
        return 1 << 62


def main():
    torch.cuda.set_device(0)
    STEP[0] = -2
    slow_phase()
    if FAULT.get("kind") == "never" and FAULT.get("first") and RANK in FAULT["ranks"]:
        dist.init_process_group("nccl", timeout=TIMEOUT)
        mark("never")
        wait_for_license()
    dist.init_process_group("nccl", timeout=TIMEOUT)
    if FAULT.get("kind") == "never" and FAULT.get("first"):
        mark("waits")
        dist.all_reduce(torch.ones(8, device="cuda"))
    STEP[0] = -1
    slow_phase()
    groups = {}
    if FAULT.get("kind") == "never" and not FAULT.get("first"):
        for ranks in FAULT["groups"]:
            g = dist.new_group(ranks, timeout=TIMEOUT, group_desc="experts")
            groups.update({r: g for r in ranks if r == RANK})
    style = JOB["style"]
    program = Mesh() if style == "mesh" else Pipeline() if style == "pp" else Wrapped(style)
    data = batches()
    for step in range(JOB.get("steps", 4000)):
        if step >= last_step():
            break
        x = next(data).cuda()
        STEP[0] = step
        slow_phase()
        time.sleep(JOB.get("pace", 0.05))
        extra_group(groups)
        loss = program.step(x)
        if RANK == 0 and step % 10 == 0:
            print(f"step {step} loss {loss:.3f}", flush=True)
    dist.destroy_process_group()
    os._exit(0)  # without seconds of taking modules apart


if __name__ == "__main__":
    main()
