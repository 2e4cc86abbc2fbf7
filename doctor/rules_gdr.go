package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

func gdrOff(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.85, Title: "GPUDirect RDMA is off",
		Cause: "The NIC does not read GPU memory itself; every byte goes through host memory and the CPU's root complex. The peer memory module (nvidia-peermem, nv_peer_mem) is not loaded or DMA-BUF is not supported, or NIC and GPU are too far apart.",
		Fix:   "modprobe nvidia-peermem on every host (and see it in the container); NCCL 2.23 or newer where only the new module's name is there; NCCL_NET_GDR_LEVEL=PHB or SYS where NIC and GPU are farther apart; the log must say /GDRDMA.",
	}
	off, on := c.First(evidence.GDROff), c.First(evidence.GDROn)
	bounce, direct := c.netWay(""), c.netWay("gdr")
	idle := c.idlePeermem()
	f.Evidence = c.quotes(off, bounce, idle, evidence.PeermemAbsent, "NCCL_NET_GDR_LEVEL")
	needed := c.multinode()
	switch {
	case bounce != nil && direct != nil && c.oneSided(bounce, direct):
		f.Title, f.Confidence, f.Evidence = "GPUDirect RDMA is used by some hosts only", 0.9, c.quotes(bounce, direct, evidence.PeermemAbsent)
		f.Cause = "Some connections say GDRDMA and others do not, so the module is missing on a host. " + f.Cause
		f.Where = hosts([]*evidence.Observation{bounce})
	case c.Has(evidence.PeermemAbsent):
		f.Confidence = 0.85
	case off != nil && on == nil && direct == nil && (bounce != nil || c.is("slow", "drop") || idle != nil):
		f.Confidence = 0.9
	case off != nil && on == nil && direct == nil && (needed && c.hosts > 1 || c.about("gdr")):
		f.Confidence = 0.8
	case off != nil && on == nil && direct == nil && (c.Log == nil || c.Told):
		f.Confidence = 0.8
	case idle != nil && (c.is("slow") || c.about("gdr")):
		f.Confidence = 0.75
	case c.lowGDRLevel() != "" && c.multinode():
		f.Confidence, f.Cause = 0.6, "NCCL_NET_GDR_LEVEL="+c.lowGDRLevel()+" forbids GPUDirect RDMA beyond that distance. "+f.Cause
	case bounce != nil && direct == nil && on == nil && c.Told && (c.slow() || c.about("gdr")):
		f.Confidence = 0.7
		f.Cause = "Connections over the network do not say GDRDMA. " + f.Cause
	case c.toldGDR(f):
	case off != nil && on == nil && direct == nil:
		f.Severity, f.Confidence = finding.Note, 0.5
	default:
		return nil
	}
	return f
}

// toldGDR looks for GPUDirect's absence in what people tell: half of what the NIC
// can do, or a drop with a container or a release.
func (c *Case) toldGDR(f *finding.Finding) bool {
	rdma := c.in("ib", "roce")
	share := c.shareOfLine()
	drop := c.greatestDrop()
	switch {
	case (c.hurts("gpudirect") || c.hurts("gdr")) && c.is("hang"):
		f.Confidence, f.Evidence = 0.5, c.quotes(evidence.Hurts)
	case rdma && c.is("slow") && share > 0.3 && share < 0.65 && !c.in("vm"):
		f.Confidence, f.Evidence = 0.55, append(c.told("ib", "roce", "slow"), c.figureQuotes()...)
		f.Cause = fmt.Sprintf("NCCL reaches %.0f%% of what the NIC can do, which is what copying through host memory leaves. ", 100*share) + f.Cause
	case (rdma || c.in("container")) && drop >= 4 && drop < 20 && c.First(evidence.Release, "nccl", "kernel", "os") != nil:
		f.Confidence, f.Evidence = 0.55, append(c.told("nccl", "kernel", "os", "drop"), c.changeQuotes()...)
		f.Cause = "The rate fell several times over with a release, as it does when the new one no longer finds the way from NIC to GPU. " + f.Cause
	case c.First(evidence.Release, "kernel") != nil && drop >= 2:
		f.Confidence, f.Evidence = 0.5, c.told("kernel")
	case c.about("gdr") && c.slow() && !c.hurts("gdr") && !c.hurts("gpudirect"):
		f.Confidence, f.Evidence = 0.6, c.told("gdr", "slow")
	case c.in("pcie-gpu") && c.is("drop") && c.in("reducescatter") && drop >= 1.5:
		f.Confidence, f.Evidence = 0.45, append(c.told("pcie-gpu", "drop"), c.changeQuotes()...)
	default:
		return false
	}
	return true
}

// netWay is how connections over an RDMA network go: with GPUDirect ("gdr") or
// without.
func (c *Case) netWay(way string) *evidence.Observation {
	return c.Find(evidence.OverNet, func(o *evidence.Observation) bool { return o.Arg(1) == way && !strings.EqualFold(o.Arg(0), "Socket") })
}

// oneSided reports that the two ways belong to different hosts, or that nothing
// says whose they are.
func (c *Case) oneSided(a, b *evidence.Observation) bool {
	if len(a.Hosts) == 0 || len(b.Hosts) == 0 {
		return true
	}
	return !overlap(a.Hosts, b.Hosts)
}

// idlePeermem is the peer memory module with nobody using it.
func (c *Case) idlePeermem() *evidence.Observation {
	return c.Find(evidence.Peermem, func(o *evidence.Observation) bool { return o.Arg(1) == "0" })
}

// lowGDRLevel is a level that forbids GPUDirect RDMA where NIC and GPU share a switch.
func (c *Case) lowGDRLevel() string {
	switch v := c.value("NCCL_NET_GDR_LEVEL"); v {
	case "loc", "0":
		return v
	}
	return ""
}

func dmabuf(c *Case) *finding.Finding {
	o := c.failed("unsupported", "ibv_reg_dmabuf_mr", "mlx5dv_reg_dmabuf_mr")
	if o == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "DMA-BUF memory registration is not supported by the RDMA driver",
		Cause: "NCCL tries to give GPU memory to the NIC by DMA-BUF (GPUDirect RDMA without nvidia-peermem), and this kernel or OFED cannot.",
		Fix:   "NCCL_DMABUF_ENABLE=0 with nvidia-peermem loaded; or a newer kernel, OFED and open GPU driver.", Evidence: c.quotes(o),
	}
}
