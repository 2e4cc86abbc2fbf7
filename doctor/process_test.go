package doctor

import (
	"slices"
	"testing"

	"busbar.dev/finding"
)

// Causes of which one line speaks, and that another line resembles.
func TestNearCauses(t *testing.T) {
	const warn = "w7:71:93 [2] misc/x.cc:5 NCCL WARN "
	const info = "w7:71:93 [2] NCCL INFO "
	for _, c := range []struct{ name, text, want string }{
		{"another network", "NCCL_COMM_ID=10.9.0.7:4711\n" + info + "Bootstrap : Using eth0:172.17.0.4<0>\n" + warn +
			"Net : No interface found in the same subnet as remote address 10.9.0.7<4711>\n" + warn +
			"Call to bind failed : Cannot assign requested address", "wrong-interface"},
		{"a size that nothing has", "w7:71:93 [2] net_socket.cc:5 NCCL WARN NET/Socket : peer 10.9.0.4<400> message " +
			"truncated : receiving 4096 bytes instead of 512\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate " +
			"more than 1EB memory", "collective-mismatch"},
		{
			"namespace", warn + "Call to ibv_modify_qp failed with error No such device\n'unhandled system error'",
			"netdev-absent",
		},
		{"legacy handles", "w7:71:93 [2] transport/p2p.cc:300 NCCL WARN Cuda failure 'invalid argument'", "cuda-ipc"},
		{"handles and two kinds of NICs", info + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB " +
			"eth0:10.9.0.4<0>\nw7:71:93 [2] transport/p2p.cc:300 NCCL WARN Cuda failure 'invalid device context'\n" + info +
			"transport/p2p.cc:325 -> 1", "cuda-ipc"},
		{"ended from outside", "W0102 03:04:05.678000 77 torch/distributed/elastic/agent/server/api.py:719] Received " +
			"Signals.SIGTERM death signal, shutting down workers\n", "restart-loop"},
		{
			"no room",
			"Warning  FailedScheduling  2m  default-scheduler  0/9 nodes are available: 9 Insufficient nvidia.com/gpu.\n",
			"device-plugin",
		},
		{
			"C++", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
			"job-failed:exited",
		},
		{"nvlink", "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "gpu-fault"},
		{"ecc", warn + "Cuda failure 214 'uncorrectable ECC error encountered'", "gpu-fault"},
		{"absent segment", warn + "Error while attaching to shared memory segment /dev/shm/nccl-Qx1 (size 4096), error: No " +
			"such file or directory (2)", "cumem"},
		{
			"virtual gpu", "two vGPUs of a virtual machine crash\n" + warn + "Cuda failure 801 'operation not supported'",
			"vgpu",
		},
		{"no peermem", "transport/ibrc.cpp:nvshmemt_init:7: neither nv_peer_mem, or nvidia_peermem detected. Skipping " +
			"transport.\nit fails on two nodes", "gdr-off"},
		{"two releases", "NCCL version 2.90.1+cuda99.0\nNCCL version 2.91.4+cuda99.0\nw7:71:93 [2] net_ib.cc:5 NCCL WARN " +
			"NET/IB : collective mismatch error local size 4096 remote 512", "version-mix"},
		{"xla", "E xla/nccl_utils.cc:9] Aborting communicator: 0x1 due to async NCCL error: remote process exited or there " +
			"was a network error", "dead-rank"},
		{"no nccl", "h1: RuntimeError: Distributed package doesn't have NCCL built in", "nccl-absent"},
		{"usage", "RuntimeError: NCCL error in: P.cpp:9, invalid usage, NCCL version 2.90.1\nncclInvalidUsage: This " +
			"usually reflects invalid usage of NCCL library", "duplicate-gpu"},
		{"misspelt", "export NCCL_IB_GID_INDX=3\nw7:71:93 [2] x.cc:5 NCCL WARN Call to ibv_modify_qp failed with error " +
			"Network is unreachable", "setting-misspelt"},
		{"ucx", "ib_mlx5_log.c:9  Local protection on mlx5_4:1/IB (synd 0x4 vend 0x51)\na ping-pong of GPU memory between " +
			"two nodes crashes", "acs"},
		{"store", "RuntimeError: connect() timed out.", "rendezvous"},
		{"opened in vain", "jobs in containers crash\n" + warn + "Call to ibv_open_device failed", "ib-device-unusable"},
	} {
		if r := examine(t, c.text); !slices.Contains(first(ids(r), 3), c.want) {
			t.Errorf("%s: %v, want %s among the first three", c.name, ids(r), c.want)
		}
	}
}

// Sockets where nothing tells of RDMA are not called a fallback.
func TestPlainSockets(t *testing.T) {
	r := examine(t, "training on two machines is slower than on one\nm1:1:1 [0] NCCL INFO Using network Socket\nm2:1:1 "+
		"[0] NCCL INFO Using network Socket")
	if len(r.Findings) == 0 || r.Findings[0].ID != "socket-fallback" ||
		r.Findings[0].Title != "Hosts communicate over TCP sockets" {
		t.Errorf("%+v", r.Findings)
	}
}

// Names that NCCL has, that others read and that are far from all are not misspelt;
// one that is, in a job of which nobody complains, is a note.
func TestMisspelt(t *testing.T) {
	for text, want := range map[string]string{
		"export NCCL_IB_TC=106": "", "export NCCL_OUR_OWN_KNOB=1": "", "export NCCL_TESTS_DEVICE=1": "",
		"export NCCL_SOCKET_IFNAMES=eth7": "setting-misspelt",
	} {
		r := examine(t, text)
		if got := ids(r); (len(got) > 0) != (want != "") || want != "" && (got[0] != want || finding.Serious(r.Findings)) {
			t.Errorf("%s: %v, want %q as a note", text, got, want)
		}
	}
}

// A watchdog that ends for an error of NCCL gave up no collective.
func TestNoTimeout(t *testing.T) {
	r := examine(t, "  what():  [PG 0 Rank 0] NCCL watchdog thread terminated with exception: NCCL error: internal "+
		"error\n")
	if slices.Contains(ids(r), "collective-timeout") {
		t.Errorf("%v", ids(r))
	}
}
