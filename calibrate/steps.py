# Steps of reference models on one GPU, as a whole and by what their kernels do: one JSON object a line.
# Models are made from their dimensions with random weights; nothing is downloaded.
import json, statistics, sys, time

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

MODELS = [  # family, layers, hidden, heads, heads of keys, feed-forward, vocabulary, sequences, their length
    ("llama", 8, 2048, 32, 8, 5632, 32000, 4, 2048),
    ("llama", 4, 4096, 32, 32, 11008, 32000, 2, 2048),
    ("llama", 8, 1024, 16, 16, 2816, 32000, 16, 1024),
    ("llama", 16, 1024, 16, 4, 2816, 32000, 1, 512),
    ("gpt2", 8, 1536, 12, 12, 6144, 50304, 8, 1024),
    ("gpt2", 8, 768, 12, 12, 3072, 50304, 16, 1024),
    ("gpt2", 16, 1024, 16, 16, 4096, 50304, 1, 512),
]
ATTENTION, BACK = ("flash", "fmha", "sdpa", "dot_do_o"), ("bprop", "bwd", "back", "dot_do_o")
PRODUCT, UPDATE = ("nvjet", "gemm", "cutlass", "xmma", "splitk", "cijk"), ("multi_tensor",)


def part(kernel):
    has = lambda words: any(w in kernel.lower() for w in words)
    if has(ATTENTION):
        return "backward_us" if has(BACK) else "forward_us"
    return "products_us" if has(PRODUCT) else "update_us" if has(UPDATE) else "streams_us"


def prepare(family, layers, hidden, heads, kv, ffn, vocab, batch, seq):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        if family == "llama":
            model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv, intermediate_size=ffn, vocab_size=vocab, max_position_embeddings=seq))
        else:
            model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, n_inner=ffn, vocab_size=vocab, n_positions=seq))
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    words = torch.randint(0, vocab, (batch, seq), device="cuda")

    def step():
        model(input_ids=words, labels=words).loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)

    return step


def timed(step):
    """The median time of settled steps, in microseconds."""
    times, began = [], time.time()
    while len(times) < 8 or time.time() - began < 2:
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        step()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) * 1e3)
    return statistics.median(times[len(times) // 2:])


def parts(step):
    """What the kernels of a step do, in microseconds."""
    row = {"products_us": 0, "forward_us": 0, "backward_us": 0, "streams_us": 0, "update_us": 0}
    began = time.time()
    while time.time() - began < 1.5:  # until power and clocks have settled
        step()
        torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        step()
        step()
        torch.cuda.synchronize()
    for k in p.key_averages():
        row[part(k.key)] += k.self_device_time_total / 2
    return row


rows = {}
for work in (timed, parts):  # a process that was profiled once starts kernels more slowly ever after
    for m in MODELS:
        try:
            rows.setdefault(m, {})[work] = work(prepare(*m))
        except torch.OutOfMemoryError:
            print(f"{m}: not enough memory", file=sys.stderr)
        torch.cuda.empty_cache()
NAMES = ("family", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "batch", "seq")
for m, row in rows.items():
    if len(row) == 2:
        print(json.dumps({**dict(zip(NAMES, m)), "step_us": row[timed], **row[parts]}), flush=True)
print(json.dumps({"software": f"PyTorch {torch.__version__}, transformers {transformers.__version__}"}), flush=True)
