package doctor

import (
	"slices"
	"strings"
	"testing"
)

// Faults that are met less often: the cause is among the first two findings.
func TestMoreFaults(t *testing.T) {
	const warn = "h1:7:9 [0] x.cc:1 NCCL WARN "
	const header = "# nThread 1 nGpus 2 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20\n"
	for _, c := range []struct{ text, want string }{
		{"h1: Test CUDA failure common.cu:1 'invalid device ordinal'", "device-ordinal"},
		{warn + "Cuda failure 209 'no kernel image is available for execution on the device'", "unsupported-gpu"},
		{warn + "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'", "driver-mix"},
		{warn + "failed to open CUDA IPC handle : 201 invalid device context", "cuda-ipc"},
		{warn + "Cuda failure 205 'mapping of buffer object failed'", "bar1"},
		{warn + "Cuda failure 1 'operation not permitted' in cuMemCreate failed", "cumem"},
		{warn + "Socket creation failed : Address family not supported by protocol", "address-family"},
		{"[ 9.1] neighbour: arp_cache: neighbor table overflow!", "arp-table"},
		{warn + "Call to bind failed : Cannot assign requested address", "ports-exhausted"},
		{"RuntimeError: can't start new thread", "thread-limit"},
		{"        HW Thermal Slowdown               : Active", "gpu-throttled"},
		{
			warn + "NET/IB: Got completion from peer 10.0.0.2<400> with status=5 opcode=0 len=0 vendor err 244 (Recv)",
			"flushed-work",
		},
		{header + "# Using devices\n" + header + "# Using devices\n", "single-rank"},
		{
			"mpirun -np 2 -H a,b ./all_reduce_perf -g 1\n# Avg bus bandwidth    : 4.1\n# Avg bus bandwidth    : 4.2",
			"single-rank",
		},
		{"two hosts hang at the start of a job\nNCCL_SOCKET_IFNAME=lo", "loopback-interface"},
		{"two hosts hang at the start of a job\nNCCL_SOCKET_IFNAME=^docker", "wrong-interface"},
		{"modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument", "gdr-off"},
		{"Failed to create a completion queue (CQ) for device mlx5_0", "memlock"},
		{"one rank is always slower than the others and all wait", "straggler"},
		{"training on two hosts is slow over a 10 Gb/s network", "slow-network"},
		{"jobs crash on two hosts\nit works with NCCL_IB_GID_INDEX=3", "gid-index"},
		{"jobs crash on one host\nNCCL_NVLS_ENABLE=0 (workaround)", "nvls-failed"},
		{"all-reduce is slow until NCCL_TOPO_FILE is set", "vm-topology"},
		{"all-reduce is slow across racks\nNCCL_IB_ADAPTIVE_ROUTING=1 improves it", "fabric"},
		{warn + "Call to ibv_create_cq failed with error Operation not permitted", "memlock"},
		{"two jobs on two hosts crash, only ports 20000 to 21000 are open", "connect-failed"},
		{"one port carries half, with both HCAs it is 160 Gb/s", "single-nic"},
	} {
		r := examine(t, c.text)
		if i := slices.Index(ids(r), c.want); i < 0 || i > 1 {
			t.Errorf("%q: %v, want %s among the first two", c.text, ids(r), c.want)
		}
	}
}

// What looks like the faults above and is none.
func TestMoreHealthy(t *testing.T) {
	healthy(t,
		"h1:7:9 [0] proxy.cc:1 NCCL WARN [Service thread] Accept failed Resource temporarily unavailable",
		"[W socket.cpp:1] [c10d] The client socket cannot be initialized to connect to [::ffff:10.0.0.1]:29500 (errno: 97 "+
			"- Address family not supported by protocol).",
		"        SW Power Cap                      : Active",
		"# nThread 1 nGpus 1 minBytes 64 maxBytes 64 step: 2(factor)\n# Using devices\n# nThread 1 nGpus 1 minBytes 128 "+
			"maxBytes 128 step: 2(factor)\n# Using devices",
		"#   Rank  0 Pid 1 on h1 device 0 [0x01] GPU\n#   Rank  1 Pid 2 on h2 device 0 [0x01] GPU\n#   Rank  0 Pid 5 on h2 "+
			"device 0 [0x01] GPU\n#   Rank  1 Pid 6 on h1 device 0 [0x01] GPU",
		"NCCL_SOCKET_IFNAME=^docker",
	)
}

// A setting that is told not to help speaks for nothing.
func TestRemedyDenied(t *testing.T) {
	r := examine(t, "two hosts crash\nit does not work with NCCL_IB_GID_INDEX=3")
	for _, f := range r.Findings {
		if f.ID == "gid-index" && f.Confidence > 0.6 {
			t.Errorf("gid-index is %.2f sure", f.Confidence)
		}
	}
}

// A kernel's log without a fault is judged: it is not "nothing examined".
func TestKernelInOrder(t *testing.T) {
	r := examine(t, "[    5.900000] nvidia: loading driver\n[    6.100000] nvidia-nvlink: core is being initialized\n")
	if !r.Healthy ||
		!slices.ContainsFunc(r.Judged, func(s string) bool { return strings.HasPrefix(s, "the kernel's log") }) {
		t.Errorf("%+v", r)
	}
}
