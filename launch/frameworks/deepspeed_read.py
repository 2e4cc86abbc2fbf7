#!/usr/bin/env python3
"""Lets DeepSpeed read the deepspeed.json of plans, each for as many replicas as its plan has.

    python3 deepspeed_read.py PLAN...        # folders of busbar plan --emit

Prints what DeepSpeed makes of each, and ends with 1 where that is not what plan.json says. No GPU is needed
(DS_ACCELERATOR=cpu).
"""

import json
import os
import sys

import deepspeed
from deepspeed.runtime.config import DeepSpeedConfig


class Replicas:
    """Stands for the groups of a job that is not running."""

    def __init__(self, number):
        self.number = number

    def get_data_parallel_world_size(self):
        return self.number


def device(held):
    """Where something is kept that a configuration may move off the GPU."""
    return None if held is None else str(getattr(held.device, "value", held.device))


def enabled(read, old, new):
    """Whether a type is on: a field of its own up to 0.16, part of one since."""
    return getattr(read, old) if hasattr(read, old) else getattr(read, new).enabled


def check(folder):
    with open(os.path.join(folder, "plan.json")) as f:
        job = json.load(f)["job"]
    split = job["parallel"]
    read = DeepSpeedConfig(os.path.join(folder, "deepspeed.json"), mpu=Replicas(split["dp"]))
    zero, offload = read.zero_config, job.get("offload")
    got = {
        "batch": read.train_batch_size,
        "micro": read.train_micro_batch_size_per_gpu,
        "product": read.train_micro_batch_size_per_gpu * read.gradient_accumulation_steps * split["dp"],
        "stage": int(read.zero_optimization_stage),
        "optimizer": device(zero.offload_optimizer),
        "parameters": device(zero.offload_param),
        "bf16": enabled(read, "bfloat16_enabled", "bfloat16_config"),
        "fp16": enabled(read, "fp16_enabled", "float16_config"),
        "overlap": bool(zero.overlap_comm),
        "wire": str(read.communication_data_type).replace("torch.", ""),
    }
    want = {
        "batch": job["global_batch"],
        "micro": job["micro_batch"],
        "product": job["global_batch"],
        "stage": split["zero"],
        "optimizer": "cpu" if offload else None,
        "parameters": "cpu" if offload == "parameters" else None,
        "bf16": job["precision"].endswith("bf16"),
        "fp16": job["precision"].endswith("fp16"),
        "overlap": split["zero"] > 0,
        "wire": {"bf16": "bfloat16", "fp16": "float16"}.get(job.get("compress"), "None"),
    }
    print(folder, got, "buckets of", int(zero.reduce_bucket_size))
    if got != want:
        print("  expected", want)
    return got == want


if __name__ == "__main__":
    for name, value in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", 29467)):
        os.environ.setdefault(name, str(value))
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # small messages among processes: wants a compiler
    deepspeed.init_distributed("gloo")  # without a group it takes every job for one of one rank, whatever it is told
    results = [check(folder) for folder in sys.argv[1:]]
    sys.exit(0 if all(results) else 1)
