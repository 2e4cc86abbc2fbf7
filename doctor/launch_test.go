package doctor

import (
	"testing"

	"busbar.dev/finding"
)

// Faults of names, launchers, stores and subnets: the cause is the first finding.
func TestLaunchFaults(t *testing.T) {
	const warn = "w7:71:93 [2] x.cc:5 NCCL WARN "
	const info = "w7:71:93 [2] NCCL INFO "
	const watchdog = "[rank3]:[E101 10:00:00.1 ProcessGroupNCCL.cpp:1] [Rank 3] Watchdog caught collective operation " +
		"timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=900000) ran for 900010 " +
		"milliseconds before timing out.\n"
	for _, c := range []struct{ name, text, want string }{
		{"ssh knows no name", "ssh: Could not resolve hostname trainer-4.trainer: Name or service not known\nORTE was " +
			"unable to reliably start one or more daemons.", "name-unknown"},
		{"store knows no name", "[E socket.cpp:1] [c10d] The IPv4 network addresses of (trainer-0, 29400) cannot be " +
			"retrieved (gai error: -2 - Name or service not known).", "name-unknown"},
		{"keys", "trainer-2: Permission denied (publickey,password).\npdsh@trainer-0: trainer-2: ssh exited with exit code " +
			"255", "launcher-refused"},
		{"sshd", "ssh: connect to host trainer-2 port 2222: Connection refused", "launcher-refused"},
		{
			"srun step", "srun: error: Unable to create step for job 81: More processors requested than permitted",
			"slurm-step-resources",
		},
		{"sbatch account", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination " +
			"specified", "slurm-step-resources"},
		{"time limit", "slurmstepd: error: *** STEP 81.0 ON w7 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n" +
			watchdog, "restart-loop"},
		{"loopback store", "MASTER_ADDR=127.0.0.1\nthe job on 2 nodes hangs\n[E socket.cpp:1] [c10d] The client socket has " +
			"timed out after 60s while trying to connect to (127.0.0.1, 29400).", "master-address"},
		{
			"gloo at home", "[W ProcessGroupGloo.cpp:7] Warning: Unable to resolve hostname to a (local) address. Using the " +
				"loopback address as fallback.\nRuntimeError: Gloo connectFullMesh failed with [pair.cc:1] no error",
			"gloo-interface",
		},
		{"gloo mesh", "RuntimeError: Gloo connectFullMesh failed with [pair.cc:1] no error", "gloo-interface"},
		{"gloo to itself", "Gloo connectFullMesh failed: timed out connecting: SO_ERROR: Connection refused, " +
			"remote=[127.0.0.1]:4711", "gloo-interface"},
		{
			"ddp", "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
			"unused-parameters",
		},
		{
			"mesh", "pods hang at the start, with Istio on; without it they run\n" + info + "Bootstrap : Using eth0:10.9.0.4<0>",
			"service-mesh",
		},
		{"library", "ImportError: libtorch_cuda.so: undefined symbol: ncclCommShrink", "nccl-library"},
		{"topology", info + "NCCL_TOPO_FILE set by environment to /etc/topo/other.xml\n" + warn +
			"XML Import Channel : dev 6 not found.", "topology-file"},
		{"no family", info + "NCCL_SOCKET_IFNAME set by environment to bond7\n" + warn +
			"Net : connecting to address  with family 4711 is neither AF_INET(2) nor AF_INET6(10)", "no-interface"},
		{"memory refused", warn + "NET/IB : Got completion from peer 10.9.1.5<400> with status=10 opcode=0 len=0 vendor " +
			"err 136 (Send)", "memory-refused"},
		{"port", warn + "Call to ibv_modify_qp failed with error Invalid argument\nCA 'roce4'\n\tPort 1:\n\t\tState: Down\n" +
			"\t\tPhysical state: Disabled", "port-down"},
		{"peers of efa", info + "NET/OFI Selected Provider is efa\n" + warn + "NET/OFI Unable to insert remote address " +
			"into address vector for device 3. RC: -22\nncclInternalError: Internal check failed.", "libfabric"},
		{
			"fabric of nvlink", info + "MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x1 state 3 healthMask 0xa9",
			"nvlink-fault",
		},
		{"killed", "worker failed (exitcode: -9) local_rank: 5 (pid: 77) of binary: python\n[rank1]: ncclRemoteError: A " +
			"call failed possibly due to a network error", "rank-killed"},
		{
			"killed by the kernel", "worker failed (exitcode: -9) local_rank: 5\nOut of memory: Killed process 77 (python)",
			"host-memory",
		},
		{"crashed", "*** SIGSEGV received at time=1 on cpu 9 ***\n[rank1]: ncclRemoteError: A call failed possibly due to " +
			"a network error", "rank-crashed"},
		{"assert", "Loss.cu:77: nll_kernel: block: [0,0,0], thread: [9,0,0] Assertion `t >= 0 && t < n_classes` failed.\n" +
			watchdog, "kernel-assert"},
		{
			"retries end", info + "misc/socket.cc:505 -> 2 (Operation now in progress)\n" + info + "bootstrap.cc:275 -> 2",
			"connect-failed",
		},
		{
			"proxy", "ncclInternalError: Internal check failed.\nLast error:\nProxy Call to rank 3 failed (Connect)",
			"connect-failed",
		},
		{"balancing", "all-reduce is unstable on one node\n" + warn +
			"NUMA auto balancing enabled which can lead to variability in the RCCL performance!", "numa-balancing"},
		{
			"one host in a container", "#   Rank  0 Pid 5 on box device  0 [0x18] GPU\n#   Rank  1 Pid 5 on box device  1 " +
				"[0x3b] GPU\nbox: Test NCCL failure common.cu:1 'unhandled system error'\nIt runs in a docker container.",
			"shm-too-small",
		},
	} {
		if r := examine(t, c.text); len(r.Findings) == 0 || r.Findings[0].ID != c.want {
			t.Errorf("%s: %v, want %s first", c.name, ids(r), c.want)
		}
	}
}

// What looks like the faults above and is none.
func TestLaunchHealthy(t *testing.T) {
	for _, text := range []string{
		"requests.exceptions.ConnectionError: HTTPSConnectionPool(host='example.org', port=443): Name or service not known",
		"[W socket.cpp:1] [c10d] The IPv6 network addresses of (trainer-0, 29400) cannot be retrieved (gai error: -2 - " +
			"Name or service not known).",
		"[W socket.cpp:1] [c10d] The hostname of the client socket cannot be retrieved. err=-3",
		"[W ProcessGroupGloo.cpp:7] Warning: Unable to resolve hostname to a (local) address. Using the loopback address " +
			"as fallback.",
		"step 4000: saving checkpoint to /data/ckpt\nTokenizing (num_proc=8): 100%|######| 1000/1000 [24:58<00:00, 1.2 " +
			"examples/s]",
		"w7:71:93 [2] NCCL INFO MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x1 state 3 healthMask 0xaa",
		"3: ens5: <UP> mtu 9000 state UP\n    inet 10.9.1.4/20 brd 10.9.15.255 scope global ens5\n4: ens6: <UP> mtu 9000 " +
			"state UP\n    inet 10.9.2.4/20 brd 10.9.15.255 scope global ens6",
		"kernel.numa_balancing = 0",
		"Unable to shutdown process 77 via 15, forcefully exiting via 9 (SIGKILL)",
		"removing NCCL_IB_GID_INDEX breaks nothing",
		"nvidia-nccl-cu12==2.27.3\nnvidia-nccl-cu12==2.27.3",
		"roce4 port 1 ==> ens5 (Up)\nroce5 port 1 ==> ens6 (Up)\nNCCL_IB_HCA=roce4",
	} {
		if r := examine(t, text); finding.Serious(r.Findings) {
			t.Errorf("%.60q: %v", text, ids(r))
		}
	}
}

// Shared memory that is spoken of is not thereby too small.
func TestSharedMemoryToldOf(t *testing.T) {
	for _, f := range examine(t, "P2P is slower than SHM between the GPUs of one node").Findings {
		if f.ID == "shm-too-small" && f.Severity > finding.Note {
			t.Errorf("%s: %s", f.ID, f.Title)
		}
	}
}
