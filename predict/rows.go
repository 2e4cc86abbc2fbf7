package predict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Words for Query.Algos beside the names of algorithms.
const (
	Auto = "auto" // what NCCL would take
	Best = "best" // what is predicted to be fastest
	Each = "each" // a row for every algorithm that NCCL could take, by the protocol it would take then
	All  = "all"  // a row for every algorithm and protocol that NCCL could take
)

// Query is what to predict on one layout.
type Query struct {
	Kind  coll.Kind
	Type  coll.Dtype
	Root  int
	Sizes []unit.Bytes
	Algos []string // one of the words above, or names; none is Auto
	Proto string   // ll, ll128, simple; "" or auto leaves it open
	// Stop is asked between sizes; an error of it ends the work. nil never stops.
	Stop func() error
}

// stopped is what Stop says.
func (q *Query) stopped() error {
	if q.Stop == nil {
		return nil
	}
	return q.Stop()
}

// Row is one size by one algorithm on one layout. Bandwidths are those of nccl-tests, one direction.
type Row struct {
	Layout string     `json:"layout"` // whoever asks for several names them
	Ranks  int        `json:"ranks"`
	Size   unit.Bytes `json:"size_bytes"`
	Asked  unit.Bytes `json:"asked_bytes"` // blocks may need less
	Count  int64      `json:"count"`       // of elements
	Dtype  string     `json:"dtype"`
	// Algo is the algorithm's name as people know it: what NCCL calls ring is a chain
	// for broadcast and reduce.
	Algo     string    `json:"algo"`
	Proto    string    `json:"proto"`
	Channels int       `json:"channels"`
	Time     unit.Time `json:"time_s"`
	Low      unit.Time `json:"low_s"` // the error bar; both are the time where it is unknown
	High     unit.Time `json:"high_s"`
	Grade    Grade     `json:"grade,omitempty"` // of the error bar
	// Publishers have measured calls of the row's class and size.
	Publishers int            `json:"publishers,omitempty"`
	AlgBW      unit.Rate      `json:"algbw_GBps"`
	BusBW      unit.Rate      `json:"busbw_GBps"`
	Floor      unit.Rate      `json:"floor_GBps"`            // busbw at the long end of the bar
	Chosen     bool           `json:"chosen"`                // what NCCL would take
	Beyond     bool           `json:"beyond_nccl,omitempty"` // NCCL cannot run it; another engine can
	Limit      result.Limit   `json:"bottleneck"`
	Parts      result.Parts   `json:"parts"`
	Busy       []result.Use   `json:"busy"`
	Links      []result.Links `json:"links,omitempty"` // where they were asked for
	// Branches are the row, and what it would be if a fact were otherwise that decides and that nobody stated.
	Branches []Branch `json:"branches,omitempty"`

	run     *result.Run // what it was made of; nil in a row that was read from JSON
	setting Setting
}

// NewRow is a run as a row, for a size that was asked for.
func NewRow(run *result.Run, asked unit.Bytes, algo string, s Setting) Row {
	low, high := run.Span()
	busy := make([]result.Use, len(run.Busy))
	for i, u := range run.Busy {
		u.Share = math.Round(u.Share*1e4) / 1e4 // more digits are not known
		busy[i] = u
	}
	return Row{
		Ranks: run.Ranks, Size: run.Op.Size(run.Ranks), Asked: asked, Count: run.Op.Count(run.Ranks),
		Dtype: run.Op.Type.String(), Algo: algo, Proto: s.Proto, Channels: run.Channels,
		Time: run.Time, Low: low, High: high, AlgBW: run.AlgBW(), BusBW: run.BusBW(),
		Floor: run.Op.BusBW(run.Ranks, high),
		Limit: run.Limit, Parts: run.Parts, Busy: busy, run: run, setting: s,
	}
}

// Setting is what the row was priced with.
func (r *Row) Setting() Setting { return r.setting }

// Barred tells whether the row has an error bar.
func (r *Row) Barred() bool { return r.High > r.Low }

// operation is what is really run.
func (r *Row) operation() coll.Op {
	if r.Beyond {
		return r.run.Op
	}
	return Substitute(r.run.Op)
}

// Skip is an algorithm that could not be predicted, and why.
type Skip struct {
	Algo   string `json:"algo"`
	Reason string `json:"reason"`
}

// Answer is the rows of a query in the order of sizes and algorithms, and from AskSide what else is to be said.
type Answer struct {
	Rows    []Row
	Skipped []Skip
	Side    Side
	Advice  []Advice
}

// AskSide answers a query on a layout, with advice and branches; side names it.
func (p *Predictor) AskSide(side Side, q Query) (*Answer, error) {
	a, err := p.Ask(q)
	if err != nil {
		return nil, err
	}
	help, err := p.Advise(q)
	if err != nil {
		return nil, err
	}
	side.Gain = help.Gain
	a.Side, a.Advice = side, help.Advice
	p.addBranches(a.Rows)
	for i := range a.Rows {
		a.Rows[i].Layout = side.Layout
	}
	for i := range a.Advice {
		a.Advice[i].Layout = side.Layout
	}
	return a, nil
}

// Ask answers a query. Algorithms that cannot run here are listed as skipped; when
// none can, that is an error.
func (p *Predictor) Ask(q Query) (*Answer, error) {
	if len(q.Algos) == 0 {
		q.Algos = []string{Auto}
	}
	if q.Proto == Auto {
		q.Proto = ""
	}
	sizes := q.Sizes
	if q.Kind == coll.Barrier {
		sizes = []unit.Bytes{0}
	}
	out, seen := &Answer{}, map[string]bool{}
	x := newForced(p)
	for _, size := range sizes {
		if err := q.stopped(); err != nil {
			return nil, err
		}
		op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: size}
		if err := op.Check(len(p.Layout)); err != nil {
			return nil, err
		}
		for _, algo := range q.Algos {
			rows, err := x.rows(op, algo, q.Proto)
			if err != nil && len(q.Algos) == 1 {
				return nil, err
			}
			if err != nil && !seen[algo] {
				seen[algo] = true
				out.Skipped = append(out.Skipped, Skip{algo, err.Error()})
			}
			out.Rows = append(out.Rows, rows...)
		}
	}
	if len(out.Rows) == 0 && len(out.Skipped) > 0 {
		return nil, errors.New(out.Skipped[0].Reason)
	}
	return out, nil
}

// rows are those of one size and one word.
func (x *forced) rows(op coll.Op, algo, proto string) ([]Row, error) {
	auto, err := x.auto(op)
	if err != nil {
		return nil, err
	}
	var list []Setting
	switch algo {
	case Auto:
		s := auto
		if proto != "" && proto != s.Proto {
			if s, err = x.named(op, "", proto); err != nil {
				return nil, err
			}
		}
		list = []Setting{s}
	case Best:
		return x.best(op, auto, proto, true)
	case Each:
		list = x.each(op, proto)
	case All:
		list = x.all(op, proto)
	default:
		s, err := x.named(op, algo, proto)
		if err != nil {
			return nil, err
		}
		list = []Setting{s}
	}
	if len(list) == 0 {
		return nil,
			fmt.Errorf("%s %v has no choice left for %s with protocol %s", x.p.Library(), x.p.Plan.Version, op.Kind, proto)
	}
	if (algo == Each || algo == All) && proto == "" && !slices.Contains(list, auto) {
		list = append([]Setting{auto}, list...) // a setting of the environment brought it in
	}
	var rows []Row
	for _, s := range list {
		r, err := x.row(op, s, auto)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// row prices one setting.
func (x *forced) row(op coll.Op, s, auto Setting) (Row, error) {
	run, err := x.price(op, s)
	if err != nil {
		return Row{}, err
	}
	name := s.Algo
	beyond := !x.native(op.Kind, s.Algo)
	switch {
	case len(x.p.Layout) == 1:
		name = Copy
	case !beyond && name == "chain":
		name = "ring"
	}
	r := NewRow(run, op.Bytes, name, s)
	bar := x.p.Bar(op)
	r.Grade, r.Publishers = bar.Grade, bar.Publishers
	r.Chosen, r.Beyond = s.Algo == auto.Algo && s.Proto == auto.Proto && s.Channels == auto.Channels, beyond
	return r, nil
}

// barrierBytes is the size of the all_reduce that frameworks use as a barrier:
// NCCL has none.
const barrierBytes = 4

// Substitute is the operation that NCCL really does for one it does not have.
func Substitute(op coll.Op) coll.Op {
	if op.Kind == coll.Barrier {
		return coll.Op{Kind: coll.AllReduce, Bytes: barrierBytes}
	}
	return op
}

// price predicts a setting, under the name of the operation that was asked for.
func (x *forced) price(op coll.Op, s Setting) (*result.Run, error) {
	as := op
	if op.Kind == coll.Barrier && x.native(op.Kind, s.Algo) {
		as = Substitute(op)
	}
	run, err := x.p.Price(as, s)
	var refused *schedule.Refusal
	switch {
	case errors.As(err, &refused):
		return nil, err // names both itself
	case err != nil:
		return nil, fmt.Errorf("%s by %s: %w", op.Kind, s.Algo, err)
	}
	if len(x.p.Layout) == 1 {
		x.p.singleRank(as, s, run)
	}
	run.Op = op
	return run, nil
}

// names joins words for a message.
func names(list []string) string { return strings.Join(list, ", ") }

// LayoutPlan is what NCCL sets up on one layout.
type LayoutPlan struct {
	Layout string      `json:"layout"`
	Plan   *nccl.Setup `json:"nccl_plan"`
}
