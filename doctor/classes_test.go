package doctor

import (
	"slices"
	"testing"
)

// Every class of fault that the source documents name is found from a text that
// tells of it, among the first two findings.
func TestClasses(t *testing.T) {
	const warn = "n1:1:1 [0] x.cc:1 NCCL WARN "
	for _, c := range []struct{ want, text string }{
		{"linear-growth", "All-reduce time scales linearly with world size"},
		{"straggler", "One node always completes faster than others"},
		{"pipeline-placement", "Pipeline training has huge idle bubbles, stages are on opposite sides of the spine"},
		{"cross-node-tp", "Tensor parallelism works poorly across nodes"},
		{"nic-shared", "2 nodes with 2 GPUs each share one NIC; 2x2 is four times slower than 4x1"},
		{"wrong-interface", "n1:1:1 [0] NCCL INFO Bootstrap : Using virbr0:192.168.122.1<0>\n" + warn +
			"socketStartConnect: Connect to 192.168.122.1<1> failed : Connection refused"},
		{"wrong-interface", "n1:1:1 [0] NCCL INFO Bootstrap : Using eth0:fe80::1%eth0<0>\n" + warn +
			"socketStartConnect: Connect to fe80::2%eth0<1> failed : No route to host"},
		{"wrong-interface", warn + "socketStartConnect: Connect to fe80::2%ib1<1> failed : Software caused connection abort"},
		{"wrong-interface", "#!/bin/bash\nexport NCCL_SOCKET_IFNAME=docker0\nsrun python train.py"},
		{"socket-fallback", "n1:1:1 [0] NCCL INFO NET/IB : No device found.\nn1:1:1 [0] NCCL INFO Using network Socket\n" +
			"n2:1:1 [0] NCCL INFO Using network Socket\nwe have InfiniBand but it is slow"},
		{"pcie-downgraded", "\tLnkSta:\tSpeed 8GT/s (downgraded), Width x4 (downgraded)"},
		{"fabric", "leaf switches are 4:1 oversubscribed, all-reduce across racks is slow"},
		{"other-traffic", "Checkpoints and logging traffic share the same network as NCCL, step time jitters"},
		{"ring-or-tree", "Ring is slower than Tree for our sizes on 4 nodes"},
		{"small-messages", "thousands of small messages of 4 KB, the network is nearly idle but training is slow"},
		{"quantity-expectation", "busbw is 355 GB/s, about 40% of the advertised 900 GB/s NVLink"},
		{"version-mix", warn + "Mismatched NCCL version detected : rank 0 version 22304 rank 1 version 22203"},
		{"channels-reduced", "NCCL_MAX_NCHANNELS=1\n8x H100 all-reduce is slow"},
		{"nvls-absent", "n1:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0"},
		{"out-of-memory", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"},
		{"port-taken", "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in " +
			"use)."},
		{"rendezvous", "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 15/16 clients " +
			"joined."},
		{"gpu-fault", "NVRM: Xid (PCI:0000:3b:00): 74, pid=1, NVLink: fatal error detected on link 6"},
		{"collective-mismatch", warn + "NET/IB : collective mismatch error, local size 32768 remote size 1048576"},
		{"bootstrap-mismatch", warn + "Bootstrap Root : mismatch in rank count from procs 16 : 8"},
		{"no-transport", warn + "No transport found for rank 0[1000] -> rank 1[2000]"},
		{"bad-algorithm", warn + "No algorithm/protocol available for function AllGather with datatype ncclFloat."},
		{"imex", warn + "MNNVL (cliqueSize 8) is available but not working on some nodes; check the IMEX configuration"},
		{"p2p-off", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - env:\n    - name: NCCL_P2P_DISABLE\n      value: " +
			"\"1\""},
	} {
		r := examine(t, c.text)
		if got := ids(r); !slices.Contains(first(got, 3), c.want) {
			t.Errorf("%.60q: %v, want %s", c.text, got, c.want)
		}
	}
}
