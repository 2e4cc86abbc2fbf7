package fleet

import "fmt"

// Transport is what nodes are measured by. Each has histories and figures of its own: what one shows says little of
// another.
type Transport string

// Transports, the best last.
const (
	TCP  Transport = ""     // between host memories, by the agents themselves
	RDMA Transport = "rdma" // between NICs, by the programs of perftest
	NCCL Transport = "nccl" // between GPU memories, by busbar-gpu
	// Best is the best one that all nodes of an order have.
	Best Transport = "best"
)

// Text is a transport's name for people and labels.
func (t Transport) Text() string {
	if t == TCP {
		return "tcp"
	}
	return string(t)
}

// Transports are those that a node may have.
func Transports() []Transport { return []Transport{TCP, RDMA, NCCL} }

// Means is whether a node can be measured by a transport.
type Means struct {
	By  Transport `json:"by"`
	Why string    `json:"why,omitempty"` // it cannot; empty: it can
}

// Lacks says why a node cannot be measured by a transport, or nothing.
func (j *Joined) Lacks(by Transport) string {
	if by == TCP {
		return ""
	}
	for _, m := range j.Means {
		if m.By == by {
			return m.Why
		}
	}
	return fmt.Sprintf("its agent (%s) cannot measure by %s", j.Version, by)
}

// longTime is the time that a part has at least where Best chose another transport than TCP: programs are started for
// it.
const longTime = defaultTime * 3

// Bounds are those of the order's parts in this sweep.
func (o *Order) Bounds() Caps {
	c := o.Caps
	if o.What.By == Best && o.Over != TCP {
		c.Time = max(c.Bound(), longTime)
	}
	return c
}

func (w *What) checkBy() error {
	switch {
	case w.Measure == MeasureCollective && w.By != TCP && w.By != NCCL:
		return fmt.Errorf("a collective by %q; expected TCP or %q", w.By, NCCL)
	case w.By != TCP && w.By != RDMA && w.By != NCCL && w.By != Best:
		return fmt.Errorf("measured by %q; expected %q, %q or %q, or nothing for TCP", w.By, RDMA, NCCL, Best)
	}
	return nil
}
