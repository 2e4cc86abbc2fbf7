package fleet

import (
	"context"
	"errors"
	"math"
	"time"

	"busbar.dev/finding"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// ErrGone is what errors are where a server gives no answer, or none of its own: it may be back in a moment.
// ErrReading where it has not read all that it has stored.
var (
	ErrGone    = errors.New("the server does not answer")
	ErrReading = errors.New("the server is starting: it reads its stored events")
)

// NodeStatus is whether a node can be asked.
type NodeStatus string

// What a node can be.
const (
	NodeUp          NodeStatus = "up"
	NodeUnreachable NodeStatus = "silent" // it has not left, and sends nothing
	NodeLeft        NodeStatus = "left"
	// NodeStarting is a node that had joined before this server began and was not known to be unreachable,
	// and may not have sent a heartbeat since.
	NodeStarting NodeStatus = "expected"
)

// NodeState is a node as a server shows it.
type NodeState struct {
	Name     Name       `json:"name"`
	State    NodeStatus `json:"state"`
	Joined   time.Time  `json:"joined,omitzero"`
	Received time.Time  `json:"heard,omitzero"` // when its last event came
	Version  string     `json:"version,omitempty"`
	Meet     string     `json:"meet,omitempty"`
	Bind     string     `json:"bind,omitempty"`
	CPUs     int        `json:"cpus,omitempty"`
	// Age is how long ago the last heartbeat came, in JSON as age_s; below 0 for none yet.
	Age      time.Duration `json:"-"`
	AgeS     float64       `json:"age_s"`
	Waiting  int           `json:"waiting"`
	Load     float64       `json:"load"`
	Receive  unit.Rate     `json:"receive_GBps"`
	Send     unit.Rate     `json:"send_GBps"`
	Progress *Progress     `json:"doing,omitempty"`

	Ports []PortState `json:"ports,omitempty"`
	// UnreachableSince is since when a finding says that the node is unreachable.
	UnreachableSince time.Time `json:"silent_since,omitzero"`
	Failed           string    `json:"last_failure,omitempty"`
	FailedAt         time.Time `json:"last_failure_at,omitzero"`
	// Findings are those that name the node, and Bad tells that one of them is a
	// reason to keep jobs off it.
	Findings  []string `json:"findings,omitempty"`
	Unhealthy bool     `json:"bad"`
}

// PortState is a port as its node last described it.
type PortState struct {
	Port  string    `json:"port"`
	Up    bool      `json:"up"`
	Rate  unit.Rate `json:"rate_GBps,omitzero"`
	State string    `json:"state,omitempty"`
	Since time.Time `json:"since"`
}

// NodesReply is what /api/fleet/nodes answers.
type NodesReply struct {
	Nodes []NodeState `json:"nodes"`
	Leads bool        `json:"leads"` // this server carries out orders
	Read  uint64      `json:"stream_read"`
}

// FindingsReply is what /api/fleet/findings answers.
type FindingsReply struct {
	Findings []finding.Finding `json:"findings"`
	Past     []finding.Finding `json:"past"` // that are over, the newest last
}

// OrderState is an order as a server shows it.
type OrderState struct {
	Order
	Given    time.Time `json:"given"`
	Received time.Time `json:"heard"` // when its state last changed
	// Next is when it runs next, where it repeats or waits for its time.
	Next time.Time `json:"next,omitzero"`
	// Good, Bad and Left count the parts of the last sweep that were measured, that failed, and that
	// were left out. Once it is over, they are all parts that there are.
	Measured int `json:"parts_good"`
	Failed   int `json:"parts_failed"`
	LeftOut  int `json:"parts_left_out"`
}

// OrderReply is an order with what its sweep says about its nodes.
type OrderReply struct {
	OrderState
	Verdict *Verdict `json:"verdict,omitempty"`
}

// OrdersReply is what /api/fleet/orders answers, the earliest first.
type OrdersReply struct {
	Orders []OrderState `json:"orders"`
}

// Verdict is what a sweep says about its nodes: whom a job may use.
type Verdict struct {
	// A busy node is in neither list: a job's traffic is no fault, and no proof. Only a measured one is good.
	Healthy   []Name `json:"good"`
	By        string `json:"by,omitempty"` // what was measured: tcp, rdma, nccl
	Unhealthy []Out  `json:"bad"`
	// Unmeasured are those of whom the sweep says nothing: it did not measure them, or nobody can say whose fault it is
	// that a pair is slow.
	Unmeasured []Name `json:"unmeasured,omitempty"`
	// Notes are what is worth knowing and no node's fault alone.
	Notes []string `json:"notes,omitempty"`
}

// NeverJoined is why a node that the server has never heard of does not take part.
const NeverJoined = "never joined"

// Figure is one of what a direction of a pair shows.
type Figure string

// Figures of pairs.
const (
	FigureRate    Figure = "rate"    // GB/s, alone
	FigureBoth    Figure = "both"    // GB/s, with the other direction at the same time
	FigureLatency Figure = "latency" // µs
)

// Heat is one figure of all pairs: rows send, columns receive. What is not known is null.
type Heat struct {
	Figure Figure       `json:"figure"`
	Unit   string       `json:"unit"`
	By     Transport    `json:"by,omitempty"`   // empty: TCP
	Ways   []Transport  `json:"ways,omitempty"` // that there are figures of, where they are more than TCP
	Names  []Name       `json:"names"`
	Values [][]*float64 `json:"values"`
	Median float64      `json:"median"`
	Oldest time.Time    `json:"oldest,omitzero"`
	Newest time.Time    `json:"newest,omitzero"`
}

// SlurmOut is a node that Slurm gives no jobs.
type SlurmOut struct {
	Node   string `json:"node"`
	State  string `json:"state"` // drained, down, not responding
	Reason string `json:"reason,omitempty"`
}

// Spread is the median of all directions, and the worst of them.
type Spread struct {
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
	From   Name    `json:"from"`
	To     Name    `json:"to"`
}

// Spread is that of the figure, of which more is better or not; nil where nothing is known.
func (h *Heat) Spread(more bool) (s *Spread) {
	for i, row := range h.Values {
		for j, v := range row {
			if v == nil || i >= len(h.Names) || j >= len(h.Names) {
				continue
			}
			if s == nil || (*v < s.Worst) == more && *v != s.Worst {
				s = &Spread{h.Median, *v, h.Names[i], h.Names[j]}
			}
		}
	}
	return s
}

// Collective is one collective that was measured.
type Collective struct {
	At      time.Time     `json:"at"`
	Node    Name          `json:"node"` // of rank 0
	Order   string        `json:"order"`
	Sweep   int           `json:"sweep"`
	Results result.Sweeps `json:"records"`
}

// CollectivesReply is what /api/fleet/collectives answers, the newest last.
type CollectivesReply struct {
	Collectives []Collective `json:"collectives"`
}

// Server is asked by questions about a fleet: the path and the documents are those of busbar serve's HTTP interface. in
// is sent as JSON where it is not nil, and the answer read into out. Errors that may pass are ErrGone or ErrReading.
type Server interface {
	Call(ctx context.Context, method, path string, in, out any) error
}

// PerRound is how many parts a round of a sweep has: half as many as there are nodes.
func (o *OrderState) PerRound() int {
	if r := o.Rounds; r > 0 && o.Parts%r == 0 && r < 2*(o.Parts/r)+1 {
		return max(o.Parts/r, 1)
	}
	nodes := (1 + math.Sqrt(1+8*float64(o.Parts))) / 2 // of all pairs
	return max(int(nodes)/2, 1)
}

// MostTime bounds how long an order may still take: all its rounds with all the time that they have, and a minute at
// least.
func (o *OrderState) MostTime(now time.Time) time.Duration {
	r := o.PerRound()
	turns := (o.Parts + r - 1) / r
	if o.AtOnce > 0 && o.AtOnce < r {
		turns *= (r + o.AtOnce - 1) / o.AtOnce
	}
	caps := o.Bounds()
	d := time.Duration(turns) * caps.Bound()
	if o.State == Waiting && o.Next.After(now) {
		d += o.Next.Sub(now)
	}
	return max(d, time.Minute)
}
