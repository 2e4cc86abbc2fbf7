#!/usr/bin/env python3
"""Lets torchtitan 0.2 take the torchtitan.toml of plans: its configuration, its check of the degrees, and a model of as many parameters.

    PYTHONPATH=torchtitan python3 torchtitan_read.py PLAN...        # folders of busbar plan --emit

Ends with 1 where something is refused or differs from plan.json. What torchtitan imports and this machine lacks (command lines, datasets) is stood in for by empty modules;
then the arguments of torchtitan.sh are checked against the names of the configuration alone."""

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock


class StandIn:
    """Empty modules for what is missing."""

    names = ("tyro", "torchdata", "datasets", "torchao", "tokenizers", "wandb", "tensorboard", "PIL", "einops", "fsspec")

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        class Empty(types.ModuleType):
            def __getattr__(self, attr):
                if attr.startswith("__"):
                    raise AttributeError(attr)
                return MagicMock(name=attr) if attr[0].islower() else type(attr, (), {})

        return Empty(spec.name)

    def exec_module(self, module):
        module.__path__ = []
        print("stood in:", module.__name__, file=sys.stderr)


sys.meta_path.append(StandIn())


def read(cls, values, where):
    """A dataclass of torchtitan's from a table, as its ConfigManager makes it; names that it lacks are refused."""
    known = {f.name: f for f in dataclasses.fields(cls)}
    out = {}
    for key, value in values.items():
        if key not in known:
            raise SystemExit("REFUSED: %s.%s is no name of torchtitan's configuration" % (where, key))
        inner = getattr(known[key], "type", None)
        out[key] = read(inner, value, key) if isinstance(value, dict) and dataclasses.is_dataclass(inner) else value
    return cls(**out)


def check(folder):
    import torch
    from torchtitan.config.job_config import JobConfig
    from torchtitan.distributed.parallel_dims import ParallelDims
    from torchtitan.protocols.train_spec import get_train_spec

    with open(os.path.join(folder, "plan.json")) as f:
        job = json.load(f)["job"]
    split = job["parallel"]
    with open(os.path.join(folder, "torchtitan.toml"), "rb") as f:
        config = read(JobConfig, tomllib.load(f), "")
    with open(os.path.join(folder, "torchtitan.sh")) as f:
        for section, key in re.findall(r"--([a-z_]+)\.([a-z_]+)", f.read()):
            if not hasattr(getattr(config, section), key):
                raise SystemExit("REFUSED: --%s.%s is no name of torchtitan's configuration" % (section, key))
    world = split["dp"] * split["tp"] * split["pp"] * split["cp"]
    p = config.parallelism
    dims = ParallelDims(dp_shard=p.data_parallel_shard_degree, dp_replicate=p.data_parallel_replicate_degree, cp=p.context_parallel_degree, tp=p.tensor_parallel_degree,
                        pp=p.pipeline_parallel_degree, ep=p.expert_parallel_degree, etp=p.expert_tensor_parallel_degree, world_size=world)
    if dims.dp_shard * dims.dp_replicate != split["dp"]:
        raise SystemExit("DIFFERS: dp %d × %d, plan.json says %d" % (dims.dp_replicate, dims.dp_shard, split["dp"]))
    micros = config.training.local_batch_size // (p.pipeline_parallel_microbatch_size if split["pp"] > 1 else config.training.local_batch_size)
    if config.training.global_batch_size != job["global_batch"] or split["pp"] > 1 and micros != job["global_batch"] // job["micro_batch"] // split["dp"]:
        raise SystemExit("DIFFERS: the batch")
    if config.experimental.custom_import:
        sys.path.insert(0, folder)
        sys.modules.pop(config.experimental.custom_import, None)
        importlib.import_module("torchtitan.protocols.train_spec")._extra_train_specs.clear()
        importlib.import_module(config.experimental.custom_import)
        sys.path.pop(0)
    spec = get_train_spec(config.model.name)
    args = spec.model_args[config.model.flavor]
    args.update_from_config(config)
    with torch.device("meta"):
        model = spec.model_cls(args)
    if split["pp"] > 1:
        named = {n for stage in p.module_fqns_per_model_part for n in stage}
        if named != {"tok_embeddings", "norm", "output"} | {"layers.%d" % i for i in range(job["dims"]["layers"])} or len(p.module_fqns_per_model_part) % split["pp"]:
            raise SystemExit("DIFFERS: the pipeline's modules")
    have = sum(t.numel() for t in model.parameters())
    d = job["dims"]
    buffers = d.get("experts", 0) * (d["layers"] - d.get("dense_layers", 0)) if job["architecture"].get("router_bias") else 0
    ok = have + buffers == job["params"]
    print(os.path.basename(os.path.normpath(folder)), "- %s: %d parameters%s, plan.json says %d" % ("ok" if ok else "OTHER PARAMETERS", have, ", and %d numbers of the router that are none" % buffers if buffers else "", job["params"]), flush=True)
    return ok


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(0 if check(sys.argv[1]) else 1)
    fine = True
    for folder in sys.argv[1:]:
        run = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True)
        fine = fine and run.returncode == 0
        print(run.stdout.strip() or "%s - %s" % (folder, run.stderr.strip().splitlines()[-1][-400:] if run.stderr.strip() else "?"), flush=True)
    sys.exit(0 if fine else 1)
