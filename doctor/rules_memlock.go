package doctor

import (
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// failed is the first failure of a call for a reason; "": for none that was printed.
func (c *Case) failed(reason string, calls ...string) *evidence.Observation {
	return c.Find(evidence.VerbsFailure, func(o *evidence.Observation) bool {
		return o.Arg(1) == reason && slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(o.Arg(0), call) })
	})
}

func memlockLow(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Memory cannot be locked (pinned) for RDMA",
		Cause: "Queues or memory for RDMA were refused for want of memory. The usual reason is the limit of locked memory (ulimit -l), which is 64 KiB by default and is not inherited by daemons such as slurmd or dockerd.",
		Fix:   "ulimit -l unlimited in limits.conf and in the unit of the daemon that starts the job (LimitMEMLOCK=infinity); docker run --ulimit memlock=-1; IPC_LOCK in Kubernetes.",
	}
	low := c.lowMemlock()
	refused := c.failed("memory", "ibv", "ibv_create_cq", "ibv_create_qp", "ibv_reg_mr", "ibv_alloc_pd", "ibv_create_srq", "pin_user_pages", "ibv_reg_dmabuf")
	f.Evidence = c.quotes(refused, low, evidence.Pages)
	switch {
	case refused != nil && low != nil:
		f.Confidence = 0.97
	case refused != nil && c.Has(evidence.Pages):
		f.Cause = "Pages could not be pinned: a long-term pin must first move them out of memory reserved for contiguous allocation (CMA), which fails when little memory is free. " + f.Cause
		f.Fix = "Free memory before the start (drop caches, compact memory), reduce the CMA reservation; then: " + f.Fix
	case refused != nil:
	case c.Has(evidence.Pages) && c.broken() || c.Has(evidence.Pages) && c.Told:
		f.Confidence = 0.75
		f.Cause = "Pages could not be pinned: a long-term pin must first move them out of memory reserved for contiguous allocation (CMA), which fails when little memory is free. " + f.Cause
	case c.failed("", "ibv_create_cq", "ibv_create_qp", "ibv_reg_mr") != nil:
		f.Confidence, f.Evidence = 0.7, c.quotes(c.failed("", "ibv_create_cq", "ibv_create_qp", "ibv_reg_mr"), low)
	case c.failed("permission", "ibv") != nil:
		f.Confidence, f.Evidence = 0.75, c.quotes(c.failed("permission", "ibv"), low)
		f.Cause = "The kernel did not permit it: the container lacks the capability IPC_LOCK, or rights on /dev/infiniband. " + f.Cause
	case low != nil && (c.broken() || c.rdma()):
		f.Severity, f.Confidence = finding.Warn, 0.7
	case c.about("memlock") && c.is("crash"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.told("memlock")
	default:
		return nil
	}
	return f
}

// lowMemlock is a limit of locked memory below 1 GiB.
func (c *Case) lowMemlock() *evidence.Observation {
	return c.Find(evidence.Memlock, func(o *evidence.Observation) bool {
		n := atoi(o.Arg(0))
		return n > 0 && n < 1<<20
	})
}

func queueMemory(c *Case) *finding.Finding {
	o := c.failed("memory", "ibv_create_cq", "ibv_create_qp")
	if o == nil || c.lowMemlock() != nil || !c.in("alltoall") && !c.is("scale") && c.ranks < 1024 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Too many queue pairs and completion queues for the NIC",
		Cause: "Queues are refused at scale, which is where all-to-all opens a connection to every peer on every channel; the NIC's or kernel's queue memory ends, not ulimit -l.",
		Fix:   "Fewer connections: PXN (NCCL_PXN_DISABLE=0, NCCL_P2P_PXN_LEVEL=2), NCCL_NCHANNELS_PER_NET_PEER=1, NCCL_IB_QPS_PER_CONNECTION=1.", Evidence: c.quotes(o),
	}
}

func registration(c *Case) *finding.Finding {
	if o := c.failed("invalid", "ibv_reg_mr"); o != nil {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.75, Title: "The RDMA driver refuses to register memory",
			Cause: "ibv_reg_mr failed with invalid argument: an old GPU or RDMA driver under a newer NCCL, missing nvidia-peermem, or relaxed ordering that the device does not take.",
			Fix:   "A newer driver and OFED; NCCL_IB_PCI_RELAXED_ORDERING=0; NCCL_DMABUF_ENABLE=0; modprobe nvidia-peermem.", Evidence: c.quotes(o, "NCCL_IB_PCI_RELAXED_ORDERING"),
		}
	}
	if o := c.failed("address", "ibv_reg_mr"); o != nil {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.75, Title: "GPU memory cannot be registered with the NIC (nvidia-peermem)",
			Cause: "ibv_reg_mr failed with bad address, which is what it gives for GPU memory when nvidia-peermem is not loaded or does not match the driver.",
			Fix:   "modprobe nvidia-peermem on every host; or NCCL_NET_GDR_LEVEL=LOC to go on without GPUDirect RDMA.", Evidence: c.quotes(o),
		}
	}
	return nil
}
