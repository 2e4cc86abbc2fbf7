package doctor

import (
	"fmt"
	"strconv"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/unit"
)

// speedRules are about rates: what was measured against what can be.
func speedRules() []Rule {
	return []Rule{
		{"two-node-tree", "a rate above what the NICs carry on two nodes, tree against ring", "on two nodes a tree sends half as much over the network: expected", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md", nil, twoNodeTree},
		{"near-line-rate", "a rate of 70 % of the line or more", "the rate is near what the hardware gives: expected", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md", []string{"gdr-off"}, nearLine},
		{"as-predicted", "a rate beside the machine it was measured on", "the rate is what the machine is predicted to give: expected", "docs/accuracy.md", []string{"gdr-off"}, asPredicted},
		{"duplex-figure", "a rate beside the figure of an advertisement", "the advertised figure counts both directions", "https://www.nvidia.com/en-us/data-center/nvlink/", nil, duplexFigure},
		{"slow-network", "iperf or a rate of the wire itself", "the network itself is slow", "https://iperf.fr/", []string{"socket-fallback"}, slowNetwork},
		{"tcp-cpu-bound", "TCP on a fast link", "sockets are bound by the CPU", envGuide + "#nccl-socket-nthreads", nil, tcpBound},
		{"bond-one-port", "a bonded NIC, queue pairs a connection", "one queue pair uses one port of a bond", envGuide + "#nccl-ib-qps-per-connection", []string{"acs", "wire-faster-than-nccl"}, bondPort},
		{"nccl-regression", "a rate that changed with NCCL's release", "a release of NCCL chooses worse on this topology", "https://github.com/NVIDIA/nccl/issues", []string{"bootstrap-mismatch"}, regression},
		{"ring-or-tree", "rates of ring and tree, PXN that slows", "the algorithm that NCCL chooses is not the best here", envGuide + "#nccl-algo", nil, ringOrTree},
		{"wire-faster-than-nccl", "a test of the wire at line rate beside a low rate of NCCL", "the network is good, the way to the GPU or NCCL's use of it is not", trouble, nil, wireFaster},
		{"small-messages", "small payloads", "latency, not bandwidth, decides at small sizes", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md", nil, smallMessages},
		{"wrong-values", "nccl-tests' verdict", "a collective gave wrong results", trouble, nil, wrongValues},
	}
}

func twoNodeTree(c *Case) *finding.Finding {
	if !c.about("abovelimit") && !c.aboveLimit() && !(c.about("tree") && c.about("ring") && c.twoNodes() && !c.is("slow")) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.8, Title: "Expected: on two nodes a tree beats the NIC's rate",
		Cause: "With two nodes the tree sends each byte over the network once in each direction where the ring sends it twice, so bus bandwidth, which is defined for the ring, comes out up to twice the NICs' rate. That is no fault, and the figure does not prove the fabric healthy.",
		Fix:   "None; NCCL_ALGO=Ring, or four nodes and more, to judge the network.", Evidence: c.told("abovelimit", "tree", "ring"),
	}
}

// aboveLimit reports that somebody tells of more than what they say can come.
func (c *Case) aboveLimit() bool {
	for _, f := range c.Figures {
		for _, g := range c.Figures {
			if f.Expected && !g.Expected && f.Quote == g.Quote && g.Tool != "wire" && g.GBps > 1.1*f.GBps && !f.Bits == !g.Bits && c.twoNodes() {
				return true
			}
		}
	}
	return false
}

// twoNodes reports that two nodes are spoken of.
func (c *Case) twoNodes() bool {
	o := c.First(evidence.Setting, "multinode")
	return o != nil || c.hosts == 2
}

func nearLine(c *Case) *finding.Finding {
	share := 0.0
	for _, f := range c.Figures {
		if !f.Expected {
			continue
		}
		for _, g := range c.Figures {
			if !g.Expected && g.Bits == f.Bits && g.GBps <= f.GBps {
				share = max(share, g.GBps/f.GBps)
			}
		}
	}
	if share == 0 && c.toldOf() > 0 {
		share = c.toldOf()
	}
	if share < 0.7 || share < 0.8 && c.is("slow", "drop") || c.is("hang", "crash", "unstable") || c.greatestDrop() > 1.4 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.7, Title: fmt.Sprintf("Expected: %.0f%% of the line rate", 100*share),
		Cause: "Headers, flow control and NCCL's own steps take a part; 75 to 95 % of the NICs' rate is what healthy clusters reach.",
		Fix:   "None needed; a newer NCCL and large messages reach the upper end.", Evidence: c.figureQuotes(),
	}
}

// asPredicted compares the best rate that is told of with what the machine should
// give, where all of the machine is told.
func asPredicted(c *Case) *finding.Finding {
	if !c.Told || len(c.Figures) == 0 || len(c.Changes) > 0 || c.is("hang", "crash", "unstable", "drop", "wrong") || c.in("vm") {
		return nil
	}
	m := c.machine()
	if m == nil || len(m.assumed) > 0 {
		return nil
	}
	best := 0.0
	for _, f := range c.Figures {
		if f.Tool == "wire" || f.Expected || f.Bits {
			return nil // another comparison
		}
		best = max(best, f.GBps)
	}
	times, err := c.times(m, nil, c.settings(nil))
	if err != nil {
		return nil
	}
	last := len(costSizes) - 1
	n := float64(m.nodes * m.per)
	busbw := 2 * (n - 1) / n * float64(costSizes[last]) / (float64(times[last]) / float64(unit.Second)) / 1e9
	if best < 0.75*busbw || best > 1.4*busbw {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.65, Title: fmt.Sprintf("Expected: %.0f GB/s is what this machine is predicted to give", best),
		Cause: fmt.Sprintf("The model gives %.0f GB/s of bus bandwidth for a large all-reduce on %v; the measured rate is within its margin.", busbw, m),
		Fix:   "None needed; busbar predict shows the other sizes.", Evidence: c.figureQuotes(),
	}
}

// toldOf is the share in "600 Gb/s of 800".
func (c *Case) toldOf() float64 {
	for _, f := range c.Figures {
		if m := ofTotal.FindStringSubmatch(f.Quote.Text); m != nil {
			a, b := parseFloat(m[1]), parseFloat(m[2])
			if a > 0 && b >= a {
				return a / b
			}
		}
	}
	return 0
}

func parseFloat(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

func duplexFigure(c *Case) *finding.Finding {
	if !c.about("duplex") || c.about("abovelimit") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.6, Title: "Expected: the advertised figure counts both directions",
		Cause: "NVLink is advertised as the sum of both directions (H100: 900 GB/s is 450 each way) and collectives use one direction at a time; 355 GB/s is 79 % of 450, not 40 % of 900.",
		Fix:   "Compare with half of the advertised figure.", Evidence: c.told("duplex"),
	}
}

func slowNetwork(c *Case) *finding.Finding {
	var slow *evidence.Figure
	for _, f := range c.Rates("wire") {
		if f.GBps < 1.3 && (slow == nil || f.GBps < slow.GBps) { // 10 Gb/s and less
			slow = &f
		}
	}
	if slow == nil {
		if c.about("midlink") && c.slow() && !c.in("ib", "roce") && c.in("multinode") && !c.about("slowlink") {
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.5, Title: "The network is slow for this job: 25 or 40 Gb/s",
				Cause: "25 GbE carries 3 GB/s and 40 GbE 5 GB/s at best, for all GPUs of a host together; sharded training moves the parameters several times a step over it.",
				Fix:   "busbar need says which network the job needs; RDMA instead of TCP; shard inside a host and replicate across (hybrid sharding).", Evidence: c.told("midlink", "slow"),
			}
		}
		if c.about("slowlink") && c.slow() && !c.in("ib", "roce") {
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.7, Title: "The network itself is slow: 10 Gb/s or less",
				Cause: "Gigabit Ethernet carries 0.12 GB/s and 10 GbE 1.2 GB/s: gradients of a large model take seconds a step over it, whatever NCCL does.",
				Fix:   "A faster network between the hosts; else fewer bytes (gradient accumulation, compression) or training on one host.", Evidence: c.told("slowlink", "slow"),
			}
		}
		return c.thinNetwork()
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.85, Title: fmt.Sprintf("The network itself is slow: %.2g Gb/s", 8*slow.GBps),
		Cause: "A test without NCCL shows the same: gradients of a large model take seconds a step over this link, whatever NCCL does.",
		Fix:   "A faster network between the hosts; else fewer bytes (gradient accumulation, compression) or training on one host.", Evidence: c.quotes(slow.Quote),
	}
}

func tcpBound(c *Case) *finding.Finding {
	if !c.in("tcp") || c.in("roce", "ib", "efa") || !c.slow() || c.Has(evidence.ConnectError) {
		return nil
	}
	best := c.best(func(f evidence.Figure) bool { return f.Tool != "wire" && !f.Bits })
	if best == 0 || best > 8 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "TCP sockets are bound by the CPU",
		Cause: "One socket carries about 10 to 20 Gb/s because one core copies its bytes; a 100 Gb/s link needs several threads and sockets.",
		Fix:   "NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4 (their product at most 64), more channels (NCCL_MIN_NCHANNELS), jumbo frames; RDMA where the NIC can.", Evidence: append(c.told("tcp", "slow"), c.figureQuotes()...),
	}
}

func bondPort(c *Case) *finding.Finding {
	qps := c.Env("NCCL_IB_QPS_PER_CONNECTION")
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: "One queue pair uses one port of a bonded NIC",
		Cause: "A bond spreads connections, not bytes: with one queue pair a connection NCCL reaches one port's rate, half of the bond, where ib_write_bw with several reaches all.",
		Fix:   "NCCL_IB_QPS_PER_CONNECTION=2 (or 4) with NCCL_IB_SPLIT_DATA_ON_QPS=0; check the hash policy of bond and switch.",
	}
	switch {
	case c.about("bond") && (c.slow() || c.wireBeatsNCCL() > 0 || c.Told && !c.is("hang", "crash", "timeout")):
		f.Evidence = c.told("bond", "slow")
	case qps != nil && c.wireBeatsNCCL() > 0:
		f.Confidence, f.Evidence = 0.6, append(c.quotes("NCCL_IB_QPS_PER_CONNECTION"), c.wireQuotes()...)
		f.Cause = "Queue pairs a connection are set and the wire test with several reaches more than NCCL: how connections spread over ports and paths (bond, LACP, ECMP) is the first thing to check. " + f.Cause
	case c.bondInUse() != nil && qps == nil:
		f.Severity, f.Confidence, f.Evidence = finding.Note, 0.5, c.quotes(c.bondInUse())
		if c.slow() {
			f.Severity, f.Confidence = finding.Warn, 0.65
		}
	default:
		return nil
	}
	return f
}

// bondInUse is a list of adapters with a bond in it.
func (c *Case) bondInUse() *evidence.Observation {
	return c.Find(evidence.IBUsing, func(o *evidence.Observation) bool { return containsWord(o.Arg(0), "bond") })
}

func regression(c *Case) *finding.Finding {
	if c.about("releaseok") && (c.broken() || c.is("crash", "unstable", "wrong") || c.Has(evidence.RootMismatch)) && !c.is("slow") {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.82, Title: "It fails with one release of NCCL and not with another",
			Cause: "Nothing else changed, so the release is what differs: a bug of it, or a default that changed.",
			Fix:   "Stay on the release that works, or take the newest one; its release notes and issues name what was fixed.", Evidence: c.told("releaseok", "nccl", "crash"),
		}
	}
	if c.First(evidence.Release, "nccl") == nil || !c.is("drop", "slow") && c.greatestDrop() < 1.2 || c.Has(evidence.Completion, evidence.ShmFailure, evidence.VerbsFailure) {
		return nil
	}
	if c.is("crash", "wrong") && !c.is("drop") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "NCCL's release chooses worse here: a regression",
		Cause: "The same machines differ with NCCL's release only: its graph search, tuning or defaults changed for this topology.",
		Fix:   "Keep the good release, or try the newest; compare NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING of both (channels, Pattern lines, transports).", Evidence: append(c.told("nccl", "drop"), c.changeQuotes()...),
	}
}

func ringOrTree(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.65, Title: "Ring and tree differ: the choice of algorithm matters here",
		Cause: "Trees need fewer steps and win for small messages and many nodes; rings saturate several NICs better at large sizes. NCCL's estimate is not right for every machine, and a forced choice is right for some sizes only.",
		Fix:   "Leave NCCL_ALGO to NCCL or a tuner plugin (busbar predict --algo all shows the best per size); NCCL_ALGO=Ring for large messages here.",
	}
	switch {
	case c.about("pxn") && c.is("slow") || c.hurts("pxn"):
		f.Title = "Traffic through another GPU's NIC (PXN) is slow here"
		f.Cause = "With PXN a GPU sends through the NIC of another GPU over NVLink, which aggregates messages but costs where NVLink or the proxy's path is slow."
		f.Fix, f.Evidence = "NCCL_PXN_DISABLE=1 to compare", append(c.told("pxn", "slow"), c.quotes(evidence.Hurts)...)
	case c.about("tree") && c.about("ring") && !c.about("abovelimit") && !c.aboveLimit() && !c.is("hang", "crash", "wrong"):
		f.Evidence = append(c.told("tree", "ring"), c.figureQuotes()...)
		if !c.is("slow") && c.twoNodes() && !c.manyNodes() {
			f.Confidence = 0.4
		}
	case c.is("unstable") && c.wireBeatsNCCL() > 0:
		f.Confidence, f.Evidence = 0.5, append(c.told("unstable"), c.wireQuotes()...)
		f.Title = "NICs are not used evenly, or the algorithm does not suit"
		f.Fix = "NCCL_ALGO=Ring and each NIC alone (NCCL_IB_HCA==mlx5_0, then the next): each should give its own rate."
	default:
		return nil
	}
	return f
}

func wireFaster(c *Case) *finding.Finding {
	wire := c.wireBeatsNCCL()
	if wire == 0 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.5, Title: "The wire is fast and NCCL is not",
		Cause: fmt.Sprintf("A test without GPUs reaches %.0f Gb/s, so cable, switch and NIC are good; what is left is the way between GPU and NIC (ACS, IOMMU, PCIe, GPUDirect RDMA), and how NCCL uses it (queue pairs, channels, NIC choice).", 8*wire),
		Fix:   "ib_write_bw --use_cuda=0 between the same NICs tests the GPU's path; lspci -vvv | grep ACSCtl; NCCL_DEBUG=INFO for /GDRDMA.", Evidence: c.wireQuotes(),
	}
}

func smallMessages(c *Case) *finding.Finding {
	if !c.about("payload") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.6, Title: "Small messages are bound by latency",
		Cause: "Below about 1 MiB a collective takes its latency whatever the bandwidth; a thousand small ones take several times as long as one of the same bytes.",
		Fix:   "Bucket gradients (DDP's bucket_cap_mb, 25 MiB and more), fuse collectives, use larger micro-batches.", Evidence: c.told("payload"),
	}
}

func wrongValues(c *Case) *finding.Finding {
	if !c.Has(evidence.TableWrong) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.6, Title: "nccl-tests found wrong values",
		Cause: "Results of a collective are not what they must be: a protocol that is not safe here (LL128), a degraded link, or faulty memory.",
		Fix:   "Repeat with NCCL_PROTO=Simple, then host by host; nvidia-smi -q -d ECC; nvidia-smi nvlink --errorcounters.", Evidence: c.quotes(evidence.TableWrong),
	}
}
