package predict

import (
	"fmt"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Worth is the gain below which a change is not worth its while: a setting that
// promises less is not named.
const Worth = 1.05

// worthBeyond is the same for algorithms that NCCL does not have: the model's
// figures were never fitted on them.
const worthBeyond = 1.25

// maxChannels is how many channels are tried; each takes a block of threads, a
// part of the GPU, from the computing beside it.
const maxChannels = 32

// maxBeyond is the number of ranks up to which algorithms that NCCL does not have
// are tried as well.
const maxBeyond = 1024

// best is the fastest setting that NCCL can run, and after it the fastest that it
// cannot, where that one is clearly faster.
func (x *forced) best(op coll.Op, auto Setting, proto string, foreign bool) ([]Row, error) {
	var list []Setting
	// first, as it is priced already and others need not be where they cannot be faster
	if proto == "" || auto.Proto == proto {
		list = append(list, auto)
	}
	list = append(list, x.all(op, proto)...)
	row, err := x.fastest(op, list, auto)
	if err != nil {
		return nil, err
	}
	row = x.widened(op, row, auto)
	rows := []Row{row}
	if foreign && len(x.p.Layout) <= maxBeyond {
		if far, err := x.fastest(op, x.foreign(op, proto), auto); err == nil &&
			float64(row.Time) > worthBeyond*float64(far.Time) {
			rows = append(rows, far)
		}
	}
	return rows, nil
}

// clearly reports whether a change from one time to another is worth its while.
func clearly(from, to unit.Time) bool { return float64(from) > Worth*float64(to) }

// fastest prices settings and takes the one of least time; among equals the first.
// Settings that cannot run here do not count.
func (x *forced) fastest(op coll.Op, list []Setting, auto Setting) (Row, error) {
	var best Row
	err := fmt.Errorf("nothing can do %s here", op.Kind)
	for _, s := range list {
		if best.run != nil && x.outrun(op, s, best.Time) {
			continue
		}
		r, e := x.row(op, s, auto)
		if e != nil {
			if best.run == nil {
				err = e
			}
			continue
		}
		if best.run == nil || r.Time < best.Time || r.Time == best.Time && r.Chosen {
			best = r
		}
	}
	if best.run == nil {
		return Row{}, err
	}
	return best, nil
}

// outrun reports without a schedule that a ring cannot do it in a time: it passes every block on once a rank, and a
// block that is a single message takes no less than a hop each time. Of thousands of ranks that saves most of the work.
func (x *forced) outrun(op coll.Op, s Setting, by unit.Time) bool {
	const message = 16 * unit.KiB
	ranks := len(x.p.Layout)
	if s.Algo != "ring" || unit.Bytes(ranks)*message < op.Bytes {
		return false
	}
	hops := x.p.model(x.p.Figures, op, s).Wire.Hop
	return unit.Time(ranks-1)*slices.Min(hops[:]) > by
}

// widened is a row with more channels where that is clearly faster: as few as come
// close to the best, and only where all that there are were in use.
func (x *forced) widened(op coll.Op, row Row, auto Setting) Row {
	s := row.setting
	if s.Channels != x.p.Plan.Count() || !slices.Contains([]string{"ring", "tree", "chain"}, s.Algo) {
		return row
	}
	best := row
	for s.Channels *= 2; s.Channels <= maxChannels; s.Channels *= 2 {
		if r, err := x.row(op, s, auto); err == nil && clearly(best.Time, r.Time) {
			best = r
		}
	}
	return best
}

// foreign are settings of algorithms that NCCL does not have for the collective
// and that need no switch which reduces.
func (x *forced) foreign(op coll.Op, proto string) []Setting {
	var out []Setting
	for _, b := range schedule.Builders() {
		if !slices.Contains(b.Kinds, op.Kind) || x.native(op.Kind, b.Name) || slices.Contains(reducing, b.Name) {
			continue
		}
		if len(x.p.Plan.Nodes) > 1 && slices.Contains(crowded, b.Name) {
			continue
		}
		if s, err := x.beyond(op, b.Name, proto); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// reducing are the algorithms that compute in a switch.
var reducing = []string{"nvls", "nvls_tree", "collnet", "collnet_chain", "collnet_direct"}

// crowded are those by which everyone talks to everyone at once. Between nodes
// that costs a connection and proxy work for every pair, which no measurement
// here says the price of.
var crowded = []string{"direct", "one_shot", "pairwise"}
