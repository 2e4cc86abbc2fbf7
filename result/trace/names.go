package trace

import (
	"slices"
	"strings"

	"busbar.dev/coll"
)

// operations are the words for a collective in the names of kernels and in what PyTorch calls them, the longer before
// what it contains.
var operations = []struct {
	word string
	kind coll.Kind
}{
	{"allreduce", coll.AllReduce},
	{"reducescatter", coll.ReduceScatter},
	{"allgather", coll.AllGather},
	{"alltoall", coll.AllToAll},
	{"broadcast", coll.Broadcast},
	{"sendrecv", coll.SendRecv},
	{"barrier", coll.Barrier},
	{"scatter", coll.Scatter},
	{"gather", coll.Gather},
	{"reduce", coll.Reduce},
}

// Operation is the collective that a word names: ncclDevKernel_AllReduce_Sum_bf16_RING_LL, _allgather_base,
// reduce_scatter, the file all-reduce.txt.
func Operation(word string) coll.Kind {
	word = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(word))
	for _, o := range operations {
		if strings.Contains(word, o.word) {
			return o.kind
		}
	}
	return coll.None
}

// SlowMatmul reports the kernel of a matrix product in 32 bits on a GPU that could compute it in TF32, by the names of
// cuBLAS and CUTLASS.
func SlowMatmul(name string) bool {
	return strings.HasPrefix(name, "ampere_sgemm_") || strings.Contains(name, "_simt_sgemm_") ||
		strings.HasPrefix(name, "sm80_xmma_gemm_f32f32_f32f32_f32") ||
		strings.HasPrefix(name, "sm90_xmma_gemm_f32f32_f32f32_f32")
}

// exchanges are kernels that move data between GPUs without NCCL: DeepEP's, vLLM's and TensorRT-LLM's all-reduce,
// NVSHMEM's.
var exchanges = []string{
	"deep_ep::", "cross_device_reduce", "userbuffers", "nvshmem", "multimem_all_reduce", "two_shot_all_reduce",
	"one_shot_all_reduce", "ncclsym",
}

// FromKernel is the call of a kernel, as far as its name tells, and whether it is one.
func FromKernel(name string) (Call, bool) {
	lower := strings.ToLower(name)
	nccl := strings.HasPrefix(lower, "nccl") || strings.HasPrefix(lower, "rccl") ||
		strings.Contains(lower, "nccldevkernel") || strings.Contains(lower, "ncclkernel")
	if !nccl && !slices.ContainsFunc(exchanges, func(x string) bool { return strings.Contains(lower, x) }) {
		return Call{}, false
	}
	head, _, _ := strings.Cut(lower, "(")
	c := Call{Op: Operation(head), P2P: strings.Contains(head, "sendrecv")}
	// NCCL compiles few kernels and names each for one of the cases that it serves: _RING_LL stands for all protocols and
	// for NVLS too. Only a tree's is a tree's.
	if strings.Contains(head, "_tree_") {
		c.Algo = "tree"
	}
	return c, true
}
