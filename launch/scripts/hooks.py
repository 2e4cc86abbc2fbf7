"""How gradients travel among replicas under DDP: communication hooks by name.

rack sums in three steps: inside a rack by reduce-scatter, among racks by all-reduce of a share, inside a rack by all-gather. Every gradient is summed
once over all ranks and divided by their number once. The two-phase code that goes around (an all-reduce inside the rack by every rank, then an
all-reduce over all ranks of those sums) counts every gradient as often as a rack has ranks."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

_GROUPS = {}


def rack_groups(size):
    """This rank's group inside its rack, and that of its place among racks; all ranks make all groups, in one order."""
    world, rank = dist.get_world_size(), dist.get_rank()
    if size < 1 or world % size:
        raise SystemExit("racks of %d ranks; expected a number that divides the %d ranks" % (size, world))
    if size not in _GROUPS:
        inside = [dist.new_group(list(range(a, a + size))) for a in range(0, world, size)]
        across = [dist.new_group(list(range(a, world, size))) for a in range(size)]
        _GROUPS[size] = inside[rank // size], across[rank % size]
    return _GROUPS[size]


def rack_sum(tensor, size, wire=None):
    """Averages a flat tensor over all ranks in place, by racks of that many ranks."""
    inside, across = rack_groups(size)
    flat = tensor if wire is None else tensor.to(wire)
    pad = -flat.numel() % size
    if pad:
        flat = torch.nn.functional.pad(flat, (0, pad))
    share = torch.empty(flat.numel() // size, dtype=flat.dtype, device=flat.device)
    if dist.get_backend() == "gloo":  # which has no reduce-scatter
        dist.all_reduce(flat, group=inside)
        share.copy_(flat.view(size, -1)[dist.get_rank(inside)])
    else:
        dist.reduce_scatter_tensor(share, flat, group=inside)
    dist.all_reduce(share, group=across)
    share /= dist.get_world_size()
    whole = torch.empty_like(flat)
    dist.all_gather_into_tensor(whole, share, group=inside)
    tensor.copy_(whole[: tensor.numel()])
    return tensor


def rack_hook(size, bucket):
    future = torch.futures.Future()
    future.set_result(rack_sum(bucket.buffer(), size))
    return future


def install(ddp, name, rack=0):
    """Gives a DDP model the hook of a name."""
    if name in ("", "none"):
        return
    if name == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "bf16":
        ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
    elif name == "powersgd":
        state = powerSGD_hook.PowerSGDState(process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=1000, use_error_feedback=True, warm_start=True)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name == "rack":
        rack_groups(rack)
        ddp.register_comm_hook(rack, rack_hook)
    else:
        raise SystemExit("hook %r; expected none, fp16, bf16, powersgd or rack" % name)
