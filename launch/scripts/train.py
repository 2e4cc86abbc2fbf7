#!/usr/bin/env python3
"""Trains the model of a plan as the plan says, by PyTorch's DDP, by FSDP2 or by DeepSpeed: what plan.json names. One process is one rank;
torchrun, srun through `busbar exec` or DeepSpeed's launcher start them. Without DATA it trains on made-up tokens.

Environment: PLAN (folder of plan.json), DATA (a file of token numbers, 32 bits each), SAVE, STEPS, LR, MIN_LR, WARMUP, SAVE_EVERY; for DDP
HOOK (none, fp16, bf16, powersgd, rack) with RACK, the ranks of a rack."""

import contextlib
import json
import math
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

HERE = os.environ.get("PLAN") or os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import hooks
import model as plain

with open(os.path.join(HERE, "plan.json")) as f:
    JOB = json.load(f)["job"]
SPLIT = JOB["parallel"]
STEPS, LR, MIN_LR = int(os.environ.get("STEPS", 10)), float(os.environ.get("LR", 3e-4)), float(os.environ.get("MIN_LR", 3e-5))
WARMUP, SAVE_EVERY, SAVE = int(os.environ.get("WARMUP", 100)), int(os.environ.get("SAVE_EVERY", 500)), os.environ.get("SAVE", "")
DTYPE = {"fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}.get(JOB["precision"].replace("amp-", ""), torch.bfloat16)
CUDA = torch.cuda.is_available()
STOP = []  # SIGTERM came: save and end


def learning_rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    return MIN_LR + (LR - MIN_LR) * 0.5 * (1 + math.cos(math.pi * min(1, (step - WARMUP) / max(1, STEPS - WARMUP))))


class Tokens:
    """Sequences in turn: every data-parallel rank has its own, and a step goes on where the last one ended."""

    def __init__(self, device, rank, ranks):
        self.device, self.rank, self.ranks, self.seq, self.micro = device, rank, ranks, JOB["seq"], JOB["micro_batch"]
        self.data = None
        if os.environ.get("DATA"):
            self.data = torch.from_file(os.environ["DATA"], dtype=torch.int32, size=os.path.getsize(os.environ["DATA"]) // 4)

    def batch(self, number):
        """The number-th micro-batch of this rank: tokens, and those that follow them."""
        rows, width = self.micro, self.seq + 1
        if self.data is None:
            made = torch.Generator().manual_seed(number * self.ranks + self.rank)
            x = torch.randint(0, JOB["dims"]["vocab"], (rows, width), generator=made)
        else:
            at = ((number * self.ranks + self.rank) * rows * width) % max(1, len(self.data) - rows * width)
            x = self.data[at : at + rows * width].view(rows, width).long()
        x = x.to(self.device, non_blocking=True)
        return x[:, :-1].contiguous(), x[:, 1:].contiguous()


def build(device="meta"):
    with torch.device(device):
        m = plain.Model(JOB)
    have = sum(p.numel() for p in m.parameters())
    if JOB.get("params") and have != JOB["params"]:
        raise SystemExit("the model has %d parameters; plan.json says %d" % (have, JOB["params"]))
    return m


def optimizer_of(m):
    # Decay is for matrices. Parameters of one mesh are updated together: kernels take no mixture.
    groups = {}
    for p in m.parameters():
        if p.requires_grad:
            groups.setdefault((p.dim() > 1, str(getattr(p, "device_mesh", None))), []).append(p)
    return torch.optim.AdamW([{"params": g, "weight_decay": 0.1 if wide else 0.0} for (wide, _), g in groups.items()], lr=LR, betas=(0.9, 0.95), eps=1e-8, fused=CUDA)


def clip(m, most=1.0):
    meshes = {}
    for p in m.parameters():
        if p.grad is not None:
            meshes.setdefault(str(getattr(p, "device_mesh", None)), []).append(p)
    norms = [torch.nn.utils.get_total_norm([p.grad for p in g]) for g in meshes.values()]
    total = torch.stack([n.full_tensor() if hasattr(n, "full_tensor") else n for n in norms]).norm()
    for g in meshes.values():
        torch.nn.utils.clip_grads_with_norm_(g, most, total)


def compiled(m):
    if JOB.get("kernels") == "compiled":
        for i, layer in enumerate(m.layers):
            m.layers[i].compile()
    return m


def with_ddp(device, local):
    m = build(device)  # the host is slow at random weights
    m.initialize()
    compiled(m)
    bucket = (JOB.get("bucket_bytes") or 25 << 20) / (1 << 20)
    d = torch.nn.parallel.DistributedDataParallel(m, device_ids=[local] if CUDA else None, bucket_cap_mb=bucket, gradient_as_bucket_view=True)
    hooks.install(d, os.environ.get("HOOK") or JOB.get("compress") or "none", int(os.environ.get("RACK", 0)))
    if SPLIT["zero"] == 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return d, ZeroRedundancyOptimizer([p for p in m.parameters() if p.requires_grad], torch.optim.AdamW, lr=LR, betas=(0.9, 0.95), weight_decay=0.1), d.no_sync
    return d, optimizer_of(m), d.no_sync


def with_fsdp(device, local):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    replicas = dist.get_world_size() // SPLIT["tp"]  # an elastic job may have fewer than the plan
    shard = SPLIT.get("shard") or replicas
    if replicas % shard:
        shard = replicas
    shape, names = (replicas // shard, shard, SPLIT["tp"]), ("replicate", "shard", "tp")
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)
    m = build()
    if SPLIT["tp"] > 1:
        tensor_parallel(m, mesh["tp"])
    policy = MixedPrecisionPolicy(param_dtype=DTYPE, reduce_dtype=DTYPE)
    offload = CPUOffloadPolicy() if JOB.get("offload") == "parameters" else OffloadPolicy()
    dp = mesh["replicate", "shard"] if shape[0] > 1 else mesh["shard"]
    compiled(m)
    for layer in m.layers:
        fully_shard(layer, mesh=dp, mp_policy=policy, offload_policy=offload, reshard_after_forward=SPLIT["zero"] == 3)
    fully_shard(m, mesh=dp, mp_policy=policy, offload_policy=offload, reshard_after_forward=False)
    m.to_empty(device="cpu" if JOB.get("offload") == "parameters" else device)
    torch.manual_seed(1234)
    m.initialize()

    @contextlib.contextmanager
    def no_sync():
        m.set_requires_gradient_sync(False)
        yield
        m.set_requires_gradient_sync(True)

    # FSDP sums over the ranks of its mesh and divides by them: batches of tensor-parallel ranks are the same.
    return m, optimizer_of(m), (no_sync if SPLIT["zero"] == 2 else contextlib.nullcontext)


def tensor_parallel(m, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for layer in m.layers:
        plan = {"attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(), "attention.out": RowwiseParallel(),
                "mlp.gate": ColwiseParallel(), "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel()}
        if layer.mlp.gate is None:
            del plan["mlp.gate"]
        parallelize_module(layer, mesh, plan)


def with_deepspeed(device, local):
    import deepspeed

    deepspeed.init_distributed("nccl" if CUDA else "gloo")  # before anything reads the configuration, which is else taken for one rank's
    with deepspeed.zero.Init(config_dict_or_path=os.path.join(HERE, "deepspeed.json"), enabled=SPLIT["zero"] == 3):
        m = build("cpu") if SPLIT["zero"] < 3 else plain.Model(JOB)
        if SPLIT["zero"] < 3:
            m.initialize()
    engine, _, _, _ = deepspeed.initialize(model=m, model_parameters=[p for p in m.parameters() if p.requires_grad], config=os.path.join(HERE, "deepspeed.json"))
    if JOB.get("kernels") == "compiled":
        engine.compile()
    return engine


def divided(optimizer):
    """Whether every rank has its own part of the optimizer's state, as DDP with zero=1."""
    return hasattr(optimizer, "consolidate_state_dict")


def save(m, optimizer, step, rank, now=False):
    if not SAVE or step % SAVE_EVERY and not now:
        return
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict

    at = os.path.join(SAVE, "step-%d" % step)
    if divided(optimizer):
        optimizer.consolidate_state_dict(to=0)
        if rank == 0:
            os.makedirs(at, exist_ok=True)
            torch.save(optimizer.state_dict(), os.path.join(at, "optimizer.pt"))
        dcp.save({"model": get_model_state_dict(m)}, checkpoint_id=at)
        return
    weights, state = get_state_dict(m, optimizer)
    dcp.save({"model": weights, "optimizer": state, "step": step}, checkpoint_id=at)


def resume(m, optimizer):
    """The step after that of the newest checkpoint; 0 where there is none."""
    done = sorted(int(n[5:]) for n in os.listdir(SAVE) if n.startswith("step-")) if SAVE and os.path.isdir(SAVE) else []
    while done:
        at = os.path.join(SAVE, "step-%d" % done[-1])
        if os.path.exists(os.path.join(at, ".metadata")):  # one that was not finished has none
            import torch.distributed.checkpoint as dcp
            from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict, set_model_state_dict, set_state_dict

            if divided(optimizer):
                box = {"model": get_model_state_dict(m)}
                dcp.load(box, checkpoint_id=at)
                set_model_state_dict(m, box["model"])
                optimizer.load_state_dict(torch.load(os.path.join(at, "optimizer.pt"), map_location="cpu", weights_only=False))
                return done[-1]
            weights, state = get_state_dict(m, optimizer)
            box = {"model": weights, "optimizer": state}
            dcp.load(box, checkpoint_id=at)
            set_state_dict(m, optimizer, model_state_dict=box["model"], optim_state_dict=box["optimizer"])
            return done[-1]
        done.pop()
    return 0


def main():
    rank, world, local = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if CUDA else torch.device("cpu")
    if CUDA:
        torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high" if JOB["precision"] == "tf32" else "highest")
    name = JOB.get("framework", "ddp").split("@")[0]
    if name != "deepspeed":
        # What is offloaded is summed on the host, too.
        dist.init_process_group(("cpu:gloo,cuda:nccl" if JOB.get("offload") else "nccl") if CUDA else "gloo")
    signal.signal(signal.SIGTERM, lambda *_: STOP.append(True))
    replicas = world // SPLIT["tp"]  # as many as there are: an elastic job may have fewer than the plan
    micros = max(1, JOB["global_batch"] // (JOB["micro_batch"] * replicas))
    data = Tokens(device, rank // SPLIT["tp"], replicas)
    if name == "deepspeed":
        return deepspeed_steps(with_deepspeed(device, local), data, rank)
    m, optimizer, no_sync = (with_fsdp if name == "fsdp" else with_ddp)(device, local)
    amp = JOB["precision"].startswith("amp-") or name == "ddp" and DTYPE != torch.float32
    autocast = torch.autocast(device.type, dtype=DTYPE) if amp else contextlib.nullcontext()
    scaler = torch.amp.GradScaler(device.type, enabled=DTYPE == torch.float16)  # small gradients are none in 16 bits
    first = resume(m, optimizer)
    if rank == 0:
        begins(world, first)
    for step in range(first, STEPS):
        began = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        total = torch.zeros((), device=device)
        for k in range(micros):
            tokens, labels = data.batch(step * micros + k)
            with no_sync() if k < micros - 1 else contextlib.nullcontext():
                with autocast:
                    loss = m(tokens, labels) / micros
                scaler.scale(loss).backward()
            total += loss.detach()
        scaler.unscale_(optimizer)
        clip(m)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        stop = stopped(device)
        save(m, optimizer, step + 1, rank, stop)
        report(step, total.item(), began, rank)
        if stop:
            raise SystemExit(75 if SAVE else 143)
    dist.barrier()
    dist.destroy_process_group()


def stopped(device):
    """Whether any rank was told to end: all of them save then, after the same step."""
    flag = torch.tensor(float(bool(STOP)), device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag.item() > 0


def deepspeed_steps(engine, data, rank):
    micros, first = engine.gradient_accumulation_steps(), 0
    if SAVE and os.path.exists(os.path.join(SAVE, "latest")):
        _, state = engine.load_checkpoint(SAVE)
        first = (state or {}).get("step", 0)
    if rank == 0:
        begins(dist.get_world_size(), first)
    for step in range(first, STEPS):
        began, total = time.perf_counter(), 0.0
        for group in engine.optimizer.param_groups:
            group["lr"] = learning_rate(step)
        for k in range(micros):
            tokens, labels = data.batch(step * micros + k)
            loss = engine(tokens, labels)
            engine.backward(loss)
            engine.step()
            total += loss.item() / micros
        stop = stopped(data.device)
        if SAVE and (stop or (step + 1) % SAVE_EVERY == 0):
            engine.save_checkpoint(SAVE, tag="step-%d" % (step + 1), client_state={"step": step + 1})
        report(step, total, began, rank)
        if stop:
            raise SystemExit(75 if SAVE else 143)


def begins(world, first):
    gpu, d = torch.cuda.get_device_name() if CUDA else "CPU", JOB["dims"]
    print("%s on %s: world size %d, tensor parallel size %d, global batch size %d, micro batch size %d, sequence length %d, num_layers %d, hidden_size %d; from step %d"
          % (JOB["model"], gpu, world, SPLIT["tp"], JOB["global_batch"], JOB["micro_batch"], JOB["seq"], d.get("layers", 0), d.get("hidden", 0), first), flush=True)


def report(step, loss, began, rank):
    if rank == 0:
        took = time.perf_counter() - began
        memory = torch.cuda.max_memory_allocated() / 1e9 if CUDA else 0
        print("step %d: loss %.4f, %.3f s, %.0f tokens/s, %.1f GB" % (step + 1, loss, took, JOB["global_batch"] * JOB["seq"] / took, memory), flush=True)


if __name__ == "__main__":
    main()
