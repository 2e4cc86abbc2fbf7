package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// moreRules are about what is met less often: GPUs that are not there, limits of
// the kernel, parts that do not fit each other.
func moreRules() []Rule {
	const linux = "https://docs.kernel.org/networking/ip-sysctl.html"
	const cuda = "https://docs.nvidia.com/deploy/cuda-compatibility/"
	return []Rule{
		{"device-ordinal", "CUDA's invalid device ordinal", "more GPUs are asked for than the process sees", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables", []string{"cuda-error", "nccl-error"}, deviceOrdinal},
		{"unsupported-gpu", "no kernel image, shared memory beyond the device", "this build of NCCL or PyTorch has no code for the GPU", cuda, []string{"cuda-error", "nccl-error"}, unsupportedGPU},
		{"driver-mix", "messages about driver and library versions", "driver and CUDA libraries do not fit each other", cuda, []string{"cuda-error", "nccl-error"}, driverMix},
		{"cuda-ipc", "CUDA IPC handles that cannot be opened", "processes cannot open each other's GPU memory", envGuide + "#nccl-p2p-disable", []string{"p2p-off", "cuda-error", "nccl-error"}, cudaIPC},
		{"bar1", "a buffer that cannot be mapped", "a GPU's memory cannot be mapped for its peers", trouble, []string{"cuda-error", "nccl-error", "p2p-off"}, bar1},
		{"cumem", "failures of CUDA's virtual memory calls, segments that are not there", "memory shared between ranks of a host is refused or not found, often in a container", envGuide + "#nccl-cumem-enable", []string{"cuda-error", "nccl-error"}, cumem},
		{"address-family", "a socket of a family that is not supported", "the host or container does not offer this kind of address", envGuide + "#nccl-socket-family", []string{"nccl-error", "first-checks", "no-interface"}, addressFamily},
		{"flushed-work", "work requests that were flushed", "the queue pair had failed before: the first error is elsewhere", trouble, nil, flushedWork},
		{"gpu-throttled", "nvidia-smi's reasons for lower clocks", "a GPU runs slower for heat or power, and all wait for it", "https://docs.nvidia.com/deploy/nvidia-smi/", []string{"collective-timeout"}, gpuThrottled},
		{"arp-table", "the kernel's message of a full neighbour table", "the ARP table is too small for this many hosts", linux, []string{"connect-failed", "nccl-error", "collective-timeout"}, arpTable},
		{"ports-exhausted", "cannot assign requested address", "no local port is left, or the address is not of this host", linux, []string{"nccl-error", "connect-failed"}, portsExhausted},
		{"thread-limit", "threads or processes that cannot be made", "the limit of processes is too low", trouble, []string{"nccl-error", "peer-died"}, threadLimit},
		{"numa-balancing", "RCCL's warning, or the kernel's setting", "the kernel moves memory pages between NUMA nodes while they are in use", "https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html", []string{"roce-loss", "straggler"}, numaBalancing},
		{"one-gpu-limit", "one GPU a node with several NICs", "one GPU cannot send more than its PCIe link: expected", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md", []string{"single-nic"}, oneGPULimit},
	}
}

// stated is an error that a line states outright.
func (c *Case) stated(k evidence.Kind, sure float64, title, cause, fix string) *finding.Finding {
	if !c.Has(k) {
		return nil
	}
	return &finding.Finding{Severity: finding.Error, Confidence: sure, Title: title, Cause: cause, Fix: fix, Where: hosts(c.All(k)), Evidence: c.quotes(k)}
}

func deviceOrdinal(c *Case) *finding.Finding {
	return c.stated(evidence.BadOrdinal, 0.9, "A process asks for a GPU that it does not see",
		"CUDA knows no device of that number: more processes, or GPUs a process (-g), than the host has or CUDA_VISIBLE_DEVICES shows; or all processes were started on one host.",
		"Processes a host × GPUs a process ≤ nvidia-smi -L; LOCAL_RANK, not RANK, chooses the device; the host list must spread the processes (mpirun -N, srun --ntasks-per-node).")
}

func unsupportedGPU(c *Case) *finding.Finding {
	return c.stated(evidence.TooNew, 0.85, "This build has no code for the GPU",
		"The library was built for older GPUs, or with an older CUDA, than the one it runs on; its kernels cannot be launched.",
		"NCCL and PyTorch of a release that names the GPU's compute capability (cuobjdump --list-elf libnccl.so shows what is in it), built with a CUDA that knows it.")
}

func driverMix(c *Case) *finding.Finding {
	return c.stated(evidence.DriverMix, 0.9, "Driver and CUDA libraries do not fit each other",
		"The driver is older than the CUDA runtime needs, was replaced under running processes, or a library of another release is loaded first.",
		"A driver as new as the CUDA release, then a reboot; one NCCL only (LD_LIBRARY_PATH, pip list | grep nccl); cuda-compat in containers on data-centre GPUs.")
}

func cudaIPC(c *Case) *finding.Finding {
	f := c.stated(evidence.IPCFailure, 0.8, "A process cannot open the GPU memory of another one (CUDA IPC)",
		"P2P between processes passes handles of GPU memory. That fails between containers of separate PID or IPC namespaces, where the processes see different GPUs, and on GPUs or a driver without peer access between them.",
		"One container for all ranks of a host, or --ipc=host --pid=host; all GPUs visible in all of them; NCCL_P2P_DISABLE=1 to go on through shared memory; nvidia-smi topo -p2p r.")
	if f != nil && c.Has(evidence.P2PFault) {
		f.Title = "The driver offers no peer access between these GPUs"
		f.Confidence = 0.85
	}
	return f
}

func bar1(c *Case) *finding.Finding {
	return c.stated(evidence.BARFull, 0.75, "GPU memory cannot be mapped for a peer (BAR1)",
		"P2P and GPUDirect RDMA map GPU memory through the BAR1 window. It is small on some cards, used up by other mappings, or not large enough in a virtual machine or with a BIOS without large BARs.",
		"nvidia-smi -q | grep -A3 BAR1; above-4G decoding and resizable BAR in the BIOS; fewer or smaller buffers (NCCL_BUFFSIZE); NCCL_P2P_DISABLE=1 to compare.")
}

func cumem(c *Case) *finding.Finding {
	if f := c.stated(evidence.ShmAbsent, 0.8, "A peer's shared memory is not there for this process",
		"The segment that another rank of the host made is not found: containers of one host with a /dev/shm each, or ranks that chose different kinds of host memory (cuMem on NUMA nodes that not all of them may use, /dev/shm on others).",
		"One container, or --ipc=host, for all ranks of a host; NCCL_CUMEM_HOST_ENABLE=0 on all ranks; cpuset and NUMA nodes of the container alike for all GPUs."); f != nil {
		return f
	}
	return c.stated(evidence.CUMemFailed, 0.7, "CUDA's shared memory handles are refused (cuMem)",
		"NCCL allocates with cuMem* and passes file descriptors between processes. Containers without the right capabilities, other user ids, missing NUMA calls or an old driver refuse that.",
		"NCCL_CUMEM_ENABLE=0 (and NCCL_CUMEM_HOST_ENABLE=0 from 2.24 on) to compare; a driver of the CUDA release; --cap-add SYS_NICE, one user for all ranks.")
}

func addressFamily(c *Case) *finding.Finding {
	return c.stated(evidence.NoFamily, 0.9, "The host or container has no such kind of address",
		"NCCL made a socket of a family that the kernel here does not offer: IPv6 is switched off, or the container has no usable interface at all and NCCL fell back to an empty address.",
		"NCCL_SOCKET_FAMILY=AF_INET and NCCL_SOCKET_IFNAME=<an interface with an IPv4 address>; ip -br addr inside the container; --network=host.")
}

// flushedWork is for completions of which all were flushed: they only say that the
// connection was already broken.
func flushedWork(c *Case) *finding.Finding {
	o := c.status("5")
	if o == nil {
		o = c.verdictOf("WR_FLUSH_ERR", "5")
	}
	if o == nil || len(c.All(evidence.Completion)) > c.countStatus("5") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.45, Title: "Work requests were flushed: the first error is elsewhere",
		Cause: "Status 5 (IBV_WC_WR_FLUSH_ERR) is printed for requests of a queue pair that had already failed. The peer died, or the first error stands earlier or in the log of the other host.",
		Fix:   "Look for the first completion with another status on both hosts, and for the process that ended first; show_gids and ibstat on both.", Evidence: c.quotes(o),
	}
}

// countStatus counts the kinds of completions with a status.
func (c *Case) countStatus(code string) int {
	n := 0
	for _, o := range c.All(evidence.Completion) {
		if o.Arg(0) == code {
			n++
		}
	}
	return n
}

func numaBalancing(c *Case) *finding.Finding {
	f := c.stated(evidence.NumaBalancing, 0.75, "NUMA balancing is on",
		"The kernel samples accesses by unmapping pages and moves them between nodes; GPU buffers and NCCL's proxy threads then stall now and then, so that rates vary from run to run.",
		"sysctl kernel.numa_balancing=0 on all hosts (and in /etc/sysctl.d).")
	if f == nil {
		return nil
	}
	f.Severity = finding.Warn
	if !c.is("slow", "unstable", "drop") {
		f.Severity, f.Confidence = finding.Note, 0.5
	}
	return f
}

func gpuThrottled(c *Case) *finding.Finding {
	f := c.stated(evidence.Throttled, 0.75, "A GPU lowers its clocks for heat or power",
		"One GPU that runs slower makes every collective wait for it.",
		"nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE; cooling, the power limit, the supply; drain the host.")
	if f == nil {
		return nil
	}
	f.Severity = finding.Warn
	if o := c.First(evidence.Throttled); o.Arg(0) == "sw power cap" && len(c.All(evidence.Throttled)) == 1 && !c.is("slow", "unstable") {
		f.Severity = finding.Note // at full load a GPU is at its power limit
	}
	return f
}

func arpTable(c *Case) *finding.Finding {
	return c.stated(evidence.ArpFull, 0.9, "The kernel's neighbour (ARP) table is full",
		"Each host talks to more neighbours than the table holds (1024 by default), so that connections fail at random at scale.",
		"sysctl -w net.ipv4.neigh.default.gc_thresh1=8192 gc_thresh2=16384 gc_thresh3=32768 on all hosts.")
}

func portsExhausted(c *Case) *finding.Finding {
	return c.stated(evidence.NoPorts, 0.75, "No local address or port could be taken",
		"Either no ephemeral port is left (many ranks and channels over sockets) or the process binds to an address that its host does not have.",
		"sysctl net.ipv4.ip_local_port_range=\"1024 65535\"; fewer sockets (NCCL_NSOCKS_PERTHREAD, channels); MASTER_ADDR and host names must resolve to this host's own address.")
}

func threadLimit(c *Case) *finding.Finding {
	return c.stated(evidence.NoThreads, 0.85, "No more threads or processes can be made",
		"The limit of processes of the user (ulimit -u) or of the container's cgroup (pids.max) is reached; NCCL starts several threads a communicator.",
		"ulimit -u, docker run --pids-limit=-1, podPidsLimit of the kubelet; fewer data-loading workers, OMP_NUM_THREADS.")
}

func oneGPULimit(c *Case) *finding.Finding {
	if !c.about("onegpu") || !severalNICs.MatchString(c.toldText()) && strings.Count(c.value("NCCL_IB_HCA"), ",") == 0 {
		return nil
	}
	best := c.best(func(f evidence.Figure) bool { return !f.Expected && f.Tool != "wire" })
	if best < 10 || best > 64 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.75, Title: fmt.Sprintf("Expected: one GPU sends %.0f GB/s at most through its PCIe link", best),
		Cause: "With one GPU a node all NICs share that GPU's PCIe link: 25 GB/s for generation 4, 50 for generation 5, whatever the NICs could carry together.",
		Fix:   "All GPUs of the nodes take part in a test of the network; one NIC a GPU is enough.", Evidence: append(c.told("onegpu"), c.figureQuotes()...),
	}
}

// thinNetwork is for people who name a network of 25 Gb/s or less between hosts
// that are slow together.
func (c *Case) thinNetwork() *finding.Finding {
	if !c.about("thinnet") || !c.slow() || !c.multinodeTold() || c.rdma() && !c.in("efa") || c.is("hang", "crash") || c.wireBeatsNCCL() > 0 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "The network between the hosts is slow for this",
		Cause: "A network of 10 Gb/s carries 1.2 GB/s, one of 25 Gb/s 3 GB/s, against hundreds inside a host: gradients of a large model take seconds a step, whatever NCCL does.",
		Fix:   "A faster network (RDMA) between the hosts; else fewer bytes (gradient accumulation, compression, sharding inside a host) or training on one host.", Evidence: c.told("thinnet", "slow"),
	}
}

// corruptsInside reports wrong values between GPUs of one host of which nothing
// speaks for a protocol.
func (c *Case) corruptsInside() bool {
	return c.is("wrong") && !c.multinodeTold() && c.in("geforce", "pcie-gpu", "epyc", "amd-host") && !c.in("nvswitch") && !c.about("ll128", "nvlinkdown") && c.value("NCCL_PROTO") == "" && !c.Has(evidence.Hurts, evidence.Release)
}

var fastLink = regexp.MustCompile(`\b(?:1|2|4|8)00 ?G(?:b(?:/s|ps|E)?|bit\S*)?\b`)

// tcpLike reports a rate that sockets give on a network that carries several times
// as much.
func (c *Case) tcpLike() bool {
	best := c.best(func(f evidence.Figure) bool { return !f.Expected && !f.Bits && f.Tool != "wire" })
	return best > 0 && best < 4.5 && fastLink.MatchString(c.toldText()) && !c.in("tcp") && !c.Has(evidence.OverNet, evidence.GDROn)
}
