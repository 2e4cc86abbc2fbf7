package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// pcieRules are about the way between GPU, NIC and memory inside a host.
func pcieRules() []Rule {
	return []Rule{
		{"acs", "ACS bits of bridges, completion error 4, a slow or failing GPUDirect path", "PCIe ACS sends GPU–NIC and GPU–GPU traffic through the root complex", trouble + "#pci-access-control-services-acs", []string{"nccl-error", "gdr-off", "p2p-off", "collective-timeout", "wire-faster-than-nccl"}, acs},
		{"iommu", "the kernel's command line and messages, RCCL's warning, P2P that hangs", "an IOMMU translates traffic between devices", trouble + "#pci-access-control-services-acs", []string{"nccl-error", "p2p-off", "collective-timeout"}, iommu},
		{"p2p-hang", "a hang with P2P on GeForce cards", "the driver reports peer access that does not work", envGuide + "#nccl-p2p-disable", []string{"collective-timeout"}, p2pHang},
		{"gdr-off", "NCCL's lines about GPUDirect RDMA, the peer memory module, half the expected rate", "GPUDirect RDMA is off: traffic goes through host memory", "https://docs.nvidia.com/cuda/gpudirect-rdma/", nil, gdrOff},
		{"dmabuf", "ibv_reg_dmabuf_mr that is not supported", "the RDMA driver is too old for DMA-BUF", envGuide + "#nccl-dmabuf-enable", []string{"nccl-error", "gdr-off"}, dmabuf},
		{"pcie-downgraded", "LnkSta of lspci", "a PCIe link trained below what it can do", "https://docs.nvidia.com/networking/", []string{"wire-faster-than-nccl"}, pcieDowngraded},
		{"numa", "GPUs far from the NIC or from each other, NPS, sockets", "traffic crosses CPU sockets (NUMA)", envGuide + "#nccl-ignore-cpu-affinity", nil, numa},
		{"cpu-binding", "how processes are bound to cores", "NCCL's threads share a core or sit on the wrong socket", envGuide + "#nccl-ignore-cpu-affinity", nil, cpuBinding},
		{"p2p-off", "GPUs of a host that talk through shared memory", "P2P between GPUs of a host is not used", envGuide + "#nccl-p2p-level", nil, p2pOff},
		{"vm-topology", "a virtual machine, bus ids that are not there, a topology file", "the virtual machine hides or distorts the PCIe topology", envGuide + "#nccl-topo-file", nil, vmTopology},
	}
}

const acsFix = "Clear ACS on every PCIe bridge (lspci -vvv | grep ACSCtl must show only minus signs): setpci -s BDF ECAP_ACS+6.w=0000 at boot, or in the BIOS; iommu=pt on the kernel's command line. NCCL_NET_GDR_LEVEL=LOC or NCCL_P2P_DISABLE=1 confirms it, slowly."

func acs(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "PCIe ACS redirects traffic between GPUs and NICs",
		Cause: "Access Control Services on PCIe bridges, or a translating IOMMU, send peer-to-peer traffic up to the root complex instead of through the switch: GPUDirect RDMA and P2P get slow, fail with completion error 4, or hang.",
		Fix:   acsFix,
	}
	bits := c.First(evidence.ACSOn)
	protection := c.status("4")
	if protection == nil {
		protection = c.verdictOf("LOC_PROT", "4")
	}
	redirect := bits != nil && (bits.Arg(0) == "" || strings.Contains(bits.Arg(0), "Redir") || strings.Contains(bits.Arg(0), "UpstreamFwd"))
	wire := c.wireBeatsNCCL()
	f.Evidence = c.quotes(evidence.ACSOn, protection)
	switch {
	case bits != nil && (c.broken() || c.is("slow") || protection != nil || wire > 0):
		f.Confidence = 0.92
	case redirect:
		f.Severity, f.Confidence = finding.Warn, 0.75
	case bits != nil:
		f.Severity, f.Confidence = finding.Warn, 0.5
	case protection != nil:
		f.Confidence = 0.8
	case c.helps("nccl_net_gdr_level=0"), c.helps("nccl_net_gdr_level=loc"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, c.quotes(evidence.Helps)
	case c.blames("local-nic"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, c.told("local-nic")
	case c.blames("pix") && c.is("hang"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.8, c.told("pix", "hang")
	case (c.hurts("gpudirect") || c.hurts("gdr")) && !c.Has(evidence.PeermemAbsent):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.quotes(evidence.Hurts)
	case wire > 0:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.55, c.wireQuotes()
		f.Cause = fmt.Sprintf("The wire carries %.0f GB/s a NIC in a test without GPUs and NCCL far less, so the loss is between GPU and NIC: ACS or a translating IOMMU is the first thing to check there. ", wire) + f.Cause
	case c.about("gpupath") && c.slow() && !c.Has(evidence.PeermemAbsent):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, append(c.told("gpupath"), c.figureQuotes()...)
		f.Cause = "The NIC is fast with host memory and slow with GPU memory, so the loss is on the PCIe path between GPU and NIC. " + f.Cause
	case c.about("acs"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.5, c.told("acs")
	case c.in("vm") && c.in("nvswitch", "ib", "roce") && (c.slow() || c.is("hang")) && !c.Has(evidence.NoRealPath):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.5, c.told("vm", "slow", "hang")
		f.Cause = "In a virtual machine GPUDirect RDMA needs ACS set on the host so that direct translated P2P is allowed, and ATS on the NIC; without, GPU and NIC talk through the root complex. " + f.Cause
	default:
		return nil
	}
	return f
}

const iommuFix = "iommu=pt (with intel_iommu=on or amd_iommu=on), or intel_iommu=off / amd_iommu=off, on the kernel's command line; or VT-d off in the BIOS; then a cold start. NCCL_P2P_DISABLE=1 confirms it."

func iommu(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "The IOMMU translates traffic between devices",
		Cause: "With the IOMMU (VT-d, AMD-Vi) in translating mode, P2P between GPUs and GPUDirect RDMA are redirected, slow, or hang with the GPUs at 100 %.",
		Fix:   iommuFix,
	}
	on := c.iommuOn()
	f.Evidence = c.quotes(evidence.IommuWarning, evidence.IommuFault, on)
	p2pHelps := c.helps("nccl_p2p_disable=1") || c.hurts("p2p") && c.is("hang")
	hang := c.is("hang") && !c.Has(evidence.ConnectError, evidence.Completion, evidence.OverNet)
	switch {
	case c.Has(evidence.IommuFault):
		f.Confidence = 0.95
	case c.Has(evidence.IommuWarning):
	case on != nil && (c.broken() || c.is("slow") || c.Has(evidence.OverShm)):
		f.Severity, f.Confidence = finding.Warn, 0.75
	case on != nil:
		f.Severity, f.Confidence = finding.Note, 0.5
	case p2pHelps:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, append(c.quotes(evidence.Helps, evidence.Hurts), c.told("hang")...)
	case c.blames("pix") && c.is("hang"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, c.told("pix", "hang")
	case c.in("amd-gpu") && hang:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.told("amd-gpu", "hang")
	case c.First(evidence.Release, "kernel") != nil && c.is("slow", "drop", "hang"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.told("kernel", "drop")
		f.Cause = "The speed changed with the kernel: newer kernels turn the IOMMU's translation on by default and take GPU memory by DMA-BUF instead of nvidia-peermem. " + f.Cause
	case c.in("geforce", "pcie-gpu") && hang && !c.multinodeTold():
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.55, c.told("geforce", "pcie-gpu", "hang")
	case c.corruptsInside():
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.told("wrong", "geforce", "pcie-gpu", "epyc")
		f.Cause = "Data is wrong between GPUs of one host that talk over PCIe: writes to a peer that the IOMMU redirects are lost without an error. " + f.Cause
	case c.about("iommu"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.5, c.told("iommu")
	default:
		return nil
	}
	return f
}

// multinodeTold reports that the words or records speak of several hosts.
func (c *Case) multinodeTold() bool {
	return c.in("multinode", "ib", "roce", "efa", "slingshot") || c.hosts > 1 || c.is("scale")
}

// iommuOn is a sign that the IOMMU translates.
func (c *Case) iommuOn() *evidence.Observation {
	pass := c.First(evidence.IommuMode, "passthrough") != nil
	var on *evidence.Observation
	for _, o := range c.All(evidence.IommuSetting) {
		switch {
		case o.Arg(0) == "iommu" && (o.Arg(1) == "pt" || o.Arg(1) == "off"), o.Arg(1) == "off":
			pass = true
		case o.Arg(1) == "on":
			on = o
		}
	}
	if pass {
		return nil
	}
	if on == nil {
		on = c.First(evidence.IommuMode, "translated")
	}
	return on
}

func p2pHang(c *Case) *finding.Finding {
	if !c.in("geforce") || !c.is("hang", "timeout") && !c.Has(evidence.Watchdog) || c.multinodeTold() || c.helps("nccl_p2p_disable=0") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "Peer access is reported for GeForce GPUs where it does not work",
		Cause: "Drivers have reported P2P for GeForce cards (the RTX 40 series foremost) that have none; NCCL then writes into nothing and the kernels spin at 100 % with no traffic.",
		Fix:   "NCCL_P2P_DISABLE=1 before the command (mpirun -x NCCL_P2P_DISABLE=1); a later driver; nvidia-smi topo -p2p r shows what is believed.", Evidence: c.told("geforce", "hang"),
	}
}

func pcieDowngraded(c *Case) *finding.Finding {
	o := c.First(evidence.LinkDegraded)
	if o == nil && c.about("pcielow") {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.7, Title: "A PCIe link runs below its capability",
			Cause: "A NIC or GPU on fewer lanes or an older generation than it can do is bound by that: x8 of generation 3 carries 8 GB/s, a port of 100 Gb/s needs 12.5.",
			Fix:   "lspci -vvv: LnkCap against LnkSta; another slot, riser or BIOS bifurcation; reseat.", Evidence: c.told("pcielow"),
		}
	}
	if o == nil {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: fmt.Sprintf("A PCIe link runs below its capability (%s, %s)", o.Arg(0), o.Arg(1)),
		Cause: "lspci marks the link as downgraded. An idle GPU lowers its speed to save power; a lower width, or a lower speed under load, is a bad riser, slot, bifurcation or retimer.",
		Fix:   "Look again under load (nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current); reseat; check the BIOS's bifurcation.", Evidence: c.quotes(evidence.LinkDegraded),
	}
	if o.Arg(1) == "x16" && !c.is("slow") {
		f.Severity = finding.Note // most likely an idle GPU
	}
	return f
}

func numa(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.55, Title: "Traffic crosses CPU sockets or NUMA nodes",
		Cause: "GPU and NIC, or two GPUs, hang off different sockets or root complexes: data goes through CPU memory and the link between sockets (UPI, xGMI), which is slower than the NIC and shared.",
		Fix:   "Use the NIC at PIX or PXB of each GPU (nvidia-smi topo -m); pin processes to the GPU's NUMA node; NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL as far as the root complex is good; NPS=4 on EPYC where SHM is used.",
	}
	switch {
	case c.Has(evidence.CPUEmpty):
		f.Confidence, f.Evidence = 0.5, c.quotes(evidence.CPUEmpty)
		f.Title = "Processes may not run on the cores near their GPU"
		if !c.is("slow") {
			f.Severity = finding.Note
		}
	case c.farNICs() != nil && c.is("slow"):
		f.Confidence, f.Evidence = 0.65, append([]finding.Quote{*c.farNICs()}, c.told("slow")...)
	case c.in("epyc", "pcie-gpu", "geforce") && !c.in("nvswitch", "vm") && c.is("slow") && !c.multinodeTold() && !c.Has(evidence.Release):
		f.Evidence = c.told("epyc", "pcie-gpu", "geforce", "slow")
		if c.hurts("p2p") || c.in("epyc") {
			f.Confidence = 0.65
		}
	case c.about("numa") && (c.slow() || c.about("pinned")) && !c.in("vm") && !c.is("hang", "crash"):
		f.Confidence, f.Evidence = 0.55, c.told("numa", "slow")
		if c.slow() {
			f.Confidence = 0.65
		}
	case c.in("pcie-gpu") && c.in("reducescatter") && c.is("drop"):
		f.Confidence, f.Evidence = 0.4, c.told("pcie-gpu", "drop")
	default:
		return nil
	}
	return f
}

// farNICs is a line of a topology in which some GPUs are near a NIC and others
// are not.
func (c *Case) farNICs() *finding.Quote {
	for _, o := range c.All(evidence.Layout) {
		if len(o.Quotes) > 0 {
			return &o.Quotes[0]
		}
	}
	return nil
}

func cpuBinding(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "Processes are bound to too few CPU cores",
		Cause: "NCCL's proxy threads run on the cores of their process. mpirun binds each process to one core by default (two ranks and fewer) and to a socket otherwise, and Slurm to as many as were asked for; then the threads that feed the NIC wait for each other.",
		Fix:   "mpirun --bind-to none (or numa); srun --cpu-bind=none or enough --cpus-per-task; NCCL_IGNORE_CPU_AFFINITY=1; taskset -cp PID shows it.",
	}
	bound := c.First(evidence.Binding, "core", "hwthread", "cores", "threads")
	var one *evidence.Observation
	for _, o := range c.All(evidence.CPUSet) {
		if !strings.ContainsAny(o.Arg(0), ",-") {
			one = o
		}
	}
	switch {
	case one != nil:
		f.Confidence, f.Evidence = 0.8, c.quotes(one, bound)
	case bound != nil && c.is("slow"):
		f.Confidence, f.Evidence = 0.7, c.quotes(bound)
	case bound != nil:
		f.Severity, f.Confidence, f.Evidence = finding.Note, 0.4, c.quotes(bound)
	case c.in("mpi") && c.is("slow") && !c.is("hang") && !c.rdma():
		f.Confidence, f.Evidence = 0.6, c.told("mpi", "slow")
	default:
		return nil
	}
	return f
}

func p2pOff(c *Case) *finding.Finding {
	shm := c.First(evidence.OverShm)
	set := c.value("NCCL_P2P_DISABLE") == "1"
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.75, Title: "P2P between GPUs of a host is switched off",
		Cause: "NCCL_P2P_DISABLE=1 (or a low NCCL_P2P_LEVEL) sends traffic between GPUs of a host through host memory; on NVLink machines that is many times slower. It is a common left-over of debugging.",
		Fix:   "unset NCCL_P2P_DISABLE NCCL_P2P_LEVEL", Evidence: c.quotes("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", shm),
	}
	switch {
	case set && !c.in("geforce") && !c.experiment():
	case set:
		f.Severity = finding.Note
	case c.Has(evidence.P2PFault):
		f.Title, f.Cause = "Peer access between GPUs failed", "CUDA refused peer access between two GPUs: an IOMMU or ACS, a container that hides one of them, or GPUs that have none."
		f.Fix, f.Evidence, f.Confidence = "nvidia-smi topo -p2p r; the IOMMU and ACS of the host; all GPUs of a job visible in the container.", c.quotes(evidence.P2PFault), 0.6
	case shm != nil && c.Has(evidence.OverP2P):
		f.Severity, f.Confidence, f.Title = finding.Note, 0.4, "Some GPUs of a host talk through shared memory"
		f.Cause = "Pairs without P2P (other sockets, beyond NCCL_P2P_LEVEL) go through host memory, which is right on many PCIe machines."
		f.Fix = "nvidia-smi topo -m shows the distances; NCCL_P2P_LEVEL=SYS tries P2P across sockets."
	case shm != nil:
		f.Severity, f.Confidence, f.Title = finding.Note, 0.4, "GPUs of a host talk through shared memory"
		f.Cause = "NCCL uses host memory between GPUs: they have no NVLink and no P2P that NCCL trusts (PHB and beyond), or an IOMMU, ACS or container prevents it."
		f.Fix = "nvidia-smi topo -p2p r; if it says OK, NCCL_P2P_LEVEL=PHB or SYS tries it."
	default:
		return nil
	}
	return f
}

func vmTopology(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "The virtual machine's PCIe topology is not the real one",
		Cause: "In a virtual machine the PCI tree is flat or made up, so NCCL does not see which NIC is near which GPU, uses few of the NICs or channels, or takes the wrong ones.",
		Fix:   "NCCL_TOPO_FILE with the machine's topology (the cloud's image or aws-ofi-nccl, Azure's /opt/microsoft/*.xml have it); keep the tree of cpu and pci elements as it is and let NCCL discover GPUs and NICs; or a hypervisor that shows PCIe switches.",
	}
	switch {
	case c.Has(evidence.NoRealPath):
		f.Confidence, f.Evidence = 0.85, c.quotes(evidence.NoRealPath, evidence.TopoFile, "NCCL_TOPO_FILE")
		f.Cause = "A bus id of the topology file is not on this machine: the file was made for another one, or its GPU tags and bus ids are the host's. " + f.Cause
	case c.in("vm") && c.Has(evidence.ConnectError) && !c.slow():
		return nil // connections that fail have nothing to do with PCIe
	case c.in("vm") && (c.slow() || c.is("hang", "crash") || c.about("gdr") && !c.about("howto")):
		f.Evidence = c.told("vm", "slow", "drop", "onenic")
	case c.Has(evidence.NoLinkSpeed) && c.Told:
		f.Evidence = c.quotes(evidence.NoLinkSpeed)
		f.Cause = "The speed of PCIe links is unknown here, as it is in virtual machines and with old kernels, so NCCL cannot rank its ways. " + f.Cause
	case c.in("vm") && c.about("topofile", "onenic", "numa", "topology"):
		f.Evidence = c.told("vm", "topofile")
		if !c.is("slow", "crash", "hang") && (c.about("howto") || !c.about("onenic", "numa", "topology", "topofile")) {
			f.Severity, f.Confidence = finding.Note, 0.7
			f.Title = "How a virtual machine's topology file must look"
		}
	case c.about("topofile") && c.is("slow", "crash"):
		f.Confidence, f.Evidence = 0.5, c.told("topofile")
	default:
		return nil
	}
	if c.Env("NCCL_TOPO_FILE") != nil && !c.Has(evidence.NoRealPath) {
		f.Confidence -= 0.2
	}
	return f
}
