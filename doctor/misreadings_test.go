package doctor

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// Statements that were misread: what a sentence excludes, tried in vain or has in place is not blamed.
func TestStatementsAreRead(t *testing.T) {
	for text, never := range map[string]string{
		"training hangs. It is not P2P: NCCL_P2P_DISABLE=1 does not help":                              "p2p-hang",
		"training hangs. It is not P2P: NCCL_P2P_DISABLE=1 does not help either way":                   "p2p-off",
		"the job just hangs, no kernel panic or GPU fault before":                                      "gpu-fault",
		"vLLM hangs in the first request, hangs also with --disable-custom-all-reduce":                 "custom-allreduce",
		"torchrun fails, port 29500 is in use, changing ports is not helping":                          "port-taken",
		"all-reduce is slow on two nodes, lsmod shows nvidia_peermem":                                  "gdr-off",
		"the pod crashes in ibv_reg_mr, ulimit -l is unlimited":                                        "memlock",
		"two nodes time out, the firewall is off on both":                                              "connect-failed",
		"jobs crash; NVSwitch is there and the fabric manager is running":                              "fabric-manager",
		"collectives hang on 8 GPUs, ACS is disabled on all bridges, and iommu=pt is set":              "acs",
		"bus bandwidth is half, GPUDirect is on: all channels say GDRDMA, nvidia_peermem is installed": "gdr-off",
	} {
		if p := confidenceOf(say(t, text), never); p >= 0.3 {
			t.Errorf("%q: %s, %.0f%% sure", text, never, 100*p)
		}
	}
}

// What only says that something happened is never the answer.
func TestConsequencesAreTheQuestion(t *testing.T) {
	m, err := model()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"[rank7]:[E] Some NCCL operations have failed or timed out.",
		"torch.distributed.DistBackendError: NCCL error in: P.cpp:9, unhandled system error, NCCL version 2.90.1",
		"RuntimeError: NCCL error, ncclUnhandledCudaError: Call to CUDA function failed.",
		"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
		"NCCL version 2.90.1 compiled with CUDA 12.9\n\nJob summary\n===========\n\n  Nodes  Processes         GPUs  " +
			"Processes     GPUs\n(total)   per node  per process    (total)  (total)\n      2          8            1         " +
			"16       16\n\nCommunicators... (0.01s)\n=============\n\nGroup     Comms     Nodes     Ranks     Ranks     " +
			"Ranks    Status  Errors\n    #  in group  per comm  per node  per comm  in group\n    0         1         2      " +
			"   " +
			"8        16        16   RUNNING      OK\n\nErrors\n======\n\nWarnings\n========\n\n[rank7]:[E1116 10:00:01.1 " +
			"ProcessGroupNCCL.cpp:632] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, " +
			"OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600068 milliseconds before timing out.",
	} {
		r := examine(t, text)
		if len(r.Findings) == 0 || m.Consequence(r.Findings[0].ID) || !r.Wrong(finding.Warn) {
			t.Errorf("%q: %v", text, ids(r))
		}
	}
}

// A cause whose facts hold another's and one more comes before it.
func TestSpecificFirst(t *testing.T) {
	const info = "h1:7:9 [0] NCCL INFO "
	for text, want := range map[string]string{
		"h1:7:9 [4] net_ib.cc:99 NCCL WARN NET/IB : Got completion from peer 10.9.0.2<41> with status=12 opcode=0 len=0 " +
			"vendor err 129 (Recv) localGid fd00:9::22 remoteGidsfd00:9::1f": "bad-link", // nothing says link-local
		"ibv_reg_mr failed: /lib/libefa.so.1: version `EFA_1.4' not found (required by /opt/libfabric.so.1)": "efa-installer-old",
		"NVRM: Xid (PCI:0000:3b:00): 145, pid=1, NVLink fault":                                               "nvlink-fault",
		"NVRM: Xid (PCI:0000:3b:00): 137, pid=1, NVLink fault":                                               "nvlink-fault",
		"pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:3b:00.0\n" +
			"mlx5_core 0000:3b:00.0: mlx5_error_sw_reset: start": "bad-link",
		"torchrun --nnodes 2 --rdzv-endpoint=127.0.0.1:29500 train.py\nthe job on two nodes hangs at the start": "master-address",
		"[rank0]:[E] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, " +
			"NumelIn=1)\n" +
			"[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=BROADCAST, " +
			"NumelIn=1)": "collective-order",
	} {
		if r := examine(t, text); len(r.Findings) == 0 || r.Findings[0].ID != want {
			t.Errorf("%.60q: %v, want %s", text, ids(r), want)
		}
	}
	// A list without a device is none, and RDMA that is not there is no fallback.
	r := examine(t, info+"NET/IB : No device found.\n"+info+"NET/IB : Using [RO]; OOB eth0:10.0.0.1<0>\n"+
		info+"NET/Socket : Using [0]eth0:10.0.0.1<0>\n"+info+"Using network Socket\n")
	if finding.Serious(r.Findings) {
		t.Errorf("%v", ids(r))
	}
}

// The first question of all: fewer nodes are slower. Staging through host memory and the shared NIC are named, from a
// sentence and from a log without GPUDirect over one NIC.
func TestFewerNodesSlower(t *testing.T) {
	for _, text := range []string{
		"my 4 GPUs on 2 nodes are slower than 4 GPUs on 4 nodes", "four GPUs on two nodes are slower than four on four",
		"4 GPUs on 4 nodes are faster than 4 GPUs on 2 nodes", "2x2 is much slower than 4x1, how can that be?",
		"2 GPUs per node on two nodes: an epoch takes 600 s, 1 GPU per node on four nodes 200 s",
		"On two servers with two GPUs each the epoch took 15 minutes, on four servers with one GPU each 4 minutes.",
		"My training is slower on a 2-node, 2-GPU-per-node layout than on a 4-node, 1-GPU-per-node one.",
		"Two GPUs from each of two servers: 800 s. One from each of four servers: 250 s. Why?",
		"all-reduce gives 5 GB/s for 4 GPUs on 2 nodes and 20 GB/s for 4 on 4, I expected the opposite",
	} {
		r := say(t, text)
		if len(r.Findings) == 0 || r.Findings[0].ID != "gdr-off" || !strings.Contains(r.Findings[0].Title, "host memory") {
			t.Errorf("%q: %v", text, ids(r))
		}
	}
	if r := say(t, "4 GPUs on 4 nodes are slower than 4 GPUs on 2 nodes"); confidenceOf(r, "gdr-off") > 0.3 {
		t.Errorf("more nodes: %v", ids(r))
	}
	log := ""
	for i, host := range []string{"n1", "n2"} {
		pre := host + ":7:9 [0] NCCL INFO "
		log += pre + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n" + pre + "Channel 00/0 : " +
			[]string{"1[1] -> 2[0] [send] via NET/IB/0\n", "3[1] -> 0[0] [send] via NET/IB/0\n"}[i]
	}
	r := examine(t, log)
	i := slices.Index(ids(r), "gdr-off")
	if i < 0 || !strings.Contains(r.Findings[i].Title, "staged through host memory") || finding.Serious(r.Findings) {
		t.Errorf("%v", ids(r))
	}
	if r := examine(t, log+"the job is slow\n"); len(r.Findings) == 0 || r.Findings[0].ID != "gdr-off" {
		t.Errorf("with a complaint: %v", ids(r))
	}
}

// An answer is at most twelve lines, and names what confirms it.
func TestAnswersAreShort(t *testing.T) {
	for _, text := range []string{
		"training hangs", "two nodes are slow over RoCE and drop packets", "my 4 GPUs on 2 nodes are slower than 4 on 4",
		"h1:7:9 [0] x.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\nulimit -l prints 64\n",
	} {
		out := textOf(t, examine(t, text))
		if strings.Count(out, "\n") > answerLines {
			t.Errorf("%q: %d lines\n%s", text, strings.Count(out, "\n"), out)
		}
	}
}
