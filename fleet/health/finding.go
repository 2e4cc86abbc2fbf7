package health

import (
	"fmt"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

// Kinds of faults, beyond those of one table of pairs, which mean the same here: pairs.SlowHost,
// pairs.SlowOut, pairs.SlowIn, pairs.SlowPair, pairs.OneWay.
const (
	SlowNIC          finding.Kind = "slow-nic"           // one rail of a node, both ways
	SlowNICOut       finding.Kind = "slow-nic-out"       // sending
	SlowNICIn        finding.Kind = "slow-nic-in"        // receiving
	SlowLeaf         finding.Kind = "slow-leaf"          // all pairs between a leaf and the others, both ways
	SlowLeafOut      finding.Kind = "slow-leaf-out"      // out of the leaf
	SlowLeafIn       finding.Kind = "slow-leaf-in"       // into the leaf
	SlowPath         finding.Kind = "slow-path"          // all pairs between two leaves
	SlowRail         finding.Kind = "slow-rail"          // all pairs of a rail
	SlowFleet        finding.Kind = "slow-fleet"         // most pairs became slower together, of all or of one sort
	Unreachable      finding.Kind = "silent"             // a node without heartbeats
	UnreachableFleet finding.Kind = "silent-fleet"       // most nodes at once: rather their way to the server
	LateBeats        finding.Kind = "late-beats"         // a node whose heartbeats have gaps
	LinkDown         finding.Kind = "link-down"          // a port that was up
	Flapping         finding.Kind = "flapping"           // a port that goes down and up
	Errors           finding.Kind = "errors"             // counters of errors that rise
	Loss             finding.Kind = "loss"               // counters of lost and re-sent packets that rise
	NotReady         finding.Kind = "receiver-not-ready" // those of a sender whose receivers have no buffers ready
	Congestion       finding.Kind = "congestion"         // a port that the network holds with pause frames
	SlowTaker        finding.Kind = "slow-receiver"      // a port that holds the network: its host is slow
	Marked           finding.Kind = "congestion-marks"   // a port whose traffic meets far more congestion than its peers'
)

// rule is what is said of a kind of finding that is not one of causes: how much it matters and how sure it is, unless
// the figures say otherwise, and the words. The first word of a text is who.
type rule struct {
	severity   finding.Severity
	confidence float64
	text, fix  string
}

var rules = map[finding.Kind]rule{
	Unreachable: {
		finding.Warn, 0.9, "%s is unreachable since %s.",
		"Check whether it is up and its agent runs (systemctl status, console, BMC); drain it until it is back.",
	},
	UnreachableFleet: {
		finding.Error, 0.9,
		"%[2]d of %[3]d nodes are unreachable at the same time: probably the network between them and this server, not " +
			"the nodes.",
		"Check the management network and this server's own connection before draining anything.",
	},
	LateBeats: {
		finding.Warn, 0.8, "%s comes and goes: three gaps between its heartbeats within an hour.",
		"Look for a node that hangs (memory, I/O, kernel log), an agent that restarts, or a flapping management link.",
	},
	LinkDown: {
		finding.Error, 0.99, "The link of %s is down since %s.",
		"Check cable, transceiver and switch port (ibstat, ip link, ethtool); drain the node until it is up.",
	},
	Flapping: {
		finding.Warn, 0.9, "The link of %s flaps: it fell %d times within an hour.",
		"Reseat or replace cable and transceiver, then the NIC; look at the switch port's errors. Drain the node: a job " +
			"loses its connections at every fall.",
	},
	Errors: {
		finding.Warn, 0.9, "Port %s has errors of its link: %s.",
		"Clean or replace cable and transceiver, then the NIC (ibqueryerrors, mlxlink -d DEV -m, ethtool -S on both ends).",
	},
	Loss: {
		finding.Warn, 0.9, "Port %s loses packets: %s.",
		"The same PFC and ECN settings on this host, its switch port and its peers (mlnx_qos, switch counters); then the " +
			"cable and the host's load.",
	},
	NotReady: {
		finding.Warn, 0.9, "Port %s waits for receivers that are too slow: they have no buffers ready: %s.",
		"Neither cable nor switch: look at the hosts that it sends to, where out_of_buffer rises, for processes that are " +
			"stopped, starved of processors or post too few receives.",
	},
	Congestion: {
		finding.Note, 0.8, "Port %s is told to pause, congestion from the switch: %s.",
		"Not this host: whoever it sends to takes too slowly, or many send to one. Look for a node that sends pause " +
			"frames (slow-receiver), for links with less rate than the others, and at the switch's queues; then at PFC and " +
			"ECN thresholds.",
	},
	SlowTaker: {
		finding.Warn, 0.8, "Port %s tells others to pause, this host is slow to receive: %s.",
		"Check its PCIe link (lspci -vv: LnkSta), IOMMU, memory and CPU frequency, the receive rings (ethtool -g), and " +
			"PFC thresholds; while it lasts, everybody who sends through the same switch waits.",
	},
	Marked: {
		finding.Note, 0.8, "Port %s meets more congestion than its peers: %s.",
		"No error of this port: many send to one (incast), or a link on the way has less rate than the others. np_ and " +
			"tx_cnp counters are of what comes to the host, rp_ and rx_cnp of what it sends. Look at the uplinks of its " +
			"leaf, adaptive routing, and ECN thresholds.",
	},
	SlowFleet: {
		finding.Note, 0.9,
		"%s became slower as a whole: %.0f%% of the bandwidth it had, since %s, most pairs at the same time.",
		"Look for what changed on all nodes at that time: driver, firmware, kernel or NCCL, MTU, congestion control, PFC " +
			"and " +
			"ECN of hosts and switches, spine switches and uplinks, power or clock limits, another tenant or job. Then " +
			"measure " +
			"again while nothing else runs, with the same message size and --max-rate as before.",
	},
}

// found is a finding about a node, or one of its ports, with the figures of its text.
func found(k finding.Kind, node, port string, since int64, evidence []string, figures ...any) finding.Finding {
	who, r := node, rules[k]
	if port != "" {
		who += "/" + port
	}
	return finding.Finding{
		ID: string(k) + ":" + who, Kind: k, Severity: r.severity, Confidence: r.confidence, Nodes: []string{node},
		Where: port, Since: stamp(since), Text: fmt.Sprintf(r.text, append([]any{who}, figures...)...), Fix: r.fix,
		Evidence: finding.Facts(evidence...),
	}
}

// relate joins findings of one node: what an unreachable node's pairs show is that it is unreachable, and what is wrong
// with its ports is evidence for a node's being slow.
func relate(list []finding.Finding) (out []finding.Finding) {
	unreachable := map[string]bool{}
	ports := map[string][]finding.Finding{} // by node
	for _, f := range list {
		if f.Kind == Unreachable || f.Kind == UnreachableFleet {
			for _, n := range f.Nodes {
				unreachable[n] = true
			}
		} else if f.Figure == "" && f.Where != "" {
			ports[f.Nodes[0]] = append(ports[f.Nodes[0]], f)
		}
	}
	for _, f := range list {
		reached := slices.ContainsFunc(f.Nodes, func(n string) bool { return !unreachable[n] })
		if breadth(f.Kind) == 0 { // of a pair either end
			reached = !unreachable[f.Nodes[0]] && !unreachable[f.Nodes[1]]
		}
		if f.Figure != "" && f.Factor == 0 && len(f.Nodes) > 0 && !reached {
			continue
		}
		if f.Figure != "" && len(f.Nodes) == 1 {
			for _, p := range ports[f.Nodes[0]] {
				f.Evidence = append(slices.Clip(f.Evidence), finding.Facts("port "+p.Where+": "+p.Evidence[0].Text)...)
			}
		}
		out = append(out, f)
	}
	return out
}

// DrainFrom is the confidence from which a node is drained.
const DrainFrom = 0.9

// Drain are the nodes that should be drained, sorted: those of findings about one node that are
// errors of a confidence of 0.9 or more and not clearing. Slow pairs, leaves and rails drain
// nobody, nor does the silence of most nodes at once.
func Drain(list []finding.Finding) []string {
	bad := []string{}
	for i := range list {
		f := &list[i]
		if f.Severity == finding.Error && f.Confidence >= DrainFrom && !f.Clearing && breadth(f.Kind) == 1 {
			bad = append(bad, f.Nodes...)
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// Tempered are findings as people read them: an error of one node that is not certain enough to drain it is a warning,
// and says how sure it is.
func Tempered(list []finding.Finding) []finding.Finding {
	list = slices.Clone(list)
	for i := range list {
		if f := &list[i]; f.Severity == finding.Error && f.Confidence < DrainFrom && breadth(f.Kind) == 1 {
			f.Severity = finding.Warn
			f.Text += fmt.Sprintf(" (%.0f%% sure; unhealthy from %.0f%% on)", 100*f.Confidence, 100*DrainFrom)
		}
	}
	return list
}

// breadth is 2 for findings about many nodes, 1 for those about one, 0 for pairs.
func breadth(k finding.Kind) int {
	switch k {
	case SlowLeaf, SlowLeafOut, SlowLeafIn, SlowPath, SlowRail, SlowFleet, UnreachableFleet:
		return 2
	case pairs.SlowPair, pairs.OneWay:
		return 0
	}
	return 1
}
