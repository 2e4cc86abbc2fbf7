#!/usr/bin/env python3
"""Lets Megatron-LM take the megatron.sh of plans: its own parser and validation of arguments, and a model of as many parameters.

    PYTHONPATH=Megatron-LM python3 megatron_read.py PLAN...        # folders of busbar plan --emit

Every megatron.sh is started as the first rank of as many as its plan has, with this file in the place of pretrain_gpt.py. Ends with 1 where something
is refused, understood otherwise than plan.json says, or the model has another number of parameters. Needs PyTorch 2 and a GPU, whose generation Megatron-LM
asks for; Transformer Engine is not needed: layers are Megatron-Core's own, on the meta device, undivided."""

import json
import os
import subprocess
import sys
import tempfile


def child(folder):
    import torch
    from megatron.core import package_info, parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args

    with open(os.path.join(folder, "plan.json")) as f:
        job = json.load(f)["job"]
    split = job["parallel"]
    args = parse_args()
    validate_args(args)
    # Fusions that Transformer Engine brings, which is not asked for here.
    args.apply_rope_fusion = args.moe_permute_fusion = False
    core_transformer_config_from_args(args)
    got = {
        "dp": args.data_parallel_size, "tp": args.tensor_model_parallel_size, "pp": args.pipeline_model_parallel_size, "cp": args.context_parallel_size,
        "ep": args.expert_model_parallel_size, "vpp": args.virtual_pipeline_model_parallel_size or 1, "sequence_parallel": args.sequence_parallel,
        "micro_batch": args.micro_batch_size, "global_batch": args.global_batch_size, "seq": args.seq_length,
        "zero": int(args.use_distributed_optimizer) if not getattr(args, "use_megatron_fsdp", False) else {"optim_grads": 2, "optim_grads_params": 3}[args.data_parallel_sharding_strategy],
    }
    want = {k: split[k] for k in ("dp", "tp", "pp", "cp", "ep", "vpp", "sequence_parallel")}
    want.update(micro_batch=job["micro_batch"], global_batch=job["global_batch"], zero=split.get("zero", 0), seq=job["seq"])
    if got != want:
        print("DIFFERS: understood %s, plan.json says %s" % (got, want))
        return False
    # The whole model on one rank, without memory.
    args.tensor_model_parallel_size = args.pipeline_model_parallel_size = args.context_parallel_size = args.expert_model_parallel_size = args.expert_tensor_parallel_size = 1
    args.virtual_pipeline_model_parallel_size = args.pipeline_model_parallel_layout = args.num_layers_per_virtual_pipeline_stage = None
    args.sequence_parallel = args.tp_comm_overlap = args.moe_grouped_gemm = args.moe_permute_fusion = args.gradient_accumulation_fusion = False
    args.no_persist_layer_norm = True
    args.use_cpu_initialization, args.perform_initialization, args.apply_rope_fusion = True, False, False
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29%d" % (600 + os.getpid() % 300), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    config = core_transformer_config_from_args(args)
    if args.multi_latent_attention:
        # Core's own attention, which has no parameters, takes heads of one width only; Transformer Engine's takes two.
        from megatron.core.transformer.dot_product_attention import DotProductAttention

        plain = DotProductAttention.__init__
        DotProductAttention.__init__ = lambda self, *a, k_channels=None, v_channels=None, **k: plain(self, *a, **k)
    if args.num_experts:
        spec = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization=args.normalization)
    else:
        spec = get_gpt_layer_local_spec(None, False, args.qk_layernorm, args.multi_latent_attention, normalization=args.normalization)
    multiple = args.make_vocab_size_divisible_by * split["tp"]
    vocab = job["dims"]["vocab"]
    padded = -(-vocab // multiple) * multiple
    with torch.device("meta"):
        model = GPTModel(config=config, transformer_layer_spec=spec, vocab_size=padded, max_sequence_length=args.max_position_embeddings, pre_process=True, post_process=True,
                         share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights, position_embedding_type=args.position_embedding_type,
                         rotary_percent=args.rotary_percent, rotary_base=args.rotary_base)
    have = sum(p.numel() for p in model.parameters())
    d, x = job["dims"], job["architecture"]
    padding = (padded - vocab) * d["hidden"] * (2 if not x.get("tied") else 1)
    buffers = d.get("experts", 0) * (d["layers"] - d.get("dense_layers", 0)) if x.get("router_bias") else 0  # no parameters there, but tensors of the checkpoint
    ok = have - padding + buffers == job["params"]
    print("%s: Megatron-LM core %s takes it; %d parameters%s%s, plan.json says %d" % ("ok" if ok else "OTHER PARAMETERS", package_info.__version__, have,
          ", %d of them padding of the vocabulary" % padding if padding else "", ", and %d numbers of the router that are none" % buffers if buffers else "", job["params"]))
    return ok


def main(folders):
    fine = True
    for folder in folders:
        with open(os.path.join(folder, "plan.json")) as f:
            split = json.load(f)["job"]["parallel"]
        with tempfile.TemporaryDirectory() as stand_in:
            os.symlink(os.path.abspath(__file__), os.path.join(stand_in, "pretrain_gpt.py"))
            env = dict(os.environ, MEGATRON=stand_in, BUSBAR_PLAN=os.path.abspath(folder), RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(split["dp"] * split["tp"] * split["pp"] * split["cp"]), SAVE=stand_in, MEGATRON_READ="1")
            run = subprocess.run(["sh", os.path.join(folder, "megatron.sh")], env=env, capture_output=True, text=True)
        lines = [l for l in run.stdout.splitlines() if l.startswith(("ok", "OTHER", "DIFFERS"))]
        print(os.path.basename(os.path.normpath(folder)), "-", lines[-1] if lines else "REFUSED: " + " | ".join((run.stdout + run.stderr).strip().splitlines()[-3:])[-600:], flush=True)
        fine = fine and run.returncode == 0
    return 0 if fine else 1


if __name__ == "__main__":
    if os.environ.get("MEGATRON_READ"):
        sys.exit(0 if child(os.environ["BUSBAR_PLAN"]) else 1)
    sys.exit(main(sys.argv[1:]))
