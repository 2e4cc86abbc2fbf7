#!/usr/bin/env python3
"""Lets Megatron-LM parse and validate the megatron.args of plans, each as the first rank of as many as its plan has.

    PYTHONPATH=Megatron-LM python3 megatron_read.py PLAN...        # folders of busbar plan --emit

Ends with 1 where it refuses, or understands something else than plan.json says. Needs PyTorch 2 and a GPU, whose
generation Megatron-LM asks for; Transformer Engine is not needed.
"""

import contextlib
import io
import json
import os
import sys

os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
from megatron.core import package_info
from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args

# What the plan leaves to the user: data, tokenizer, kind of layers, length of training.
OWN = "--mock-data --tokenizer-type NullTokenizer --vocab-size 32000 --swiglu --normalization RMSNorm --disable-bias-linear --lr 1e-4 --train-iters 10".split()


def check(folder):
    with open(os.path.join(folder, "plan.json")) as f:
        plan = json.load(f)
    job, split = plan["job"], plan["job"]["parallel"]
    with open(os.path.join(folder, "megatron.args")) as f:
        words = [w for line in f if not line.startswith("#") for w in line.split()]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(split["dp"] * split["tp"] * split["pp"] * split["cp"]))
    sys.argv = ["pretrain_gpt.py"] + words + OWN
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        args = parse_args()
        validate_args(args)
        config = core_transformer_config_from_args(args)
    got = {
        "dp": args.data_parallel_size, "tp": args.tensor_model_parallel_size, "pp": args.pipeline_model_parallel_size, "cp": args.context_parallel_size,
        "ep": args.expert_model_parallel_size, "vpp": args.virtual_pipeline_model_parallel_size or 1, "sequence_parallel": args.sequence_parallel,
        "micro_batch": args.micro_batch_size, "global_batch": args.global_batch_size, "zero": int(args.use_distributed_optimizer),
    }
    want = {k: split[k] for k in ("dp", "tp", "pp", "cp", "ep", "vpp", "sequence_parallel")}
    want.update(micro_batch=job["micro_batch"], global_batch=job["global_batch"], zero=split.get("zero", 0))
    overlaps = {"tp_comm_overlap": config.tp_comm_overlap, "overlap_grad_reduce": args.overlap_grad_reduce,
                "asked": [w for w in words if "overlap" in w], "bucket": args.ddp_bucket_size, "fp8": getattr(args, "fp8", None), "micro-batches": args.global_batch_size // args.micro_batch_size // args.data_parallel_size}
    print("ok" if got == want else "DIFFERS from %s" % want, os.path.basename(folder), got, overlaps)
    return got == want


if __name__ == "__main__":
    print("Megatron-LM core", package_info.__version__)
    fine = True
    for folder in sys.argv[1:]:
        try:
            fine = check(folder) and fine
        except BaseException as e:  # argparse exits, the rest asserts
            fine = False
            print("REFUSED", os.path.basename(folder), type(e).__name__, str(e)[:300])
    sys.exit(0 if fine else 1)
