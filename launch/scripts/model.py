"""The model of a plan in plain PyTorch: a decoder with the dimensions and parts that plan.json has. Its parameters are as many as the
model's own, which is checked. Experts are computed together by PyTorch's grouped products (2.8 and newer, bfloat16, compute capability 9.0 and newer), else one after the other."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Dimensions:
    """What plan.json says of a model: dims, architecture and details, with what is usual where it says nothing."""

    def __init__(self, job):
        d, self.arch, self.details = job["dims"], job.get("architecture", {}), job.get("details", {})
        self.layers, self.hidden, self.heads, self.vocab = d["layers"], d["hidden"], d["heads"], d["vocab"]
        self.kv_heads = d.get("kv_heads") or self.heads
        self.ffn = d.get("ffn") or 4 * self.hidden
        self.head_dim = d.get("head_dim") or self.hidden // self.heads
        self.context = max(d.get("context") or 0, job["seq"])
        self.experts, self.top_k, self.dense = d.get("experts", 0), d.get("top_k", 0), d.get("dense_layers", 0)
        self.expert_ffn = d.get("expert_ffn") or self.ffn
        self.eps = self.details.get("norm_eps", 1e-5)
        self.recompute = job.get("recompute", "none")
        self.latent = self.arch.get("latent")
        self.turned = 0 if self.arch.get("positions", "rotary") != "rotary" else int(self.head_dim * (self.details.get("rotary_share") or 1.0)) // 2 * 2
        if self.latent:
            self.turned = self.latent["qk_rope_head_dim"]

    def norm(self, width=None):
        return (nn.RMSNorm if self.arch.get("rms_norm") else nn.LayerNorm)(width or self.hidden, eps=self.eps)

    def activation(self):
        return {"gelu": nn.GELU(approximate="tanh"), "relu": nn.ReLU(), "relu2": SquaredReLU()}.get(self.details.get("activation"), nn.SiLU())


class SquaredReLU(nn.Module):
    def forward(self, x):
        return F.relu(x).square()


def stretched(speed, scaling):
    """Rotary speeds as Llama 3.1 stretches them (llama3:FACTOR:ORIGINAL): slow ones by the factor, fast ones not, those between in part."""
    kind, *rest = (scaling or "").split(":")
    if kind != "llama3":
        return speed
    factor, original = float(rest[0]), float(rest[1])
    turns = original * speed / (2 * math.pi)
    part = ((turns - 1) / (4 - 1)).clamp(0, 1)
    return speed * (part + (1 - part) / factor)


def turns(x, tokens, width, base, scaling=""):
    """Cosines and sines by which tokens turn, once for all layers, in the type of products with x."""
    speed = stretched(base ** (-torch.arange(0, width, 2, device=x.device, dtype=torch.float32) / width), scaling)
    angle = torch.arange(tokens, device=x.device, dtype=torch.float32)[:, None] * speed
    return angle.cos().to(kind_of(x)), angle.sin().to(kind_of(x))


def kind_of(x):
    return torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype


def rotate(x, turn):
    """Turns the first part of every head by its position; x is batch, heads, tokens, width."""
    cos, sin = turn
    a, b, rest = x.split((cos.shape[-1], cos.shape[-1], x.shape[-1] - 2 * cos.shape[-1]), dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        bias, width = d.arch.get("qkv_bias", False), d.head_dim
        self.q = nn.Linear(d.hidden, d.heads * width, bias=bias)
        self.k = nn.Linear(d.hidden, d.kv_heads * width, bias=bias)
        self.v = nn.Linear(d.hidden, d.kv_heads * width, bias=bias)
        self.out = nn.Linear(d.heads * width, d.hidden, bias=d.arch.get("out_bias", False))
        self.norms = d.arch.get("qk_norm", 0)
        if self.norms:
            across = self.norms == 2
            self.q_norm, self.k_norm = nn.RMSNorm(d.heads * width if across else width, eps=d.eps), nn.RMSNorm(d.kv_heads * width if across else width, eps=d.eps)

    def forward(self, x, turn):
        d, (batch, tokens, _) = self.d, x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.norms == 2:
            q, k = self.q_norm(q), self.k_norm(k)
        # The number of heads is read off the width: tensor-parallel ranks have some of them.
        q, k, v = (t.view(batch, tokens, -1, d.head_dim).transpose(1, 2) for t in (q, k, v))
        if self.norms == 1:
            q, k = self.q_norm(q), self.k_norm(k)
        if turn:
            q, k = rotate(q, turn), rotate(k, turn)
        if k.shape[1] < q.shape[1]:
            k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
        o = checkpoint(attend, q, k, v, use_reentrant=False) if d.recompute == "selective" else attend(q, k, v)
        return self.out(o.transpose(1, 2).reshape(batch, tokens, -1))


class LatentAttention(nn.Module):
    """Multi-head latent attention (DeepSeek-V2, section 2.1)."""

    def __init__(self, d):
        super().__init__()
        self.d, n = d, d.latent
        self.q_rank, self.kv_rank, self.plain, self.value = n["q_lora_rank"], n["kv_lora_rank"], n["qk_nope_head_dim"], n["v_head_dim"]
        self.q_down, self.q_norm = nn.Linear(d.hidden, self.q_rank, bias=False), nn.RMSNorm(self.q_rank, eps=d.eps)
        self.q_up = nn.Linear(self.q_rank, d.heads * (self.plain + d.turned), bias=False)
        self.kv_down, self.kv_norm = nn.Linear(d.hidden, self.kv_rank + d.turned, bias=False), nn.RMSNorm(self.kv_rank, eps=d.eps)
        self.kv_up = nn.Linear(self.kv_rank, d.heads * (self.plain + self.value), bias=False)
        self.out = nn.Linear(d.heads * self.value, d.hidden, bias=False)

    def forward(self, x, turn):
        d, (batch, tokens, _) = self.d, x.shape
        q = self.q_up(self.q_norm(self.q_down(x))).view(batch, tokens, d.heads, -1).transpose(1, 2)
        q = torch.cat((q[..., : self.plain], rotate(q[..., self.plain :], turn)), dim=-1)
        down = self.kv_down(x)
        shared = rotate(down[..., self.kv_rank :].unsqueeze(1), turn).expand(-1, d.heads, -1, -1)
        up = self.kv_up(self.kv_norm(down[..., : self.kv_rank])).view(batch, tokens, d.heads, -1).transpose(1, 2)
        k = torch.cat((up[..., : self.plain], shared), dim=-1)
        return self.out(attend(q, k, up[..., self.plain :]).transpose(1, 2).reshape(batch, tokens, -1))


class MLP(nn.Module):
    def __init__(self, d, width, bias=False):
        super().__init__()
        self.gate = nn.Linear(d.hidden, width, bias=bias) if d.arch.get("gated") else None
        self.up, self.down, self.act = nn.Linear(d.hidden, width, bias=bias), nn.Linear(width, d.hidden, bias=bias), d.activation()

    def forward(self, x):
        return self.down(self.act(self.gate(x)) * self.up(x) if self.gate is not None else self.act(self.up(x)))


def grouped_product(x, kind):
    """PyTorch's product of groups of rows, each with a weight of its own; None where it has none for x."""
    if kind != torch.bfloat16 or not x.is_cuda or torch.version.hip or torch.cuda.get_device_capability(x.device) < (9, 0):
        return None
    return getattr(F, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)


class Experts(nn.Module):
    """A choice of MLPs for every token, beside one that all tokens pass. Weights of all experts are one parameter: experts, outputs, inputs."""

    def __init__(self, d):
        super().__init__()
        self.d, self.act = d, d.activation()
        self.router = nn.Linear(d.hidden, d.experts, bias=False)
        wide = (d.experts, d.expert_ffn, d.hidden)
        self.gate = nn.Parameter(torch.randn(wide) * 0.02) if d.arch.get("gated") else None
        self.up, self.down = nn.Parameter(torch.randn(wide) * 0.02), nn.Parameter(torch.randn(d.experts, d.hidden, d.expert_ffn) * 0.02)
        self.shared = MLP(d, d.arch["shared_ffn"]) if d.arch.get("shared_ffn") else None
        if d.arch.get("router_bias"):
            self.balance = nn.Parameter(torch.zeros(d.experts), requires_grad=False)  # moved by who balances, not by gradients

    def forward(self, x):
        d = self.d
        flat = x.reshape(-1, x.shape[-1])
        scores = self.router(flat).float()
        scores = scores.sigmoid() if d.details.get("router_score") == "sigmoid" else scores.softmax(dim=-1)
        chosen = scores + self.balance if hasattr(self, "balance") else scores
        index = chosen.topk(d.top_k, dim=-1).indices
        weight = scores.gather(-1, index)
        if d.details.get("router_norm"):
            weight = weight / weight.sum(dim=-1, keepdim=True)
        weight = weight * (d.details.get("router_scale") or 1.0)
        # What is chosen, in the order of experts; ends[i] is where expert i's rows end.
        expert, order = index.flatten().sort(stable=True)
        token = order // d.top_k
        ends = torch.searchsorted(expert, torch.arange(d.experts, device=x.device), right=True)
        kind = kind_of(x)
        rows, product = flat[token].to(kind), grouped_product(x, kind) if d.hidden % 8 == d.expert_ffn % 8 == 0 else None
        y = self.together(rows, expert, ends, product) if product else self.in_turn(rows, ends)
        out = torch.zeros_like(flat).index_add(0, token, (y * weight.flatten()[order, None].to(y.dtype)).to(x.dtype)).view_as(x)
        return out + self.shared(x) if self.shared is not None else out

    def together(self, rows, expert, ends, product):
        """All experts by grouped products. Groups begin at multiples of eight rows, as the gradients of weights want; nothing waits for the GPU."""
        counts = ends.diff(prepend=ends.new_zeros(1))
        padded = (counts + 7) // 8 * 8
        stops = padded.cumsum(0)
        place = torch.arange(len(rows), device=rows.device) + (stops - padded - (ends - counts))[expert]
        x = rows.new_zeros(len(rows) + 8 * self.d.experts, rows.shape[1]).index_copy(0, place, rows)
        stops = stops.to(torch.int32)

        def times(x, weight):
            return product(x, weight.to(x.dtype).transpose(-2, -1), offs=stops)

        h = self.act(times(x, self.gate)) * times(x, self.up) if self.gate is not None else self.act(times(x, self.up))
        return times(h, self.down)[place]

    @torch.compiler.disable
    def in_turn(self, rows, ends):
        """One expert after the other: right everywhere, and slower."""
        sizes = ends.diff(prepend=ends.new_zeros(1)).tolist()
        gates = self.gate.unbind() if self.gate is not None else [None] * len(sizes)
        out = []
        for x, gate, up, down in zip(rows.split(sizes), gates, self.up.unbind(), self.down.unbind()):
            h = self.act(F.linear(x, gate)) * F.linear(x, up) if gate is not None else self.act(F.linear(x, up))
            out.append(F.linear(h, down))
        return torch.cat(out)


class Layer(nn.Module):
    def __init__(self, d, number):
        super().__init__()
        self.norm_1, self.norm_2 = d.norm(), d.norm()
        self.attention = LatentAttention(d) if d.latent else Attention(d)
        self.mlp = Experts(d) if d.experts and number >= d.dense else MLP(d, d.ffn, bias=d.arch.get("mlp_bias", False))

    def forward(self, x, turn):
        x = x + self.attention(self.norm_1(x), turn)
        return x + self.mlp(self.norm_2(x))


class Model(nn.Module):
    def __init__(self, job):
        super().__init__()
        self.d = d = Dimensions(job)
        if d.arch.get("kind", "decoder") != "decoder" or d.arch.get("odd"):
            raise SystemExit("this file has decoders; %s is none, or has %s: give your own model to train.py" % (job["model"], d.arch.get("odd")))
        self.embed = nn.Embedding(d.vocab, d.hidden)
        self.positions = nn.Embedding(d.context, d.hidden) if d.arch.get("positions") == "learned" else None
        self.layers = nn.ModuleList(Layer(d, i) for i in range(d.layers))
        self.norm = d.norm()
        self.head = nn.Linear(d.hidden, d.vocab, bias=False)
        if d.arch.get("tied"):
            self.head.weight = self.embed.weight

    def initialize(self):
        """Weights of GPT-2: small, and smaller where their sums pile up."""
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, (nn.RMSNorm, nn.LayerNorm)):
                module.reset_parameters()
            elif isinstance(module, Experts):
                for weight in (module.gate, module.up, module.down):
                    if weight is not None:
                        nn.init.normal_(weight, std=0.02)
                if hasattr(module, "balance"):
                    nn.init.zeros_(module.balance)
        for layer in self.layers:
            nn.init.normal_(layer.attention.out.weight, std=0.02 / math.sqrt(2 * len(self.layers)))

    def forward(self, tokens, labels=None):
        x = self.embed(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        turn = self.d.turned and turns(x, tokens.shape[1], self.d.turned, self.d.details.get("rotary_base") or 10000.0, self.d.details.get("rope_scaling"))
        for layer in self.layers:
            x = checkpoint(layer, x, turn, use_reentrant=False) if self.d.recompute == "full" and self.training else layer(x, turn)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
