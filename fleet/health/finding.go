package health

import (
	"time"

	"busbar.dev/result/pairs"
)

// Kind is what is wrong. Those of package pairs mean the same here: SlowHost, SlowOut,
// SlowIn, SlowPair, OneWay.
type Kind = pairs.FindingKind

// Kinds beyond those of one table of pairs.
const (
	SlowNIC     Kind = "slow-nic"      // one rail of a node, both ways
	SlowNICOut  Kind = "slow-nic-out"  // sending
	SlowNICIn   Kind = "slow-nic-in"   // receiving
	SlowLeaf    Kind = "slow-leaf"     // all pairs between a leaf and the others, both ways
	SlowLeafOut Kind = "slow-leaf-out" // out of the leaf
	SlowLeafIn  Kind = "slow-leaf-in"  // into the leaf
	SlowPath    Kind = "slow-path"     // all pairs between two leaves
	SlowRail    Kind = "slow-rail"     // all pairs of a rail
	SlowFleet   Kind = "slow-fleet"    // most pairs became slower together, of all or of one sort
	Silent      Kind = "silent"        // a node without heartbeats
	SilentFleet Kind = "silent-fleet"  // most nodes at once: rather their way to the server
	LateBeats   Kind = "late-beats"    // a node whose heartbeats have gaps
	LinkDown    Kind = "link-down"     // a port that was up
	Flapping    Kind = "flapping"      // a port that goes down and up
	Errors      Kind = "errors"        // counters of errors that rise
	Loss        Kind = "loss"          // counters of lost and re-sent packets that rise
	Congestion  Kind = "congestion"    // a port that the network holds with pause frames, more than it used to
	SlowTaker   Kind = "slow-receiver" // a port that holds the network: its host does not take what comes
	Straggler   Kind = "straggler"     // last in collectives again and again
)

// Finding is one fault of the fleet.
type Finding struct {
	// ID is the kind and who: the same fault has the same ID in every answer.
	ID       string         `json:"id"`
	Kind     Kind           `json:"kind"`
	Severity pairs.Severity `json:"severity"`
	// Nodes are those to look at: one, the two ends of a pair (sender first), all of a leaf.
	Nodes []string `json:"nodes"`
	Where string   `json:"where,omitempty"`  // the port, rail or leaf
	What  string   `json:"figure,omitempty"` // bandwidth or latency, of pairs
	// Since is when it began; where Always is set, it was so when first seen.
	Since  time.Time `json:"since"`
	Always bool      `json:"always,omitempty"`
	// Factor is the part left of what peers have, below 1; 0 where nothing gets through, and
	// where there is no such figure.
	Factor float64 `json:"factor"`
	// Confidence is how often a cause named with as much of it is the right one.
	Confidence float64 `json:"confidence"`
	// Clearing is set while the last sweeps were good but not yet enough of them.
	Clearing bool     `json:"clearing,omitempty"`
	Evidence []string `json:"evidence"`
	Text     string   `json:"text"`
	Fix      string   `json:"fix"`
}

// rank orders severities.
func rank(s pairs.Severity) int {
	switch s {
	case pairs.Error:
		return 2
	case pairs.Warn:
		return 1
	}
	return 0
}
