package health

import "busbar.dev/finding"

// Kinds of faults, beyond those of one table of pairs, which mean the same here: pairs.SlowHost,
// pairs.SlowOut, pairs.SlowIn, pairs.SlowPair, pairs.OneWay.
const (
	SlowNIC          finding.Kind = "slow-nic"      // one rail of a node, both ways
	SlowNICOut       finding.Kind = "slow-nic-out"  // sending
	SlowNICIn        finding.Kind = "slow-nic-in"   // receiving
	SlowLeaf         finding.Kind = "slow-leaf"     // all pairs between a leaf and the others, both ways
	SlowLeafOut      finding.Kind = "slow-leaf-out" // out of the leaf
	SlowLeafIn       finding.Kind = "slow-leaf-in"  // into the leaf
	SlowPath         finding.Kind = "slow-path"     // all pairs between two leaves
	SlowRail         finding.Kind = "slow-rail"     // all pairs of a rail
	SlowFleet        finding.Kind = "slow-fleet"    // most pairs became slower together, of all or of one sort
	Unreachable      finding.Kind = "silent"        // a node without heartbeats
	UnreachableFleet finding.Kind = "silent-fleet"  // most nodes at once: rather their way to the server
	LateBeats        finding.Kind = "late-beats"    // a node whose heartbeats have gaps
	LinkDown         finding.Kind = "link-down"     // a port that was up
	Flapping         finding.Kind = "flapping"      // a port that goes down and up
	Errors           finding.Kind = "errors"        // counters of errors that rise
	Loss             finding.Kind = "loss"          // counters of lost and re-sent packets that rise
	// counters of a sender whose receivers have no buffers ready that rise
	NotReady finding.Kind = "receiver-not-ready"
	// a port that the network holds with pause frames, more than it used to
	Congestion finding.Kind = "congestion"
	// a port that holds the network: its host does not take what comes
	SlowTaker finding.Kind = "slow-receiver"
	// a port whose traffic meets far more congestion than that of its peers
	Marked    finding.Kind = "congestion-marks"
	Straggler finding.Kind = "straggler"  // last in collectives again and again
	SlowDaily finding.Kind = "slow-daily" // pairs of a node, or most pairs, at the same hours of most days
)
