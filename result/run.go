package result

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Run is one collective call of one size: simulated, executed or read from a
// measurement.
type Run struct {
	Op    coll.Op
	Ranks int
	Algo  string // of the schedule: ring, tree, …
	Proto string // ll, ll128, simple; "" where it makes no sense
	// Channels carry data side by side.
	Channels int
	Time     unit.Time
	Parts    Parts
	Limit    Limit
	// Busy lists the busiest links of a prediction, busiest first.
	Busy []Use
	// Events are the ops in order of their beginning, where somebody asked for them.
	Events []Event
	// Margin is how far off such a prediction may be, as a factor: the true time is
	// expected between Time/Margin and Time×Margin. 0 unknown.
	Margin float64
}

// Parts tells where the time of a prediction goes. They add up to it.
type Parts struct {
	Launch  unit.Time `json:"launch_s"`  // before the first byte: kernel start, host work
	Latency unit.Time `json:"latency_s"` // waiting for messages to arrive one after the other
	Sync    unit.Time `json:"sync_s"`    // handing slices over: flags and fences
	Moving  unit.Time `json:"moving_s"`  // moving bytes at the rate of the bottleneck
}

// AlgBW is nccl-tests' algbw.
func (r *Run) AlgBW() unit.Rate { return r.Op.AlgBW(r.Ranks, r.Time) }

// BusBW is nccl-tests' busbw.
func (r *Run) BusBW() unit.Rate { return r.Op.BusBW(r.Ranks, r.Time) }

// Span is the shortest and the longest time that a prediction allows for: its time where the margin is unknown.
func (r *Run) Span() (low, high unit.Time) {
	if r.Margin <= 1 {
		return r.Time, r.Time
	}
	return unit.Time(float64(r.Time) / r.Margin), unit.Time(float64(r.Time) * r.Margin)
}

// LimitKind is what limits a run.
type LimitKind string

// What can limit a run.
const (
	ByLaunch   LimitKind = "launch"   // fixed cost of a call
	ByLatency  LimitKind = "latency"  // the chain of messages
	ByProtocol LimitKind = "protocol" // what the channels' threads can move, or the protocol's overhead
	ByNVLink   LimitKind = "nvlink"
	ByPCIe     LimitKind = "pcie"
	ByHost     LimitKind = "host" // staging in host memory, or the link between sockets
	ByNIC      LimitKind = "nic"
	ByFabric   LimitKind = "fabric" // uplinks of the network
	ByMemory   LimitKind = "memory" // of the GPU
	ByNothing  LimitKind = "none"   // one rank, nothing to do
)

// Limit names the bottleneck in words a person can act on.
type Limit struct {
	Kind  LimitKind `json:"kind"`
	Where string    `json:"where,omitempty"` // node0/mlx5_0
	Text  string    `json:"text"`
}

// Use is how busy a link is during a run.
type Use struct {
	Where string     `json:"where"`
	Kind  LimitKind  `json:"kind"`
	Rate  unit.Rate  `json:"rate_GBps"` // it can carry, one direction
	Bytes unit.Bytes `json:"bytes"`
	Share float64    `json:"share"` // of the run's time that it is busy, 0 to 1
}

// Event is one op of one rank and lane.
type Event struct {
	Rank, Lane, Op int
	Loop           int // how often the program had run before
	Name           string
	Peer           int // -1: local
	Bytes          unit.Bytes
	From, To       unit.Time
}
