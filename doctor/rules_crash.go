package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// crashRules are faults that the log itself names.
func crashRules() []Rule {
	return []Rule{
		{"shm-too-small", "a failure to make or extend a segment in /dev/shm, or a small /dev/shm", "the container's shared memory is too small for NCCL", trouble + "#shared-memory", []string{"nccl-error", "peer-died", "collective-timeout", "cuda-error"}, shmTooSmall},
		{"duplicate-gpu", "NCCL's warning that two ranks share a GPU", "the mapping from local rank to device is wrong", envGuide, []string{"nccl-error", "peer-died", "collective-timeout"}, duplicateGPU},
		{"out-of-memory", "CUDA's or the kernel's message", "GPU or host memory ran out", trouble, []string{"nccl-error", "peer-died", "collective-timeout", "cuda-error", "rank-killed"}, outOfMemory},
		{"gpu-fault", "an Xid of the driver in the kernel's log", "a GPU failed", "https://docs.nvidia.com/deploy/xid-errors/", []string{"cuda-error", "nccl-error", "peer-died", "collective-timeout"}, gpuFault},
		{"fabric-manager", "CUDA error 802, or the service's state", "NVSwitch is not set up: the fabric manager does not run or does not match the driver", "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/", []string{"nvls-failed", "cuda-error", "nccl-error", "nvlink-fault"}, fabricManager},
		{"nvls-failed", "a failure in nvls.cc or to bind multicast memory", "NVLink SHARP (multicast) does not work on this machine", envGuide + "#nccl-nvls-enable", []string{"cuda-error", "nccl-error", "collective-timeout"}, nvlsFailed},
		{"imex", "a message about MNNVL or IMEX", "NVLink between hosts is there but IMEX is not set up", "https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/", []string{"nccl-error", "cuda-error"}, imex},
		{"nvlink-fault", "NCCL's message that P2P is off between GPUs joined by NVLink", "an NVLink or NVSwitch is down", trouble, nil, nvlinkFault},
		{"memlock", "verbs that fail for want of memory, or a small limit of locked memory", "memory cannot be pinned for RDMA", trouble + "#networking-issues", []string{"nccl-error", "peer-died"}, memlockLow},
		{"queue-memory", "completion queues refused for want of memory at scale or in all-to-all", "too many queue pairs and completion queues", envGuide, []string{"memlock", "nccl-error"}, queueMemory},
		{"registration", "ibv_reg_mr that fails for another reason than memory", "the driver does not take this memory registration", trouble + "#networking-issues", []string{"nccl-error"}, registration},
		{"version-mix", "NCCL's warning, or different releases on hosts of one job", "ranks run different releases of NCCL", trouble, []string{"nccl-error", "plan-differs", "peer-died", "collective-mismatch"}, versionMix},
		{"bootstrap-mismatch", "NCCL's warning about rank counts", "ranks of two jobs, or with different world sizes, met at one address", trouble, []string{"nccl-error"}, bootstrapMismatch},
		{"collective-mismatch", "messages of an unexpected size, or PyTorch's check", "ranks call different collectives, sizes or orders", trouble, []string{"nccl-error", "collective-timeout"}, collectiveMismatch},
		{"bad-algorithm", "NCCL's warning about NCCL_ALGO or NCCL_PROTO", "the setting leaves no algorithm for a collective", envGuide + "#nccl-algo", []string{"nccl-error"}, badAlgorithm},
		{"open-files", "too many open files", "the limit of open files is too low for this many ranks", trouble, []string{"nccl-error", "connect-failed"}, openFiles},
		{"no-transport", "NCCL's warning that no transport connects two ranks", "P2P, shared memory and network are all switched off or unusable", envGuide, []string{"nccl-error"}, noTransport},
	}
}

func shmTooSmall(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.95, Title: "Shared memory (/dev/shm) is too small",
		Cause: "NCCL could not make its segments in /dev/shm. Docker and Kubernetes give a container 64 MiB there, and GPUs without NVLink or P2P talk through it.",
		Fix:   "docker run --shm-size=1g (or --ipc=host); in Kubernetes mount an emptyDir with medium: Memory at /dev/shm. NCCL_SHM_DISABLE=1 avoids it at the price of speed.",
	}
	f.Evidence = c.quotes(evidence.ShmFailure, evidence.BusError)
	switch small := c.smallShm(); {
	case c.Has(evidence.ShmFailure):
	case c.about("shm") && (c.is("crash") || c.in("container") || strings.Contains(strings.ToLower(text(c.First(evidence.Topic, "shm"))), "no space left")):
		f.Confidence, f.Evidence = 0.7, c.told("shm", "container", "crash")
	case c.Has(evidence.BusError) && !c.Has(evidence.Xid):
		f.Confidence, f.Cause = 0.7, "A process got SIGBUS, which is what touching a page of /dev/shm gives when it is full. "+f.Cause
	case c.First(evidence.TorchError, "ncclSystemError") != nil && c.in("container") && c.oneHost() && c.Log == nil:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, append(c.quotes(evidence.TorchError), c.told("container")...)
		f.Cause = "A system call failed on one host, inside a container, where no network is needed: /dev/shm is the first thing to check. " + f.Cause
	case small != nil && (c.broken() || c.Has(evidence.OverShm)):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.quotes(small)
	default:
		return nil
	}
	return f
}

// text is the first line of an observation.
func text(o *evidence.Observation) string {
	if o == nil || len(o.Quotes) == 0 {
		return ""
	}
	return o.Quotes[0].Text
}

// smallShm is a /dev/shm of less than 256 MiB.
func (c *Case) smallShm() *evidence.Observation {
	return c.Find(evidence.ShmSize, func(o *evidence.Observation) bool {
		n := atoi(o.Arg(0))
		return n >= 0 && n < 256
	})
}

func atoi(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 1e8 {
			return -1
		}
		n = 10*n + int(r-'0')
	}
	if s == "" {
		return -1
	}
	return n
}

func duplicateGPU(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.97, Title: "Two ranks use the same GPU",
		Cause: "NCCL refuses two ranks on one device. Usually every process calls cuda:0 because the local rank is not used, or more processes than GPUs were started on a host.",
		Fix:   "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before init_process_group; processes a host = GPUs a host; check CUDA_VISIBLE_DEVICES of each rank.", Evidence: c.quotes(evidence.DuplicateGPU),
	}
	if c.Has(evidence.DuplicateGPU) {
		return f
	}
	o := c.First(evidence.TorchError, "ncclInvalidUsage")
	if o == nil || c.Has(evidence.LastError, evidence.BadAlgorithm, evidence.NoInterface, evidence.SizeMismatch, evidence.RootMismatch) || c.hosts > 0 {
		return nil
	}
	f.Severity, f.Confidence, f.Title, f.Evidence = finding.Warn, 0.6, "Most likely two ranks use the same GPU (ncclInvalidUsage)", c.quotes(o)
	f.Cause = "NCCL's warning is not shown, and this is what it refuses most often. " + f.Cause
	return f
}

func outOfMemory(c *Case) *finding.Finding {
	switch {
	case c.Has(evidence.OutOfMemory):
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.9, Title: "A GPU ran out of memory",
			Cause: "One rank stopped with CUDA out of memory; the others then wait for it until a timeout. NCCL itself needs memory for each channel and peer.",
			Fix:   "Smaller micro-batch, recomputation or more sharding (busbar step shows the memory of a plan); leave about 1 GB a GPU to NCCL, or lower NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS.", Evidence: c.quotes(evidence.OutOfMemory),
		}
	case c.Has(evidence.HostMemory):
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.9, Title: "The kernel killed a process for want of host memory",
			Cause: "A rank was killed (out of memory on the host or in its cgroup); its peers see a closed connection or a timeout.",
			Fix:   "Raise the memory limit of the job or container; fewer data-loading workers; check pinned memory.", Evidence: c.quotes(evidence.HostMemory),
		}
	}
	return nil
}

func gpuFault(c *Case) *finding.Finding {
	if o := c.First(evidence.GPULost); o != nil && !c.Has(evidence.Xid) {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.88, Title: "CUDA reports a hardware fault: " + o.Arg(0),
			Cause: "An error of memory, of NVLink or of the GPU itself that the driver could not correct. The process cannot go on, and jobs on that host will meet it again until it is reset or replaced.",
			Fix:   "dmesg | grep -i xid on that host, nvidia-smi nvlink --errorcounters, nvidia-smi -q -d ECC; reset the GPU or reboot; drain the host and replace what fails again.", Where: hosts(c.All(evidence.GPULost)), Evidence: c.quotes(evidence.GPULost),
		}
	}
	if !c.Has(evidence.Xid) {
		return nil
	}
	var ids []string
	for _, o := range c.All(evidence.Xid) {
		ids = append(ids, o.Arg(0))
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "The driver reports a GPU fault (Xid " + strings.Join(first(ids, 4), ", ") + ")",
		Cause: "An Xid in the kernel's log: 79 is a GPU that fell off the bus, 74 an NVLink error, 48, 63, 64, 94 and 95 memory errors, 13, 31 and 43 faults of the program. What NCCL prints afterwards follows from it.",
		Fix:   "nvidia-smi -q on that host; drain it; reset or replace the GPU for 48, 63, 64, 74, 79, 94, 95.", Where: hosts(c.All(evidence.Xid)), Evidence: c.quotes(evidence.Xid),
	}
}

// hosts lists who printed observations.
func hosts(list []*evidence.Observation) string {
	seen := map[string]bool{}
	var names []string
	for _, o := range list {
		if o == nil {
			continue
		}
		for _, h := range o.HostNames() {
			if !seen[h] && len(names) < 100 {
				seen[h] = true
				names = append(names, h)
			}
		}
	}
	return hostlist(names)
}

func fabricManager(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "The NVSwitch fabric is not initialised (fabric manager)",
		Cause: "On HGX and DGX machines with NVSwitch, CUDA needs nvidia-fabricmanager of the driver's exact version. While it is missing or restarts, CUDA fails with 802 (system not yet initialized) and multicast cannot be bound.",
		Fix:   "systemctl status nvidia-fabricmanager; start it, with the same version as the driver; nvidia-smi -q | grep -A2 Fabric must say Completed. After a restart of it under running processes, reboot.",
	}
	f.Evidence = c.quotes(evidence.FabricManager)
	switch {
	case c.Has(evidence.FabricManager):
	case c.about("fabric-manager"):
		f.Confidence, f.Evidence = 0.75, c.told("fabric-manager")
	case c.Has(evidence.NVLSFailure):
		f.Confidence, f.Severity, f.Evidence = 0.6, finding.Warn, c.quotes(evidence.NVLSFailure)
		f.Cause = "Multicast memory could not be bound. The fabric manager is the first thing to check: when it is unhealthy, was restarted under running processes, or a switch has a fault, only codes that use NVLS notice. " + f.Cause
	default:
		return nil
	}
	return f
}

func nvlsFailed(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "NVLink SHARP (NVLS multicast) failed",
		Cause:    "NCCL found multicast support and could not use it: an unhealthy fabric manager or NVSwitch, a partition or container without multicast, or an old driver.",
		Fix:      "NCCL_NVLS_ENABLE=0 to go on without it; check nvidia-fabricmanager and dmesg; test multicast with nvbandwidth -t multinode or device_to_all.",
		Evidence: c.quotes(evidence.NVLSFailure),
	}
	switch {
	case c.Has(evidence.NVLSFailure):
	case (c.about("nvls") || c.helps("nccl_nvls_enable=0")) && c.is("crash", "hang"):
		f.Confidence, f.Severity, f.Evidence = 0.6, finding.Warn, c.told("nvls", "crash", "hang")
	default:
		return nil
	}
	return f
}

func imex(c *Case) *finding.Finding {
	if !c.Has(evidence.IMEX) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "NVLink between hosts (MNNVL) is not usable: IMEX",
		Cause: "The hosts share an NVLink domain but memory cannot be exported between them: nvidia-imex does not run, its node list is wrong, or the container lacks /dev/nvidia-caps-imex-channels.",
		Fix:   "Start nvidia-imex with all hosts in nodes_config.cfg; give the container the IMEX channel device; NCCL_MNNVL_ENABLE=0 to go on over the network.", Evidence: c.quotes(evidence.IMEX),
	}
}

func nvlinkFault(c *Case) *finding.Finding {
	for _, o := range c.All(evidence.P2PFault) {
		if strings.Contains(strings.ToLower(text(o)), "nvlink") {
			return &finding.Finding{
				Severity: finding.Error, Confidence: 0.85, Title: "NVLink is down between GPUs of a host",
				Cause: "NCCL found GPUs joined by NVLink between which peer access is off: a link or switch has a fault, or the fabric manager does not run.",
				Fix:   "nvidia-smi nvlink --status and nvidia-smi topo -m on that host; reset or replace; do not hide it with NCCL_IGNORE_DISABLED_P2P=1.", Where: hosts(c.All(evidence.P2PFault)), Evidence: c.quotes(evidence.P2PFault),
			}
		}
	}
	if o := c.First(evidence.FabricHealth); o != nil {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.85, Title: "The NVLink fabric reports " + o.Arg(0),
			Cause: "The GPU's fabric health mask, which NCCL prints, has a fault set: links or switches between hosts of the NVLink domain are down or being recovered.",
			Fix:   "nvidia-smi -q | grep -A8 Fabric on the hosts; the switch trays and nmx; drain those hosts, or NCCL_MNNVL_ENABLE=0 to go on over the network.", Where: hosts(c.All(evidence.FabricHealth)), Evidence: c.quotes(evidence.FabricHealth),
		}
	}
	if c.about("nvlinkdown") && !c.is("wrong") {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.7, Title: "NVLink is down between GPUs of a host",
			Cause: "With a link down NCCL builds fewer channels, or goes through PCIe and host memory, and every collective of the job waits for that host.",
			Fix:   "nvidia-smi nvlink --status and --errorcounters on that host; reset the GPU, reboot, replace; drain it.", Evidence: c.told("nvlinkdown", "slow"),
		}
	}
	return nil
}

func versionMix(c *Case) *finding.Finding {
	if list := c.All(evidence.NCCLVersion); len(list) > 1 && c.Has(evidence.SizeMismatch) {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.87, Title: "Ranks seem to run different releases of NCCL: " + list[0].Arg(0) + " and " + list[1].Arg(0),
			Cause: "Messages do not have the size that the other side expects, and two releases print their version: their ways to cut data and to choose differ.",
			Fix:   "One NCCL for all ranks: that of the framework, or one in LD_LIBRARY_PATH everywhere; pip list | grep nccl and the module list on each host.", Evidence: c.quotes(list[0], list[1], evidence.SizeMismatch),
		}
	}
	if c.Has(evidence.VersionMix) {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.95, Title: "Ranks run different releases of NCCL",
			Cause: "NCCL's ranks must all run one release: their wire format, algorithms and choices differ.",
			Fix:   "One image or module for all hosts; python -c \"import torch; print(torch.cuda.nccl.version())\" on each.", Evidence: c.quotes(evidence.VersionMix),
		}
	}
	byHost := map[string]string{}
	var quotes []finding.Quote
	mixed := ""
	for _, o := range c.All(evidence.NCCLVersion) {
		for _, h := range o.HostNames() {
			if had, ok := byHost[h]; ok && had != o.Arg(0) {
				return nil // one host ran several, so these are several runs
			}
			byHost[h] = o.Arg(0)
		}
		if len(o.Hosts) > 0 {
			quotes = append(quotes, first(o.Quotes, 1)...)
			if mixed != "" {
				mixed += " and "
			}
			mixed += o.Arg(0)
		}
	}
	if len(quotes) < 2 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "Hosts print different releases of NCCL: " + mixed,
		Cause: "If these hosts are one job, its ranks run different releases, which may hang or choose differently.",
		Fix:   "One image or module for all hosts.", Evidence: quotes,
	}
}

func bootstrapMismatch(c *Case) *finding.Finding {
	if twice := c.rankTwice(); len(twice) > 0 && c.broken() {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.85, Title: "Ranks were started twice, and others not at all",
			Cause: "Several processes count themselves as the same rank of the job: each host believes to be the first one, because the launcher did not tell it its number, or a framework starts processes that the scheduler has started already.",
			Fix:   "A task for each GPU (srun --ntasks-per-node, and num_nodes as given to it), or one per host with NODE_RANK; RANK, LOCAL_RANK and WORLD_SIZE printed by every process show it.", Evidence: first(twice, maxEvidence),
		}
	}
	if !c.Has(evidence.RootMismatch, evidence.Stranger) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: "Ranks that do not belong together met at one address",
		Cause: "Two jobs share MASTER_ADDR and MASTER_PORT (or NCCL_COMM_ID), ranks disagree about the world size, a rank was started twice, or something else (a port scanner) connected.",
		Fix:   "A port of its own for every job; the same WORLD_SIZE and distinct RANK everywhere; end left-over processes of earlier jobs.", Evidence: c.quotes(evidence.RootMismatch, evidence.Stranger),
	}
}

func collectiveMismatch(c *Case) *finding.Finding {
	if !c.Has(evidence.SizeMismatch, evidence.Disagree) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Ranks do not call the same collective",
		Cause: "A rank received a message of another size or kind than it expects: ranks took different branches, shapes or orders of collectives, or differ in NCCL_ALGO, NCCL_PROTO or release.",
		Fix:   "TORCH_DISTRIBUTED_DEBUG=DETAIL names the first collective that differs; equal shapes on all ranks; no collective inside a condition that depends on data.", Evidence: c.quotes(evidence.SizeMismatch, evidence.Disagree),
	}
}

func badAlgorithm(c *Case) *finding.Finding {
	if !c.Has(evidence.BadAlgorithm) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "NCCL_ALGO or NCCL_PROTO cannot be used as set",
		Cause: "The setting has a word that this release does not know, or leaves a collective without any algorithm; from 2.24 NCCL_ALGO=Tree alone forbids collectives that only rings do.",
		Fix:   fmt.Sprintf("unset NCCL_ALGO NCCL_PROTO; or name per collective: NCCL_ALGO=\"allreduce:tree;allgather:ring\" (now %q and %q).", c.value("NCCL_ALGO"), c.value("NCCL_PROTO")), Evidence: c.quotes(evidence.BadAlgorithm, "NCCL_ALGO", "NCCL_PROTO"),
	}
}

func openFiles(c *Case) *finding.Finding {
	if !c.Has(evidence.OpenFiles) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "Too many open files",
		Cause: "Every connection, proxy and shared buffer of NCCL is a file; the limit (often 1024) ends at a few hundred ranks a process.",
		Fix:   "ulimit -n 65536 or more, also in the unit of slurmd or the container's runtime.", Evidence: c.quotes(evidence.OpenFiles),
	}
}

func noTransport(c *Case) *finding.Finding {
	if !c.Has(evidence.NoTransport) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "No transport is left between two ranks",
		Cause: "P2P, shared memory and the network are each switched off or unusable between these ranks.",
		Fix:   "unset NCCL_P2P_DISABLE NCCL_SHM_DISABLE NCCL_NET; NCCL_NET_DISABLE_INTRA=0; check that a network interface is up.", Evidence: c.quotes(evidence.NoTransport, "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET"),
	}
}
