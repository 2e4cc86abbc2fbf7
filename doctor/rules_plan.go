package doctor

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// planRules are about what NCCL made of the machine.
func planRules() []Rule {
	return []Rule{
		{"graph-search", "no path for a pattern, or a graph of 0.1 GB/s", "NCCL's search found no ring and fell back to a bad one", trouble, []string{"plan-differs"}, graphSearch},
		{"topology-limit", "too many nodes in the topology", "the topology is larger than this release can hold", "https://github.com/NVIDIA/nccl/issues/2160", nil, topologyLimit},
		{"plan-differs", "graphs or channels that differ between ranks", "ranks or hosts do not have the same plan", trouble, nil, planDiffers},
		{"nodes-miscounted", "nNodes against the hosts of the log", "NCCL counts other nodes than there are hosts", envGuide + "#nccl-hostid", nil, nodesMiscounted},
		{"topology-file", "NCCL's line about a topology file, or about what it could not use of it", "a file replaces what NCCL would find on the machine", envGuide + "#nccl-topo-file", []string{"nccl-error"}, topologyFile},
		{"single-rank", "rings of rank 0 alone, a bus bandwidth of 0", "every process runs a job of its own: nccl-tests without MPI", "https://github.com/NVIDIA/nccl-tests#build", nil, singleRank},
		{"single-nic", "one NIC in use where there are several", "only one NIC is used", envGuide, nil, singleNIC},
		{"nic-shared", "fewer NICs than GPUs of a host, or words that say so", "several GPUs of a host share a NIC", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cross-nic", nil, nicShared},
		{"nvls-absent", "NCCL's line about multicast", "NVLink SHARP is not available", envGuide + "#nccl-nvls-enable", nil, nvlsAbsent},
	}
}

func graphSearch(c *Case) *finding.Finding {
	var poor *evidence.Observation
	for _, o := range c.All(evidence.Graph) {
		if bw, err := strconv.ParseFloat(o.Arg(1), 64); err == nil && bw <= 0.15 {
			poor = o
		}
	}
	if !c.Has(evidence.NoPath) && poor == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "NCCL's graph search failed and fell back to a simple ring",
		Cause: "No ring or tree fits the topology as NCCL sees it, so it takes the GPUs in order on one channel at 0.1 GB/s: a regression of the release on this topology, a wrong topology file, or NICs that are not visible to all GPUs.",
		Fix:   "Another release of NCCL; NCCL_PXN_DISABLE=1, NCCL_CROSS_NIC=1 or a right NCCL_TOPO_FILE; NCCL_DEBUG_SUBSYS=GRAPH shows the search.", Evidence: c.quotes(evidence.NoPath, poor),
	}
}

func topologyLimit(c *Case) *finding.Finding {
	if !c.Has(evidence.TopologyLimit) && !c.about("topolimit") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: "The topology has more elements than this release of NCCL takes",
		Cause: "NCCL's topology XML holds a fixed number of elements (256 in releases before 2.28); machines with 32 NICs and many PCIe bridges exceed it.",
		Fix:   "A newer NCCL; or a trimmed NCCL_TOPO_FILE.", Evidence: append(c.quotes(evidence.TopologyLimit), c.told("topolimit")...),
	}
}

func planDiffers(c *Case) *finding.Finding {
	if c.about("crossnic") && c.in("multinode") || c.about("crossrail") {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.55, Title: "Hosts do not build the same rings (cross-rail traffic)",
			Cause: "NCCL's search gave hosts different results (crossNic 0 and 1, or trees and PXN that leave the rail), so traffic changes rails and meets in the spine.",
			Fix:   "Compare the Pattern lines of all hosts (NCCL_DEBUG_SUBSYS=GRAPH); NCCL_CROSS_NIC=0 everywhere; equal NICs and topology on all hosts.", Evidence: c.told("crossnic", "crossrail"),
		}
	}
	if c.Log == nil {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		counts := map[int]string{}
		for _, r := range m.Ranks {
			if r.Coll > 0 {
				counts[r.Coll] = r.Host
			}
		}
		if len(counts) > 1 {
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.6, Title: "Ranks of one communicator have different numbers of channels",
				Cause: fmt.Sprintf("Ranks report different plans (%d of them); the slowest host's plan decides, and a disagreement can hang.", len(counts)),
				Fix:   "Compare hosts: topology (busbar map), driver, settings.", Evidence: c.quotes(evidence.CollChannels),
			}
		}
	}
	return nil
}

func nodesMiscounted(c *Case) *finding.Finding {
	if c.about("samehost") && c.slow() {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.7, Title: "Containers of one host may count as two hosts",
			Cause: "NCCL tells hosts apart by host name and boot id. Containers with names of their own look like different hosts, and their GPUs then talk through the network instead of NVLink or P2P.",
			Fix:   "One container for the GPUs of a host; or NCCL_HOSTID set to the host's name, with IPC namespace and /dev/shm shared.", Evidence: c.told("samehost", "slow"),
		}
	}
	if c.Log == nil {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		seen, ranks := map[string]bool{}, map[int]bool{}
		for _, r := range m.Ranks {
			seen[r.Host], ranks[r.Rank] = true, true
		}
		if m.NNodes == 0 || m.NRanks == 0 || len(ranks) != m.NRanks {
			continue // not all of them are in the log
		}
		if len(seen) == 0 || len(seen) == m.NNodes || seen[""] {
			continue
		}
		f := &finding.Finding{
			Severity: finding.Warn, Confidence: 0.6, Title: fmt.Sprintf("NCCL counts %d nodes on %d hosts", m.NNodes, len(seen)),
			Cause: "NCCL tells hosts apart by host name and boot id. Containers of one host that hide it, or NCCL_HOSTID, split a host, and GPUs of it then talk through the network.",
			Fix:   "Share the host's UTS and IPC namespaces between containers of a job, or set NCCL_HOSTID to the host's name.", Evidence: c.quotes("NCCL_HOSTID"),
		}
		if m.NNodes < len(seen) {
			f.Severity, f.Confidence = finding.Note, 0.5
			f.Cause = "Fewer nodes than hosts: hosts joined by NVLink (MNNVL) count as one, and so do hosts with equal names and boot ids."
			f.Fix = "Nothing on machines with NVLink between hosts; else give each host a name of its own or NCCL_HOSTID."
		}
		if c.Env("NCCL_HOSTID") != nil {
			f.Severity = finding.Note
		}
		return f
	}
	return nil
}

func topologyFile(c *Case) *finding.Finding {
	if c.Has(evidence.TopoFault) {
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.85, Title: "A topology or graph file does not fit this machine",
			Cause: "NCCL could not use what the file says: it names a GPU or NIC that is not here (a file for a larger machine, or for all GPUs where a container shows some), or it is written for another release.",
			Fix:   "unset NCCL_TOPO_FILE NCCL_GRAPH_FILE (look in /etc/nccl.conf too, where cloud images set them) and compare; then the file of this machine's type.", Evidence: c.quotes(evidence.TopoFault, "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"),
		}
	}
	if !c.Has(evidence.TopoFile) {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "A topology file replaces what NCCL finds",
		Cause: "NCCL_TOPO_FILE (or a file of the cloud's image) tells NCCL the machine's topology. It is needed in virtual machines; one of another machine, or from before a change, makes NCCL choose few channels or the wrong NICs without a word.",
		Fix:   "Compare with what NCCL finds itself: NCCL_TOPO_FILE=/dev/null NCCL_TOPO_DUMP_FILE=own.xml, then busbar map of both.", Evidence: c.quotes(evidence.TopoFile, "NCCL_TOPO_FILE"),
	}
	if c.slow() {
		f.Severity = finding.Warn
	}
	return f
}

func singleRank(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Every process runs alone: nccl-tests was built without MPI",
		Cause: "Each process is rank 0 of a communicator of one, so nothing is exchanged and the bus bandwidth is 0.",
		Fix:   "make MPI=1 MPI_HOME=…; the header must list every rank once, and nranks must be the number of GPUs.",
	}
	lone := c.First(evidence.LoneRing)
	switch {
	case lone != nil && c.ranks <= 1:
		f.Evidence = c.quotes(lone)
		if !c.in("multinode") && !c.about("nocomm") && c.Log != nil && c.hosts < 2 {
			f.Severity, f.Confidence = finding.Note, 0.5 // one GPU alone may be meant
		}
	case c.about("busbw0"), c.about("nocomm") && c.ranks <= 1:
		f.Confidence, f.Evidence = 0.75, c.told("busbw0", "nocomm")
	case c.testsApart() != nil:
		f.Evidence = c.testsApart()
	case c.zeroTables():
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.quotes(evidence.Average)
	default:
		return nil
	}
	return f
}

// zeroTables reports several tables of one rank each.
func (c *Case) zeroTables() bool {
	alone := 0
	for _, t := range c.Tables {
		if t.NRanks() > 1 {
			return false
		}
		if t.NRanks() == 1 {
			alone++
		}
	}
	return alone > 1
}

func singleNIC(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.65, Title: "Only one NIC is used",
		Cause: "NCCL puts all channels on one NIC although there are several: NCCL_IB_HCA or a topology that shows only one near, merged ports, or settings that limit the NICs of a channel (NCCL_P2P_PER_CHANNEL_NET_BW, NCCL_NETDEVS_POLICY).",
		Fix:   "unset those settings; NCCL_IB_HCA with all compute NICs; NCCL_CROSS_NIC and nvidia-smi topo -m; each channel line should name another NET/IB/k.",
	}
	if o, n := c.idleNICs(); o != nil {
		f.Cause = fmt.Sprintf("The hosts have %d RDMA devices and every connection goes over NET/IB/0. ", n) + f.Cause
		f.Evidence = c.quotes(o, evidence.OverNet)
		return f
	}
	if up := c.devicesUp(); up > 1 && oneDevice(c.value("NCCL_IB_HCA")) && c.is("slow", "drop") {
		f.Cause = fmt.Sprintf("NCCL_IB_HCA=%s names one of %d RDMA devices whose links are up. ", c.value("NCCL_IB_HCA"), up) + f.Cause
		f.Confidence, f.Evidence = 0.75, c.quotes("NCCL_IB_HCA", evidence.RDMANetDev)
		return f
	}
	if hca := c.value("NCCL_IB_HCA"); oneDevice(hca) && c.slow() && c.wireBeatsNCCL() == 0 && severalNICs.MatchString(c.toldText()) {
		f.Cause = "NCCL_IB_HCA=" + hca + " names one NIC and there are several. " + f.Cause
		f.Evidence = c.quotes("NCCL_IB_HCA")
		return f
	}
	if c.about("onenic") || c.blames("nic") && c.is("slow") && !c.is("crash", "hang") {
		f.Evidence = c.told("onenic", "nic")
		return f
	}
	return nil
}

// devicesUp counts the RDMA devices that ibdev2netdev shows with a link.
func (c *Case) devicesUp() int {
	n := 0
	for _, o := range c.All(evidence.RDMANetDev) {
		if o.Arg(1) == "Up" {
			n++
		}
	}
	return n
}

// oneDevice reports a list of one NIC, by its whole name.
func oneDevice(hca string) bool {
	return hca != "" && !strings.ContainsAny(hca, ",^") && hca[len(hca)-1] >= '0' && hca[len(hca)-1] <= '9'
}

var severalNICs = regexp.MustCompile(`(?i)\b(?:[2-9]|\d\d|two|four|eight)(?:x| x | )(?:\d+ ?G\S* )?(?:IB |RDMA |RoCE )?(?:NICs|HCAs|rails|\d+G)`)

// toldText is all that was told, for patterns that span what is told apart.
func (c *Case) toldText() string {
	var b strings.Builder
	for _, k := range []evidence.Kind{evidence.Symptom, evidence.Setting, evidence.Topic} {
		for _, q := range c.quotes(k) {
			b.WriteString(q.Text + "\n")
		}
	}
	return b.String()
}

// idleNICs is the list of adapters of which the connections use the first alone,
// although there are at least as many as GPUs that could use them.
func (c *Case) idleNICs() (*evidence.Observation, int) {
	if c.Log == nil {
		return nil, 0
	}
	devs := map[int]bool{}
	n := 0
	for i := range c.Log.Connections {
		if x := &c.Log.Connections[i]; x.Transport == "NET" && x.Net == "IB" {
			devs[x.NetDev] = true
			n++
		}
	}
	list := c.All(evidence.IBUsing)
	if n < 8 || len(devs) != 1 || len(list) == 0 {
		return nil, 0
	}
	have := strings.Count(list[0].Arg(0), ",") + 1
	if have < 2 || strings.Contains(list[0].Arg(0), "bond") {
		return nil, 0
	}
	// One GPU a host needs one NIC.
	local := 0
	for i := range c.Log.Comms {
		for _, r := range c.Log.Comms[i].Ranks {
			local = max(local, r.LocalRanks)
		}
	}
	if local < 2 {
		return nil, 0
	}
	return list[0], have
}

func nicShared(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: "Several GPUs of a host share one NIC",
		Cause: "A ring that leaves a host enters it again through the same NIC, and every GPU that talks to another host divides the NIC's rate: two GPUs a NIC get half of it each, and a flat ring over hosts can be slower than one GPU a host.",
		Fix:   "A NIC for every GPU where there are more (NCCL_IB_HCA with all of them); trees or a hierarchy across hosts (NCCL_ALGO unset or Tree); busbar predict --compare shows layouts side by side.",
	}
	if c.about("sharednic") {
		f.Evidence = append(c.told("sharednic", "slow"), c.figureQuotes()...)
		return f
	}
	o, gpus, nics := c.sharers()
	if o == nil {
		return nil
	}
	f.Title = fmt.Sprintf("%d GPUs of a host share %s", gpus, words.Plural(nics, "NIC"))
	f.Severity, f.Confidence, f.Evidence = finding.Note, 0.6, c.quotes(o)
	if c.slow() {
		f.Severity = finding.Warn
	}
	return f
}

// sharers are the GPUs of a host and its fewer NICs, in a job over several hosts.
func (c *Case) sharers() (o *evidence.Observation, gpus, nics int) {
	list := c.All(evidence.IBUsing)
	if c.Log == nil || len(list) == 0 {
		return nil, 0, 0
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		for _, r := range m.Ranks {
			if max(r.NNodes, m.NNodes) > 1 {
				gpus = max(gpus, r.LocalRanks)
			}
		}
	}
	nics = strings.Count(list[0].Arg(0), ",") + 1
	if gpus < 2 || nics >= gpus {
		return nil, 0, 0
	}
	return list[0], gpus, nics
}

func nvlsAbsent(c *Case) *finding.Finding {
	if !c.Has(evidence.NVLSAbsent) || c.value("NCCL_NVLS_ENABLE") == "0" {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "NVLink SHARP (multicast) is not available",
		Cause: "The GPUs or the driver offer no multicast. That is right below Hopper and without NVSwitch; on H100 and newer it needs the fabric manager and a recent driver.",
		Fix:   "On Hopper or newer with NVSwitch: nvidia-smi -q | grep -A3 Fabric; driver 530 or newer.", Evidence: c.quotes(evidence.NVLSAbsent),
	}
}
