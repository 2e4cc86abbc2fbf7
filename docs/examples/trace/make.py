# Makes rank0.json and rank1.json: ten steps of two ranks in data parallelism, as PyTorch's profiler writes them. Rank 1
# computes 4 ms longer in every step, so that rank 0 waits for it in the last all-reduce. Times in µs.
import json

for rank, more in ((0, 0), (1, 4000)):
    events, t = [], 1_000_000
    for step in range(10):
        begin, seq = t, step * 3
        for kernel in range(10):
            dur = 1000 + (more if kernel == 4 else 0)
            events.append(dict(ph="X", cat="kernel", name="ampere_bf16_s16816gemm", pid=0, tid=7, ts=t, dur=dur, args=dict(device=0, stream=7)))
            t += dur
        end, free = begin + 14120, 0  # the last bucket follows the later rank's last kernel
        for bucket, ready in enumerate((7000, 9000, 10000)):
            start, stop = max(begin + ready + more, free), begin + ready + 4000 + 120
            free = stop
            events.append(dict(ph="X", cat="kernel", name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", pid=0, tid=20, ts=start,
                               dur=stop - start, args={"device": 0, "stream": 20, "Collective name": "allreduce", "In msg nelems": 13107200, "Out msg nelems": 13107200,
                                                       "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg",
                                                       "Process Group Ranks": "[0, 1]", "Seq": seq + bucket}))
        events.append(dict(ph="X", cat="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)", pid=0, tid=7, ts=end, dur=200, args=dict(device=0, stream=7)))
        events.append(dict(ph="X", cat="gpu_user_annotation", name=f"ProfilerStep#{step}", pid=0, tid=7, ts=begin, dur=end + 300 - begin))
        t = end + 300
    with open(f"rank{rank}.json", "w") as f:
        json.dump(dict(schemaVersion=1, deviceProperties=[dict(id=0, name="NVIDIA H100 80GB HBM3")],
                       distributedInfo=dict(backend="nccl", rank=rank, world_size=2, nccl_version="2.26.2"), traceEvents=events), f)
        f.write("\n")
