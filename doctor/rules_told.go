package doctor

import (
	"regexp"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// ofTotal reads "600 Gb/s of 800".
var ofTotal = regexp.MustCompile(`(\d+(?:\.\d+)?) ?G[Bb](?:/s|ps) of (?:~?)(\d+(?:\.\d+)?)`)

func containsWord(s, w string) bool { return strings.Contains(strings.ToLower(s), w) }

// toldRules are about fabrics and jobs, mostly from what people tell: they are
// suspicions and say what to check first.
func toldRules() []Rule {
	return []Rule{
		{"fabric", "rates that fall with nodes, pairs that differ, routing, oversubscription", "the fabric between hosts does not carry what its hosts send", "https://docs.nvidia.com/networking/", nil, fabric},
		{"linear-growth", "a time that grows with the world size", "a flat ring: latency grows with every rank", envGuide + "#nccl-algo", nil, linearGrowth},
		{"cross-node-tp", "tensor parallelism over nodes", "tensor parallelism crosses the slow network", "https://arxiv.org/abs/2104.04473", nil, crossNodeTP},
		{"pipeline-placement", "bubbles of a pipeline", "pipeline stages lie on far sides of the network", "https://arxiv.org/abs/2104.04473", nil, pipelinePlacement},
		{"other-traffic", "other traffic on the training network", "logging, storage or data loading share the training network", trouble, nil, otherTraffic},
		{"first-checks", "an error or hang without a line that says why", "what to check first", trouble, nil, firstChecks},
		{"init-hang", "a hang while setting up", "ranks do not agree on, or cannot reach, the network", trouble, nil, initHang},
	}
}

func fabric(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "The fabric between hosts is the limit (routing, oversubscription)",
		Cause: "Hosts reach each other at different or falling rates although each NIC is good: static routes collide on one uplink, leaf switches have less upward than downward (oversubscription), or NICs hang behind slow PCIe. Two nodes are no measure: their tree beats the NICs' rate.",
		Fix:   "Pairwise tests over all hosts (busbar bench pairs); adaptive routing (NCCL_IB_ADAPTIVE_ROUTING=1, a fitting service level) or more paths (NCCL_IB_QPS_PER_CONNECTION=4); hosts of a job under one leaf; compare with NCCL_ALGO=Ring.",
	}
	switch {
	case c.about("oversub"):
		f.Confidence, f.Evidence = 0.75, c.told("oversub", "slow")
	case c.blames("direction") && len(c.Figures) > 1:
		f.Confidence, f.Evidence = 0.7, append(c.told("direction"), c.figureQuotes()...)
	case c.about("linear") && !c.blames("racks", "direction"):
		return nil // latency, not the fabric
	case c.is("scale") && c.is("slow") && !c.is("hang", "crash") && !c.Has(evidence.VerbsFailure):
		f.Evidence = append(c.told("scale", "slow"), c.figureQuotes()...)
	case c.manyNodes() && c.is("slow") && !c.is("hang", "crash") && len(c.Figures) > 0 && !c.Has(evidence.Release, evidence.VerbsFailure) && !c.about("tree"):
		f.Confidence, f.Evidence = 0.5, append(c.told("multinode", "slow"), c.figureQuotes()...)
	case c.about("crossrail"):
		f.Confidence, f.Evidence = 0.6, c.told("crossrail")
	case (c.blames("racks") || c.about("routing")) && (c.slow() || c.is("unstable")):
		f.Confidence, f.Evidence = 0.65, append(c.told("racks", "routing", "slow"), c.figureQuotes()...)
	case c.is("scale") && (c.is("unstable") || c.slow()) && !c.is("hang", "crash"):
		f.Evidence = append(c.told("scale", "unstable"), c.figureQuotes()...)
	default:
		return nil
	}
	return f
}

// manyNodes reports that more than two nodes are spoken of.
func (c *Case) manyNodes() bool {
	return slices.ContainsFunc(c.All(evidence.Setting), func(o *evidence.Observation) bool {
		return o.Arg(0) == "multinode" && slices.ContainsFunc(o.Quotes, func(q finding.Quote) bool { return moreNodes.MatchString(q.Text) })
	}) || c.hosts > 2
}

var moreNodes = regexp.MustCompile(`(?i)\b(?:[3-9]|\d{2,5})(?:x\d+ (?:NVIDIA )?[A-Z]|x Dell| ?(?:nodes|hosts|servers)|-node)|/ \d+ nodes`)

func linearGrowth(c *Case) *finding.Finding {
	if !c.about("linear") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: "Time grows with the number of ranks: a flat ring",
		Cause: "A ring takes 2(n−1) steps, so its latency grows with every rank; small and middle messages then scale linearly, and a ring through one switch meets there.",
		Fix:   "Trees or a hierarchy (NCCL_ALGO unset, or Tree/NVLSTree for small messages); larger buckets; busbar predict --compare shows the sizes.", Evidence: c.told("linear"),
	}
}

func crossNodeTP(c *Case) *finding.Finding {
	if !c.about("tp") || !c.in("multinode") && !c.is("slow") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: "Tensor parallelism crosses nodes",
		Cause: "Tensor parallelism reduces activations twice a layer and direction, which NVLink carries and a network an order of magnitude slower does not.",
		Fix:   "Tensor parallelism at most the GPUs of a node; pipeline or data parallelism across (busbar plan finds the split).", Evidence: c.told("tp", "multinode"),
	}
}

func pipelinePlacement(c *Case) *finding.Finding {
	if !c.about("pp") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.65, Title: "Pipeline stages are placed across the slow part of the network",
		Cause: "Neighbouring stages exchange activations for every micro-batch; when they lie on opposite sides of a spine, or there are few micro-batches, all stages wait (bubbles).",
		Fix:   "Neighbouring stages in one rack; more micro-batches than four times the stages; an interleaved schedule (busbar plan, busbar step).", Evidence: c.told("pp"),
	}
}

func otherTraffic(c *Case) *finding.Finding {
	if !c.about("traffic") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.65, Title: "Other traffic shares the training network",
		Cause: "Logging, telemetry, storage or data loading on the NICs of the collectives causes drops and jitter: the collective waits for its slowest link.",
		Fix:   "A network of its own for training (NCCL_IB_HCA, NCCL_SOCKET_IFNAME without the storage NICs), or traffic classes (NCCL_IB_TC, NCCL_IB_SL).", Evidence: c.told("traffic"),
	}
}

// firstChecks is for errors that name no cause: the likeliest first.
func firstChecks(c *Case) *finding.Finding {
	o := c.First(evidence.TorchError, "ncclSystemError")
	if o == nil || c.Log != nil || c.Has(evidence.ConnectError, evidence.ShmFailure, evidence.VerbsFailure, evidence.Completion, evidence.PeerGone) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.5, Title: "Unhandled system error: most often the wrong network interface",
		Cause: "ncclSystemError is a system call that failed. Without NCCL's warnings the likeliest causes are, in this order: an interface that does not reach the other hosts (docker0, virbr0, a wrong subnet), a firewall, a full /dev/shm in a container, limits.",
		Fix:   "NCCL_SOCKET_IFNAME=<the cluster's interface, e.g. eth0>; then NCCL_DEBUG=INFO and the first WARN.", Evidence: c.quotes(o),
	}
}

// initHang is for hangs at the set-up of which nothing else is known.
func initHang(c *Case) *finding.Finding {
	o := c.First(evidence.Topic, "init")
	if !c.is("hang") || o == nil && !c.in("multinode", "mpi") || c.Has(evidence.Completion, evidence.ConnectError, evidence.Counter, evidence.Verdict, evidence.Hurts, evidence.Helps, evidence.DeviceFailure) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.4, Title: "Hosts do not agree on the network, or cannot reach each other",
		Cause: "A hang between hosts without an error is most often a network that is not the same everywhere (one host with InfiniBand, another without; other NICs or libraries), a firewall, or an interface that does not reach.",
		Fix:   "NCCL_DEBUG=INFO on all ranks: \"Using network\" and the list of NICs must be the same; a plain MPI program first; nc between the hosts; NCCL_IB_DISABLE=1 everywhere to compare.", Evidence: c.told("hang", "multinode", "mpi", "init"),
	}
}
