#!/usr/bin/env python3
"""Measures one GPU for busbar's model of a training step.

Writes one JSON document with matrix products, attention, streams of memory and
whole steps (forward, backward, optimizer), each as medians of CUDA events:

    python3 onegpu.py > gpu.json              # all of it, about six minutes on an H200
    python3 onegpu.py --only steps > s.json   # products, attention, streams, steps, compiled

Needs PyTorch and, for steps, transformers; nothing is downloaded: models are
made from their dimensions with random weights. What does not fit in memory, or
what a release of PyTorch lacks, is left out with its reason.
"""
import argparse
import datetime
import json
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # --from needs neither
    torch = None

WARM, RUNS = 3, 7


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def timed(work, runs=RUNS, warm=WARM, repeat=1):
    """The median time of work in ms; work runs repeat times between two events."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        torch.cuda._sleep(4_000_000)  # some ms of the GPU, so that the host is ahead and its starts do not count
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        for _ in range(repeat):
            work()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) / repeat)
    return median(times)


def left_out(rows, what, error):
    rows.append({**what, "left_out": str(error).splitlines()[0][:160]})
    torch.cuda.empty_cache()


SHAPES = [  # m, n, k: the products of common models' layers, and round ones
    (512, 1280, 1280), (1024, 3072, 768), (2048, 2048, 2048), (4096, 1280, 1280), (8192, 3840, 1280), (8192, 5120, 1280), (8192, 1280, 5120),
    (4096, 4096, 4096), (2048, 12288, 4096), (4096, 22016, 4096), (4096, 4096, 11008), (8192, 8192, 8192), (16384, 8192, 8192),
    (2048, 6144, 12288), (2048, 12288, 6144), (2048, 1024, 8192), (2048, 3584, 8192), (8192, 3584, 8192), (1280, 5120, 8192),
    (4096, 50257, 1280), (8192, 50304, 1280), (4096, 32000, 4096), (4096, 128256, 4096), (128, 4096, 4096), (256, 14336, 4096),
    (8192, 50257, 1280), (8192, 50258, 1280), (8192, 50260, 1280), (8192, 50264, 1280), (4096, 4097, 4096), (4096, 4098, 4096), (4096, 4100, 4096), (4096, 4104, 4096),
    (4096, 1280, 50257), (4096, 1280, 50258), (1280, 50257, 4096),  # rows that are no multiple of 16 bytes, as vocabularies often are
]


def products():
    rows = []
    for dtype in (torch.bfloat16, torch.float32):
        for m, n, k in SHAPES if dtype == torch.bfloat16 else SHAPES[2:9:3]:
            x = torch.randn(m, k, device="cuda", dtype=dtype)
            w = torch.randn(n, k, device="cuda", dtype=dtype)
            ms = timed(lambda: F.linear(x, w), repeat=5)
            rows.append({"m": m, "n": n, "k": k, "dtype": str(dtype)[6:], "us": ms * 1e3, "tflops": 2 * m * n * k / ms / 1e9})
    one = torch.tensor(1.0, device="cuda")
    for m, n, k in [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 22016, 4096), (8192, 5120, 1280)]:
        what = {"m": m, "n": n, "k": k, "dtype": "float8_e4m3"}
        try:
            x = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
            w = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
            ms = timed(lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16), repeat=5)
            rows.append({**what, "us": ms * 1e3, "tflops": 2 * m * n * k / ms / 1e9})
        except Exception as e:  # an older PyTorch
            left_out(rows, what, e)
    return rows


def attention():
    rows = []
    for batch, heads, seq, size in [(8, 20, 1024, 64), (1, 20, 1024, 64), (16, 12, 1024, 64), (8, 32, 2048, 64), (2, 32, 2048, 128), (1, 32, 4096, 128), (1, 32, 8192, 128), (1, 8, 32768, 128), (2, 96, 2048, 128), (2, 12, 2048, 128), (4, 32, 2048, 80), (4, 32, 2048, 96), (4, 32, 2048, 100), (4, 16, 2048, 160), (4, 16, 2048, 256), (32, 12, 512, 64), (64, 16, 128, 64)]:
        q, k, v = (torch.randn(batch, heads, seq, size, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        grad = torch.randn_like(out)
        fwd = timed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), repeat=3)
        bwd = timed(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), repeat=3)
        flops = 4 * batch * heads * seq * seq * size / 2  # half of the scores are masked
        rows.append({"batch": batch, "heads": heads, "seq": seq, "head_size": size, "causal": True, "dtype": "bfloat16",
                     "fwd_us": fwd * 1e3, "bwd_us": bwd * 1e3, "fwd_tflops": flops / fwd / 1e9, "bwd_tflops": 2.5 * flops / bwd / 1e9})
    return rows


def streams():
    rows = []

    def row(name, nbytes, work, repeat=3):
        ms = timed(work, repeat=repeat)
        rows.append({"name": name, "bytes": nbytes, "us": ms * 1e3, "TBps": nbytes / ms / 1e9})

    n = 1 << 30
    a, b = torch.empty(n, device="cuda", dtype=torch.uint8), torch.empty(n, device="cuda", dtype=torch.uint8)
    row("copy, read and written", 2 * n, lambda: b.copy_(a))
    x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
    y = torch.randn_like(x)
    w = torch.ones(4096, device="cuda", dtype=torch.bfloat16)
    row("layer_norm of 8192 x 4096", 2 * x.nbytes, lambda: F.layer_norm(x, (4096,), w, w))
    row("add of 8192 x 4096", 3 * x.nbytes, lambda: x + y)
    row("gelu of 8192 x 4096", 2 * x.nbytes, lambda: F.gelu(x, approximate="tanh"))
    row("cast of 8192 x 4096 to float32", 3 * x.nbytes, lambda: x.float())
    s = torch.randn(4096, 50304, device="cuda", dtype=torch.float32, requires_grad=True)
    t = torch.randint(50304, (4096,), device="cuda")
    row("cross_entropy of 4096 x 50304 float32", s.nbytes, lambda: F.cross_entropy(s, t), repeat=1)
    p = [torch.nn.Parameter(torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)) for _ in range(32)]
    for q in p:
        q.grad = torch.randn_like(q)
    adam = torch.optim.AdamW(p, fused=True)
    row("AdamW of 537 M bfloat16 parameters, states bfloat16", 7 * sum(q.nbytes for q in p), adam.step)
    host = torch.empty(n, dtype=torch.uint8, pin_memory=True)
    row("host to GPU, pinned", n, lambda: a.copy_(host, non_blocking=True), repeat=1)
    row("GPU to host, pinned", n, lambda: host.copy_(a, non_blocking=True), repeat=1)
    return rows


GPT2 = {"gpt2-small": (12, 12, 768), "gpt2-medium": (24, 16, 1024), "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600), "gpt3-2.7b": (32, 32, 2560)}
LLAMA = {"llama-160m": (12, 12, 12, 768, 2048, 32000), "llama-1.1b": (22, 32, 4, 2048, 5632, 32000), "llama-3b": (26, 32, 32, 3200, 8640, 32000), "llama-7b": (32, 32, 32, 4096, 11008, 32000), "llama3-1b": (16, 32, 8, 2048, 8192, 128256), "llama3-8b": (32, 32, 8, 4096, 14336, 128256)}


def build(name, seq):
    if name in GPT2:
        from transformers import GPT2Config, GPT2LMHeadModel
        layers, heads, hidden = GPT2[name]
        c = GPT2Config(n_layer=layers, n_head=heads, n_embd=hidden, n_positions=max(seq, 1024))
        return GPT2LMHeadModel(c), {"layers": layers, "heads": heads, "hidden": hidden, "vocab": 50257}
    from transformers import LlamaConfig, LlamaForCausalLM
    layers, heads, kv, hidden, ffn, vocab = LLAMA[name]
    c = LlamaConfig(num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, hidden_size=hidden, intermediate_size=ffn, vocab_size=vocab, max_position_embeddings=max(seq, 2048))
    return LlamaForCausalLM(c), {"layers": layers, "heads": heads, "kv_heads": kv, "hidden": hidden, "ffn": ffn, "vocab": vocab}


STEPS = [  # model, batch, seq, amp, checkpointed
    ("gpt2-small", 4, 1024, True, False), ("gpt2-small", 32, 512, False, False), ("gpt2-small", 16, 1024, True, False),
    ("gpt2-medium", 8, 1024, True, False), ("gpt2-medium", 8, 1024, False, False), ("gpt2-medium", 16, 512, False, False),
    ("gpt2-large", 4, 1024, True, False), ("gpt2-large", 4, 1024, False, False), ("gpt2-large", 16, 1024, True, False), ("gpt2-large", 8, 1024, True, True),
    ("gpt2-xl", 4, 1024, True, False), ("gpt2-xl", 8, 1024, False, False), ("gpt2-xl", 8, 1024, False, True), ("gpt3-2.7b", 4, 2048, False, False),
    ("llama-160m", 32, 1024, False, False), ("llama-1.1b", 4, 2048, False, False), ("llama-1.1b", 4, 2048, True, False), ("llama-1.1b", 2, 4096, False, False), ("llama-1.1b", 8, 2048, False, True),
    ("llama-3b", 4, 2048, False, False), ("llama-7b", 1, 4096, False, False), ("llama-7b", 4, 2048, False, True), ("llama3-1b", 4, 4096, False, False), ("llama3-8b", 1, 4096, False, False), ("llama3-8b", 1, 8192, False, True),
]
COMPILED = [("gpt2-large", 8, 1024, False, False), ("gpt2-large", 8, 1024, True, False), ("llama-1.1b", 8, 2048, False, False), ("llama-7b", 2, 2048, False, False)]


def step(name, batch, seq, amp, ckpt, compiled=False):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32 if amp else torch.bfloat16)
    with torch.device("cuda"):
        model, arch = build(name, seq)
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    if ckpt:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    params = sum(p.numel() for p in model.parameters())
    run = torch.compile(model) if compiled else model
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    words = torch.randint(0, 32000, (batch, seq), device="cuda")
    torch.cuda.reset_peak_memory_stats()
    parts = []
    for i in range(3 + 5):
        e = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        e[0].record()
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = run(input_ids=words, labels=words).loss
        e[1].record()
        loss.backward()
        e[2].record()
        adam.step()
        adam.zero_grad(set_to_none=True)
        e[3].record()
        torch.cuda.synchronize()
        if i >= 3:
            parts.append([e[k].elapsed_time(e[k + 1]) for k in range(3)] + [e[0].elapsed_time(e[3])])
    fwd, bwd, opt, whole = (median(x) for x in zip(*parts))
    return {"model": name, "params": params, "batch": batch, "seq": seq, "amp": amp, "ckpt": ckpt, "compiled": compiled,
            "fwd_ms": fwd, "bwd_ms": bwd, "opt_ms": opt, "step_ms": whole, "peak_GB": torch.cuda.max_memory_allocated() / 1e9, "arch": arch}


def steps(configs, compiled=False):
    rows = []
    for c in configs:
        began = time.time()
        try:
            rows.append(step(*c, compiled=compiled))
        except Exception as e:
            left_out(rows, {"model": c[0], "batch": c[1], "seq": c[2], "amp": c[3], "ckpt": c[4], "compiled": compiled}, e)
        torch.cuda.empty_cache()
        if compiled:
            torch._dynamo.reset()
        print(f"{c}: {rows[-1].get('step_ms', rows[-1].get('left_out'))} ({time.time() - began:.0f} s)", file=sys.stderr)
    return rows


def line(r, gpu, source):
    """A step as a line that tools/fit reads."""
    a = r["arch"]
    name = "gpt" if "kv_heads" not in a else "llama"
    return {"id": "-".join(str(x) for x in (r["model"], r["batch"], r["seq"], "amp" if r["amp"] else "bf16", "again" if r["ckpt"] else "kept", "compiled" if r["compiled"] else "eager")),
            "source": source, "cluster": "one " + gpu, "hw_class": "one GPU", "grade": "A", "framework": "compiled" if r["compiled"] else "eager",
            "model": {"name": name, "params": r["params"], "layers": a["layers"], "hidden": a["hidden"], "ffn": a.get("ffn", 4 * a["hidden"]), "heads": a["heads"], "kv_heads": a.get("kv_heads"), "seq": r["seq"], "vocab": a["vocab"]},
            "hardware": {"gpu": gpu.removeprefix("NVIDIA "), "gpus": 1, "nodes": 1, "gpus_per_node": 1},
            "parallel": {"dp": 1, "tp": 1, "pp": 1, "micro_batch": r["batch"], "global_batch": r["batch"], "recompute": "full" if r["ckpt"] else "none", "precision": "amp_bf16" if r["amp"] else "bf16"},
            "measured": {"step_time_s": r["step_ms"] / 1e3, "peak_memory_GB": r["peak_GB"]}}


def write_runs(doc, path):
    source = f"step/measure/onegpu.py, {doc['meta']['date']}, {doc['meta']['software']}"
    with open(path, "w") as f:
        for r in doc.get("steps", []) + doc.get("compiled", []):
            if "step_ms" in r:
                f.write(json.dumps(line(r, doc["meta"]["gpu"], source)) + "\n")


def main():
    parts = {"products": products, "attention": attention, "streams": streams, "steps": lambda: steps(STEPS), "compiled": lambda: steps(COMPILED, True)}
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    args.add_argument("--runs", help="write the steps to this file too, one a line, for tools/fit")
    args.add_argument("--from", dest="earlier", help="take this document instead of measuring")
    chosen = args.parse_args()
    only = chosen.only
    if chosen.earlier:
        with open(chosen.earlier) as f:
            write_runs(json.load(f), chosen.runs)
        return
    gpu = torch.cuda.get_device_properties(0)
    software = "torch " + torch.__version__
    try:
        import transformers
        software += ", transformers " + transformers.__version__
    except ImportError:
        pass
    doc = {"meta": {"date": datetime.date.today().isoformat(), "gpu": gpu.name, "cores": gpu.multi_processor_count, "memory_bytes": gpu.total_memory, "software": software,
                    "method": f"medians of {RUNS} (steps: 5 after 3) between CUDA events; steps: SDPA attention, fused AdamW, labels given so that the loss is in forward; amp: float32 weights with bfloat16 autocast; peak_GB: max_memory_allocated / 1e9"}}
    for name in only:
        began = time.time()
        doc[name] = parts[name]()
        torch.cuda.empty_cache()
        print(f"{name}: {time.time() - began:.0f} s", file=sys.stderr)
    json.dump(doc, sys.stdout, indent=1)
    print()
    if chosen.runs:
        write_runs(doc, chosen.runs)


if __name__ == "__main__":
    main()
