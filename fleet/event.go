package fleet

import (
	"encoding/json"
	"time"

	"busbar.dev/finding"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Kind is what an event is about.
type Kind string

// Kinds of events. The first five come from nodes, the others from the server.
const (
	KindJoined   Kind = "joined"   // a node came up, or what it has changed
	KindLink     Kind = "link"     // a port went up or down
	KindCounters Kind = "counters" // error counters that moved
	KindMeasured Kind = "measured" // a part's outcome
	KindLeft     Kind = "left"     // a node ends in order
	KindOrder    Kind = "order"    // an order was given, or its state changed
	KindFinding  Kind = "finding"  // something is found wrong, or no longer
	KindTokens   Kind = "tokens"   // a node was forgotten, or came back
)

// Event is one thing that is kept. Exactly the field of its kind is set.
type Event struct {
	// Seq counts what this publisher has said, from 1 without gaps; with it the store holds
	// everything once.
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Node Name      `json:"node,omitzero"` // empty: the server
	Kind Kind      `json:"kind"`

	Joined   *Joined          `json:"joined,omitempty"`
	Link     *Link            `json:"link,omitempty"`
	Counters *Counters        `json:"counters,omitempty"`
	Measured *Measured        `json:"measured,omitempty"`
	Order    *Order           `json:"order,omitempty"`
	Finding  *finding.Finding `json:"finding,omitempty"`
	Tokens   *Tokens          `json:"tokens,omitempty"`
}

// Joined is what a node has and where it is measured.
type Joined struct {
	Version string `json:"version"`        // of the agent
	Boot    string `json:"boot,omitempty"` // the kernel's boot id, so that counters that begin anew are no wonder
	// Meet is the host and port at which others find this node when it is measured.
	Meet string `json:"meet"`
	// Bind is the interface or the address that is measured, empty for the one that leads to the others.
	Bind string `json:"bind,omitempty"`
	CPUs int    `json:"cpus,omitempty"`
	// Means are the transports beside TCP, and why it cannot be measured by some.
	Means []Means `json:"means,omitempty"`
	// Map is the node as `busbar map --json` prints a cluster of one.
	Map json.RawMessage `json:"map,omitempty"`
}

// Link is a port's state.
type Link struct {
	Port  string    `json:"port"` // eth0, mlx5_0/1
	Up    bool      `json:"up"`
	Rate  unit.Rate `json:"rate_GBps,omitzero"` // 0 unknown
	State string    `json:"state,omitempty"`    // the driver's own word: ACTIVE, INIT, up, lowerlayerdown
}

// Counters are the values of counters that moved since the last time, and of all at the first.
type Counters struct {
	Boot string `json:"boot,omitempty"`
	// Values go by port, then by the driver's name of the counter.
	Values map[string]map[string]uint64 `json:"values"`
}

// Measured is what came out of a part. The node of rank 0 says it; a node that failed says so itself.
type Measured struct {
	Order string `json:"order"`
	Part  string `json:"part"`
	Sweep int    `json:"sweep"` // which time the order runs
	Round int    `json:"round"`
	// Pairs are both directions of a pair; Results those of a collective.
	Pairs   []PairSample  `json:"pairs,omitempty"`
	Results result.Sweeps `json:"records,omitempty"`
	// Failed says why there is nothing, and Peer whom it was about, where that is known.
	Failed string        `json:"failed,omitempty"`
	Peer   Name          `json:"peer,omitzero"`
	Took   time.Duration `json:"took_ns"`
}

// PairSample is one direction of a measured pair.
type PairSample struct {
	From    Name      `json:"from"`
	To      Name      `json:"to"`
	Rail    string    `json:"rail,omitempty"`   // the NIC of an RDMA pair
	Failed  string    `json:"failed,omitempty"` // why this rail has no figures, where others of the pair have
	Rate    unit.Rate `json:"rate_GBps"`
	Both    unit.Rate `json:"both_GBps,omitzero"` // with the other direction at the same time
	Latency unit.Time `json:"latency_s,omitzero"`
}

// UnmarshalJSON reads a sample, also of a node of an earlier release.
func (p *PairSample) UnmarshalJSON(data []byte) error {
	type plain PairSample
	return json.Unmarshal(unit.InSeconds(data), (*plain)(p))
}

// Samples are what the ranks of a part measured.
func (p *Part) Samples(cells []pairs.Measure) (list []PairSample) {
	for _, c := range cells {
		list = append(list, PairSample{
			From: p.Ranks[c.From], To: p.Ranks[c.To], Rate: c.Rate, Both: c.Both, Latency: c.Latency, Failed: c.Failed,
		})
	}
	return list
}

// Tokens tells that a node was forgotten, or came back.
type Tokens struct {
	Node      Name   `json:"node"`
	Withdrawn bool   `json:"withdrawn,omitempty"`
	By        string `json:"by,omitempty"`
}

// Beat says that a node lives.
type Beat struct {
	Node Name      `json:"node"`
	At   time.Time `json:"at"`
	Up   float64   `json:"up_s"`
	// Agent is the process that beats: a name of its own at each start, so that two agents with one
	// node's name are told apart.
	Agent string `json:"agent,omitempty"`
	// Waiting counts events that the store has not acknowledged.
	Waiting int `json:"waiting"`
	// Last is the number of the last event that the store has acknowledged; 0 where the agent does not say.
	Last uint64 `json:"last,omitempty"`
	// Dropped counts events that were not kept because too much waited.
	Dropped int `json:"dropped,omitempty"`
	// Doing is the part that runs, empty when idle.
	Part string `json:"doing,omitempty"`
	// Load is the processors' one-minute load, Receive and Send what the measured interface carries.
	Load    float64   `json:"load"`
	Receive unit.Rate `json:"receive_GBps"`
	Send    unit.Rate `json:"send_GBps"`
	// Jobs are the operations of this node's jobs since the last beat: a packed rates.Window.
	Jobs []byte `json:"jobs,omitempty"`
	// Health is what the node's own drivers and kernel say is wrong with it. What it says of others counts for nothing.
	Health []finding.Finding `json:"health,omitempty"`
}

// Progress is how far a part is, for those who watch.
type Progress struct {
	Node  Name   `json:"node"`
	Order string `json:"order"`
	Part  string `json:"part"`
	Done  int    `json:"done"`
	Of    int    `json:"of"`
	Text  string `json:"text,omitempty"`
}
