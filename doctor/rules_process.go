package doctor

import (
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// processRules are about a process that ended by itself, of which the others only
// see the closed connection, and about settings that are told to do harm.
func processRules() []Rule {
	const cuda = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
	gone := []string{"peer-died", "nccl-error", "collective-timeout", "connect-failed", "rendezvous"}
	return []Rule{
		{"kernel-assert", "an assertion of a CUDA kernel", "the program's own kernel stopped: an index or a label out of range", cuda, append([]string{"cuda-error", "rank-crashed"}, gone...), kernelAssert},
		{"rank-killed", "a process that ended by signal 9", "a rank was killed, most often for want of host memory", "https://docs.kernel.org/admin-guide/mm/concepts.html", gone, rankKilled},
		{"rank-crashed", "a segmentation fault", "a rank crashed in native code", trouble, gone, rankCrashed},
		{"setting-harmful", "a setting without which it is told to work", "a setting that is forced does not fit this machine", envGuide, []string{"acs", "iommu", "gdr-off", "algorithm-forced", "collective-timeout", "init-hang"}, settingHarmful},
		{"vgpu", "a CUDA call that is not supported, in a virtual GPU", "the virtual GPU's profile does not offer what NCCL needs", "https://docs.nvidia.com/vgpu/", []string{"cuda-error", "nccl-error", "vm-topology"}, virtualGPU},
		{"container-rights", "a container that is told to work with --privileged", "the container lacks rights on devices or system calls", "https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities", []string{"nccl-error", "cumem", "cuda-error", "shm-too-small"}, containerRights},
		{"nccl-absent", "the framework's message that it has no NCCL", "the framework was built without NCCL, or sees no GPU", "https://docs.pytorch.org/docs/stable/distributed.html#backends", []string{"nccl-error", "rendezvous"}, ncclAbsent},
		{"setting-helps", "a setting that is told to help, and of which no cause knows", "a setting makes the difference", envGuide, nil, settingHelps},
		{"pxn-fails", "a job that ends or hangs, and is told to work without PXN", "the way through another GPU's NIC (PXN) is what fails", envGuide + "#nccl-pxn-disable", []string{"ring-or-tree", "collective-timeout", "init-hang", "nccl-error"}, pxnFails},
	}
}

func kernelAssert(c *Case) *finding.Finding {
	return c.stated(evidence.KernelAssert, 0.92, "A kernel of the program failed its own check",
		"A CUDA kernel asserted, mostly an index beyond a tensor: a token or label outside of the vocabulary or the classes, a length beyond the positions. The GPU's context is lost with it, and NCCL and the other ranks only report that.",
		"CUDA_LAUNCH_BLOCKING=1, or the same batch on the CPU, names the line; compare the largest index in the data with the sizes in the model (vocabulary, classes, positions).")
}

func rankKilled(c *Case) *finding.Finding {
	return c.stated(evidence.Killed, 0.75, "A rank was killed (signal 9)",
		"Nothing in the program sends that signal: the kernel or the container's limit ran out of memory (exit code 137), or the scheduler or a person ended it. The other ranks then see a closed connection or a time-out.",
		"dmesg -T | grep -i oom on that host, kubectl describe pod (OOMKilled), sacct -o MaxRSS; more memory for the job, fewer data-loading workers, less pinned memory; checkpoint loading rank by rank.")
}

func rankCrashed(c *Case) *finding.Finding {
	o := c.First(evidence.Crash, "segv")
	if o == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.55, Title: "A rank crashed (segmentation fault)",
		Cause: "A process ended in native code: a plugin or library that does not fit the NCCL it is loaded into, two copies of one library, or a bug of a release. What the other ranks print follows from it.",
		Fix:   "The frames below the fault name the library (gdb -c core, or faulthandler); NCCL_NET_PLUGIN=none and NCCL_TUNER_PLUGIN=none leave plugins out; another release of NCCL; one NCCL in LD_LIBRARY_PATH.", Where: hosts([]*evidence.Observation{o}), Evidence: c.quotes(o),
	}
}

func settingHarmful(c *Case) *finding.Finding {
	o := c.First(evidence.Harmful)
	if o == nil {
		return nil
	}
	name, _, _ := strings.Cut(strings.ToUpper(o.Arg(0)), "=")
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.8, Title: name + " is what breaks it",
		Cause: "It works without the setting. What NCCL finds out by itself fits the machine and its release; a value that was right for another one, or an older release, is forced on it.",
		Fix:   "unset " + name + " (also in /etc/nccl.conf, the image and the launcher's scripts) and leave the choice to NCCL.", Evidence: c.quotes(o, name),
	}
}

func pxnFails(c *Case) *finding.Finding {
	o := c.helper("nccl_pxn_disable=1")
	if o == nil || !c.broken() {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.75, Title: "PXN, the way through the NIC of another GPU, is what fails",
		Cause: "Without PXN it works. With it a GPU sends by the NIC of a neighbour over NVLink; where NVLink domains end between the ranks of a group, or topologies differ between hosts, releases build ways that do not meet.",
		Fix:   "NCCL_PXN_DISABLE=1, or NCCL_P2P_PXN_LEVEL=0 for send and receive alone, until a newer NCCL; ranks of an all-to-all within one NVLink domain.", Evidence: c.quotes(o),
	}
}

func virtualGPU(c *Case) *finding.Finding {
	o := c.First(evidence.CUDAFailure, "operation not supported")
	if o == nil || !c.about("vgpu") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: "The virtual GPU does not support what NCCL asks of CUDA",
		Cause: "A vGPU offers unified memory, peer access and shareable handles only in some profiles (whole GPUs) and where the hypervisor switches them on.",
		Fix:   "Unified memory for the vGPU (pciPassthru.cfg.enable_uvm=1 on VMware, enable_uvm=1 elsewhere), a profile of a whole GPU, NVLink and P2P allowed by the host; else passthrough.", Evidence: append(c.quotes(o), c.told("vgpu")...),
	}
}

// settingHelps is for settings that no cause has among its remedies.
func settingHelps(c *Case) *finding.Finding {
	for _, o := range c.All(evidence.Helps) {
		name := strings.ReplaceAll(o.Arg(0), " ", "")
		if !strings.HasPrefix(name, "nccl_") || cause.Remedy(name) || c.First(evidence.Harmful) != nil {
			continue
		}
		name, _, _ = strings.Cut(strings.ToUpper(name), "=")
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.6, Title: name + " makes the difference",
			Cause: "It is told to help, so what it changes is where the time or the fault lies; no rule knows what it means on this machine.",
			Fix:   "Keep it until the cause is known; compare NCCL_DEBUG=INFO with and without it, and report it with both.", Evidence: c.quotes(o),
		}
	}
	return nil
}

func containerRights(c *Case) *finding.Finding {
	if !c.about("privileged") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.8, Title: "The container lacks rights: it works with --privileged",
		Cause: "What fails is refused to the container and not broken: devices (/dev/infiniband, /dev/nvidia-caps-imex-channels, /dev/gdrdrv), locked memory, or system calls for NUMA and shared handles.",
		Fix:   "Give what is needed instead of everything: --device=/dev/infiniband --cap-add=IPC_LOCK --cap-add=SYS_NICE --ulimit memlock=-1, --cap-add=SYS_RAWIO or the driver's own channels for GPU-initiated RDMA, --device=/dev/gdrdrv, the IMEX channel; in Kubernetes the device plugins' resources.", Evidence: c.told("privileged", "container"),
	}
}

func ncclAbsent(c *Case) *finding.Finding {
	return c.stated(evidence.NoNCCL, 0.95, "The framework has no NCCL, or sees no GPU",
		"This build of PyTorch has no NCCL (packages for the CPU, for Windows and for macOS), or no GPU is visible to the process.",
		"pip install of a CUDA build (torch.version.cuda and torch.cuda.nccl.version() tell); nvidia-smi in the container (--gpus all); the backend gloo where there is no GPU.")
}
