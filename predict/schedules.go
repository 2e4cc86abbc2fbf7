package predict

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/sim"
)

// Schedule builds what a setting means for these ranks, with NCCL's rings and
// trees.
func (p *Predictor) Schedule(op coll.Op, s Setting) (*schedule.Schedule, error) {
	name := s.Algo
	if err := p.possible(s); err != nil {
		return nil, err
	}
	q := schedule.Params{Ranks: len(p.Layout), Root: op.Root, Channels: max(1, s.Channels), Pieces: 1}
	var err error
	if p.large() && (s.Algo == "ring" || s.Algo == "tree" && op.Kind == coll.AllReduce) {
		q.Turn = true
		if q.Shared, err = p.groups(); err != nil {
			return nil, err
		}
		return schedule.Build(op.Kind, name, q)
	}
	switch s.Algo {
	case "ring", "bidir_ring":
		for c := range min(q.Channels, p.Plan.Period()) {
			if p.rings[c] == nil {
				if p.rings[c], err = schedule.NewOrder(p.Plan.Ring(c)); err != nil {
					return nil, fmt.Errorf("ring %d: %w", c, err)
				}
			}
			q.Orders = append(q.Orders, p.rings[c])
		}
	case "chain":
		if op.Kind.Rooted() {
			name = "tree" // of one child each, another for every channel
			up := op.Kind == coll.Reduce
			q.Trees = p.openRings(treeKey{op.Root, up})
		} else {
			q.Order = p.Plan.Ring(0)
		}
	case "tree":
		if op.Kind == coll.AllReduce {
			q.Trees, err = p.treesOf(q.Channels)
		}
	case "nvls", "direct", "pat":
	default:
		q.Shared, err = p.groups()
	}
	if err != nil {
		return nil, err
	}
	return schedule.Build(op.Kind, name, q)
}

// possible refuses reductions in switches that are not there, and protocols that
// they do not speak.
func (p *Predictor) possible(s Setting) error {
	inNetwork := strings.HasPrefix(s.Algo, "collnet")
	if inNetwork && !p.Plan.CollNet {
		return fmt.Errorf("%s needs a network that reduces (SHARP) and NCCL_COLLNET_ENABLE=1; the cluster has none that is "+
			"enabled", s.Algo)
	}
	if (inNetwork || strings.HasPrefix(s.Algo, "nvls")) && s.Proto != sim.Simple {
		return fmt.Errorf("%s by %s; reductions in a switch speak simple only", s.Algo, s.Proto)
	}
	return nil
}

// large reports a job whose rings and trees are computed rather than kept: through
// the nodes in order, every channel leaving by a NIC of its own, as NCCL's do.
func (p *Predictor) large() bool { return len(p.Layout) > 16384 }

// treeKey tells the trees of a plan apart: those of its search have the root -1, rings that are cut open that of the
// call.
type treeKey struct {
	root int
	up   bool
}

// openRings are the plan's rings cut open at a root.
func (p *Predictor) openRings(k treeKey) *schedule.Trees {
	t := p.trees[k]
	if t == nil {
		t = schedule.OpenRings(len(p.Layout), p.Plan.Period(), k.root, k.up, func(rank, c, step int) int {
			return p.Plan.Beside(int(p.nodeOf[rank]), rank, c, step)
		})
		p.trees[k] = t
	}
	return t
}

// treesOf are the trees of the plan's first channels, made once.
func (p *Predictor) treesOf(channels int) (*schedule.Trees, error) {
	k := treeKey{root: -1}
	t := p.trees[k]
	if t == nil {
		t = &schedule.Trees{}
		p.trees[k] = t
	}
	for c := t.Count(); c < min(channels, p.Plan.Period()); c++ {
		if err := t.Add(p.Plan.Parents(c)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// groups are the ranks of NCCL's nodes.
func (p *Predictor) groups() (*schedule.Groups, error) {
	if p.grouped != nil {
		return p.grouped, nil
	}
	list := make([][]int, len(p.Plan.Nodes))
	for i := range p.Plan.Nodes {
		list[i] = p.Plan.Nodes[i].Ranks
	}
	var err error
	p.grouped, err = schedule.NewGroups(len(p.Layout), list)
	return p.grouped, err
}

// period is after how many channels they do the same over the same routes again; 0 where that is not known.
func (p *Predictor) period(kind coll.Kind, algo string) int {
	n := 0
	switch {
	case algo == "nvls":
		n = 1
	case algo == "nvls_tree":
		n = 2
	case p.large():
	case algo == "ring", algo == "chain" && kind.Rooted(), algo == "tree" && kind == coll.AllReduce:
		n = p.Plan.Period()
	}
	return p.machine.Turns(p.ports(algo), n)
}
