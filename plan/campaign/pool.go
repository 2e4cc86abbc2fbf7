package campaign

import (
	"fmt"
	"math"

	"busbar.dev/unit"
)

// Pool is the nodes of a job and what becomes of those that fail: some are away until they are repaired, spares take
// their places, and without a spare the job waits or goes on with fewer replicas.
type Pool struct {
	Nodes   int       `json:"nodes"`             // that the job runs on
	Spares  int       `json:"spares"`            // that stand by
	Between unit.Span `json:"mtbf_node_s"`       // mean time between interruptions of one node
	Losing  float64   `json:"node_loss"`         // share of interruptions after which the node is away
	Repair  unit.Span `json:"repair_s"`          // mean time that it is away
	Elastic bool      `json:"elastic"`           // without a spare the job goes on with the replicas that are whole
	Replica int       `json:"nodes_per_replica"` // that go together: with one of them the others' work is lost too
}

// Staffing is how many nodes a job has over time. Shares add up to 1.
type Staffing struct {
	Full    float64   `json:"full"`        // share of time with all nodes
	Shrunk  float64   `json:"shrunk"`      // with fewer
	Stopped float64   `json:"stopped"`     // with too few
	Away    float64   `json:"nodes_away"`  // on average
	Grows   float64   `json:"grows_per_s"` // that a job takes up replicas again, for which it restarts
	sizes   []staffed // the numbers of nodes that the job runs on
}

// staffed is how large a share of time a job runs on so many nodes.
type staffed struct {
	nodes int
	share float64
}

// Check reports what no pool has.
func (p Pool) Check() error {
	switch {
	case p.Nodes < 1 || p.Nodes > 1<<20 || p.Spares < 0 || p.Spares > 1<<20:
		return fmt.Errorf("%d nodes and %d spares; expected 1 to %d, and 0 or more", p.Nodes, p.Spares, 1<<20)
	case !(p.Between > 0):
		return fmt.Errorf("the mean time between interruptions of a node is %g s; expected more than 0", float64(p.Between))
	case !(p.Losing >= 0 && p.Losing <= 1):
		return fmt.Errorf("%g of interruptions lose a node; expected a share from 0 to 1", p.Losing)
	case !(p.Repair >= 0) || math.IsInf(float64(p.Repair), 0):
		return fmt.Errorf("a repair takes %g s; expected 0 or more", float64(p.Repair))
	case p.Replica < 1 || p.Replica > p.Nodes:
		return fmt.Errorf("replicas of %d nodes among %d", p.Replica, p.Nodes)
	}
	return nil
}

// running is how many nodes the job runs on while so many are away.
func (p Pool) running(away int) int {
	short := away - p.Spares
	switch {
	case short <= 0:
		return p.Nodes
	case !p.Elastic || short >= p.Nodes:
		return 0
	}
	return (p.Nodes - short) / p.Replica * p.Replica
}

// Staffing is the long run of nodes that fail and are repaired: a birth-death chain in how many are away. Nodes fail
// while the job runs on them and not while they stand by or the job waits; each is repaired on its own. Without
// elasticity it is Erlang's loss formula, which holds for repairs of any distribution.
func (p Pool) Staffing() (*Staffing, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	fails := p.Losing * float64(p.Repair/p.Between) // of one node, in the time of a repair
	logs := []float64{0}                            // of the chain's weights
	top, sum := 0.0, 0.0
	for k := 0; k < p.Nodes+p.Spares; k++ {
		rate := fails * float64(p.running(k))
		if rate <= 0 {
			break
		}
		next := logs[k] + math.Log(rate/float64(k+1))
		logs = append(logs, next)
		if top = math.Max(top, next); next < top-60 && next < logs[k] {
			break // what follows is less than rounding
		}
	}
	for _, l := range logs {
		sum += math.Exp(l - top)
	}
	s := &Staffing{}
	for k, l := range logs {
		share, nodes := math.Exp(l-top)/sum, p.running(k)
		switch nodes {
		case p.Nodes:
			s.Full += share
		case 0:
			s.Stopped += share
		default:
			s.Shrunk += share
		}
		s.Away += share * float64(k)
		if k > 0 && nodes > 0 && p.running(k-1) > nodes {
			s.Grows += share * float64(k) / float64(p.Repair)
		}
		if last := len(s.sizes) - 1; last >= 0 && s.sizes[last].nodes == nodes {
			s.sizes[last].share += share
		} else {
			s.sizes = append(s.sizes, staffed{nodes, share})
		}
	}
	return s, nil
}

// Outcome is what a job makes of its pool over a long time.
type Outcome struct {
	Goodput          // with all nodes
	Staffing         // how often it has them
	Rate     float64 // useful work over that of all nodes without failures
	PerNode  float64 // the same for each node that is held, spares too
}

// Outcome is the useful work of a job that is saved as f says, on a pool; f.Between follows from the pool. The interval
// is the same for all numbers of nodes. Replicas that come back are taken up after a checkpoint, for the time of a
// restart.
func (p Pool) Outcome(f Failures, least unit.Span) (*Outcome, error) {
	s, err := p.Staffing()
	if err != nil {
		return nil, err
	}
	f.Between = p.Between / unit.Span(p.Nodes)
	g, err := f.Goodput(least)
	if err != nil {
		return nil, err
	}
	f = g.Failures
	rate := 0.0
	for _, x := range s.sizes {
		if x.nodes > 0 {
			f.Between = p.Between / unit.Span(x.nodes)
			rate += x.share * float64(x.nodes) / float64(p.Nodes) * f.share(f.Interval)
		}
	}
	rate /= 1 + s.Grows*float64(f.Restart+f.Write)
	return &Outcome{Goodput: g, Staffing: *s, Rate: rate, PerNode: rate * float64(p.Nodes) / float64(p.Nodes+p.Spares)},
		nil
}
