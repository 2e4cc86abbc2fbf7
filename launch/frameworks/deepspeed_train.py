#!/usr/bin/env python3
"""Trains a small model for ten steps under DeepSpeed with the deepspeed.json of a plan, on as many ranks as the plan has.

    torchrun --nproc-per-node RANKS deepspeed_train.py PLAN      # DS_ACCELERATOR=cpu without as many GPUs

Needs PyTorch 2, whose Gloo sums bfloat16.
"""

import json
import os
import sys

import deepspeed
import torch

folder = sys.argv[1]
with open(os.path.join(folder, "plan.json")) as f:
    job = json.load(f)["job"]
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # small messages among processes: wants a compiler
gpu = torch.cuda.is_available() and os.environ.get("DS_ACCELERATOR") != "cpu"
deepspeed.init_distributed("nccl" if gpu else "gloo")
torch.manual_seed(1)
linear, relu = torch.nn.Linear, torch.nn.ReLU
model = torch.nn.Sequential(linear(64, 256), relu(), linear(256, 256), relu(), linear(256, 8))
engine, optimizer, _, _ = deepspeed.initialize(
    model=model,
    model_parameters=model.parameters(),
    optimizer=torch.optim.AdamW(model.parameters(), lr=1e-2),
    config=os.path.join(folder, "deepspeed.json"),
)
rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
micro, parts = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
torch.manual_seed(7)
x = torch.randn(ranks, micro, 64)[rank].to(engine.device)
y = torch.randint(0, 8, (ranks, micro))[rank].to(engine.device)
losses = []
for _ in range(10 * parts):
    out = engine(x.to(next(engine.module.parameters()).dtype))
    loss = torch.nn.functional.cross_entropy(out.float(), y)
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
if rank == 0:
    print(f"{folder}: {ranks} ranks, {micro} x {parts} sequences each, stage {engine.zero_optimization_stage()}, {type(optimizer).__name__},",
          f"buckets of {getattr(optimizer, 'reduce_bucket_size', None)}, {engine.global_steps} steps on {engine.device}, loss {losses[0]:.3f} to {losses[-1]:.3f}")
if engine.train_batch_size() != job["global_batch"] or engine.global_steps != 10 or losses[-1] >= losses[0]:
    sys.exit(f"{folder}: not as plan.json has it, or nothing learned")
