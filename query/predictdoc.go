package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// PredictDoc is the answer to Predict.
type PredictDoc struct {
	Cluster string            `json:"cluster"`
	Op      coll.Kind         `json:"op"`
	NCCL    string            `json:"nccl"`              // release
	Library string            `json:"library,omitempty"` // rccl on AMD's GPUs, hccl on Gaudi
	Model   string            `json:"model"`             // where the model's figures come from
	Rows    []PredictRow      `json:"rows"`              // by size; in a comparison the fastest first
	Advice  []predict.Advice  `json:"advice"`
	Gain    float64           `json:"best_gain"`         // of the fastest that NCCL can run over what it chooses, as a factor
	Caveats []string          `json:"caveats,omitempty"` // what the prediction takes for granted
	Compare []predict.Verdict `json:"compare,omitempty"`
	Skipped []string          `json:"skipped,omitempty"` // what could not be predicted, and why
	// Plan is what NCCL sets up, where it was asked for; Plans those of several layouts.
	Plan  *nccl.Plan   `json:"nccl_plan,omitempty"`
	Plans []LayoutPlan `json:"nccl_plans,omitempty"`

	Compared   bool           `json:"-"` // layouts side by side
	Sides      []predict.Side `json:"-"`
	Unmeasured bool           `json:"-"` // no measurements stand behind the margins
	Links      []result.Links `json:"-"` // of the one row

	predictors []*predict.Predictor // of Sides
	Noted
}

// LayoutPlan is what NCCL sets up on one layout.
type LayoutPlan struct {
	Layout string     `json:"layout"`
	Plan   *nccl.Plan `json:"nccl_plan"`
}

// PredictRow is one size by one algorithm on one layout. Bandwidths are those of nccl-tests, one direction.
type PredictRow struct {
	Layout     string         `json:"layout"`
	Ranks      int            `json:"ranks"`
	Size       unit.Bytes     `json:"size_bytes"`
	Asked      unit.Bytes     `json:"asked_bytes"`
	Count      int64          `json:"count"` // of elements
	Dtype      string         `json:"dtype"`
	Algo       string         `json:"algo"`
	Proto      string         `json:"proto"`
	Channels   int            `json:"channels"`
	Time       unit.Time      `json:"time_us"`
	Low        unit.Time      `json:"low_us"` // the error bar
	High       unit.Time      `json:"high_us"`
	AlgBW      unit.Rate      `json:"algbw_GBps"`
	BusBW      unit.Rate      `json:"busbw_GBps"`
	Chosen     bool           `json:"chosen"` // what NCCL would choose
	Beyond     bool           `json:"beyond_nccl,omitempty"`
	Bottleneck result.Limit   `json:"bottleneck"`
	Parts      PredictParts   `json:"parts"`
	Busy       []PredictUse   `json:"busy"`
	Links      []PredictLinks `json:"links,omitempty"`

	Row predict.Row `json:"-"`
}

// PredictParts are what the time is made of. They add up to it.
type PredictParts struct {
	Launch  unit.Time `json:"launch_us"`
	Latency unit.Time `json:"latency_us"`
	Sync    unit.Time `json:"sync_us"`
	Moving  unit.Time `json:"moving_us"`
}

// PredictUse is one of the busiest links.
type PredictUse struct {
	Where string           `json:"where"`
	Kind  result.LimitKind `json:"kind"`
	Rate  unit.Rate        `json:"rate_GBps"`
	Bytes unit.Bytes       `json:"bytes"`
	Share float64          `json:"share"` // of the time
}

// PredictLinks are hosts whose links carry the same, or the network where there are no hosts.
type PredictLinks struct {
	Hosts string           `json:"hosts,omitempty"`
	Links []PredictLinkUse `json:"links"`
}

// PredictLinkUse are links that are equally busy; bytes and rate are those of each, one direction.
type PredictLinkUse struct {
	Which      []string         `json:"which"`
	Kind       result.LimitKind `json:"kind"`
	Rate       unit.Rate        `json:"rate_GBps"`
	Cables     int              `json:"cables,omitempty"`
	Bytes      unit.Bytes       `json:"bytes"`
	Share      float64          `json:"share"`
	Bottleneck bool             `json:"bottleneck,omitempty"`
}

// NewPredictRow is a row of a prediction on a layout.
func NewPredictRow(layout string, r predict.Row) PredictRow {
	low, high := r.Span()
	row := PredictRow{
		Layout: layout, Ranks: r.Ranks, Size: r.Op.Size(r.Ranks), Asked: r.Asked, Count: r.Op.Count(r.Ranks), Dtype: r.Op.Type.String(),
		Algo: r.Algo, Proto: r.Setting.Proto, Channels: r.Channels, Time: r.Time, Low: low, High: high,
		AlgBW: r.AlgBW(), BusBW: r.BusBW(), Chosen: r.Chosen, Beyond: r.Beyond, Bottleneck: r.Limit,
		Parts: PredictParts{Launch: r.Parts.Launch, Latency: r.Parts.Latency, Sync: r.Parts.Sync, Moving: r.Parts.Moving},
		Busy:  []PredictUse{}, Row: r,
	}
	for _, u := range r.Run.Busy {
		row.Busy = append(row.Busy, PredictUse{Where: u.Where, Kind: u.Kind, Rate: u.Rate, Bytes: u.Bytes, Share: rounded(u.Share)})
	}
	return row
}

// rounded keeps four digits behind the point: more are not known.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// addSide adds what was predicted for one layout.
func (d *PredictDoc) addSide(p *predict.Predictor, side predict.Side, skipped []predict.Skip) {
	d.Unmeasured = d.Unmeasured || !predict.Measured(p.Class()) && p.Plan.RCCL == nil
	if p.Plan.RCCL != nil {
		d.Library, d.Model = "rccl", "from published figures of AMD and RCCL"
	}
	d.addRows(side, skipped)
	if side.Ranks > predict.LargestMeasured {
		d.Caveats = append(d.Caveats, fmt.Sprintf("%s: no measurement of more than %d GPUs is public, so the error bar is the widest; congestion between jobs and switches is not modelled", side.Layout, predict.LargestMeasured))
	}
}

// addRows adds a layout.
func (d *PredictDoc) addRows(side predict.Side, skipped []predict.Skip) {
	d.Sides = append(d.Sides, side)
	for _, r := range side.Rows {
		d.Rows = append(d.Rows, NewPredictRow(side.Layout, r))
	}
	d.Advice = append(d.Advice, side.Advice...)
	d.Gain = max(d.Gain, rounded(side.Gain))
	if side.Caveat != "" {
		d.Caveats = append(d.Caveats, side.Layout+": "+side.Caveat)
	}
	for _, t := range skipped {
		d.Skipped = append(d.Skipped, fmt.Sprintf("%s %s: %s", side.Layout, t.Algo, t.Reason))
	}
}

// addPublished adds a layout of GPUs of whose library only runs are known.
func (d *PredictDoc) addPublished(cl *cluster.Cluster, l nccl.Layout, name string, ask predict.Query) error {
	a, source, err := predict.AskPublished(cl, l, ask)
	if err != nil {
		return err
	}
	d.Library, d.NCCL, d.Model = "hccl", "", "none: published runs ("+source+"), drawn between their sizes"
	d.addRows(predict.Side{Layout: name, Nodes: hostsOf(l), Ranks: len(l), Rows: a.Rows}, a.Skipped)
	return nil
}

// sortRows puts rows into the order in which they are shown: by size, in a
// comparison the fastest first.
func (d *PredictDoc) sortRows() {
	slices.SortStableFunc(d.Rows, func(a, b PredictRow) int {
		n := cmp.Compare(a.Asked, b.Asked)
		if d.Compared {
			n = cmp.Or(n, cmp.Compare(a.Time, b.Time))
		}
		return n
	})
}

// addPlans adds what NCCL sets up.
func (d *PredictDoc) addPlans() {
	d.Plan = d.predictors[0].Plan
	if len(d.predictors) == 1 {
		return
	}
	for i, p := range d.predictors {
		d.Plans = append(d.Plans, LayoutPlan{Layout: d.Sides[i].Layout, Plan: p.Plan})
	}
}

// addLinks adds how busy every link is.
func (d *PredictDoc) addLinks(ctx context.Context, env *Env) error {
	if len(d.Rows) != 1 {
		return fmt.Errorf("--links is about one run and there are %d rows; give one --size, one layout and one --algo", len(d.Rows))
	}
	r := &d.Rows[0]
	var err error
	if d.Links, err = d.predictors[0].Links(ctx, r.operation(), r.Row.Setting, r.Row.Run); err != nil {
		if ctx.Err() != nil {
			return err
		}
		env.note(err.Error()) // the prediction itself stands
	}
	if d.Links == nil {
		return nil
	}
	r.Links = make([]PredictLinks, len(d.Links))
	for i, g := range d.Links {
		r.Links[i] = PredictLinks{Links: []PredictLinkUse{}}
		if len(g.Hosts) > 0 {
			r.Links[i].Hosts = cluster.FormatHosts(g.Hosts)
		}
		for _, u := range g.Uses {
			r.Links[i].Links = append(r.Links[i].Links, PredictLinkUse{Which: u.Which, Kind: u.Kind, Rate: u.Rate, Cables: u.Cables, Bytes: u.Bytes, Share: u.Share, Bottleneck: u.Tight})
		}
	}
	return nil
}

// operation is the operation that is run for the one that was asked for.
func (r *PredictRow) operation() coll.Op {
	if r.Beyond {
		return r.Row.Op
	}
	return predict.Substitute(r.Row.Op)
}

const (
	manyTraced = 50_000    // events above which a viewer needs patience
	maxTraced  = 2_000_000 // events that a viewer still opens
)

// Timeline plays every message of the one run that was asked for. name gives the ranks' names.
func (d *PredictDoc) Timeline(ctx context.Context, env Env) (run *result.Run, name func(rank int) string, err error) {
	env.question = &Predict{}
	defer func() { err = env.spelled(err) }()
	if len(d.Rows) != 1 {
		return nil, nil, fmt.Errorf("a timeline is of one run and there are %d rows; give one --size, one layout and one --algo", len(d.Rows))
	}
	if len(d.predictors) == 0 && d.Library != "hccl" {
		return nil, nil, ErrDecoded
	}
	if len(d.predictors) == 0 {
		return nil, nil, failure.Cannot(errors.New("a timeline of published runs: nothing is known of the messages that they are made of"))
	}
	r, p := &d.Rows[0], d.predictors[0]
	n, err := p.Steps(r.operation(), r.Row.Setting)
	switch {
	case err != nil:
		return nil, nil, err
	case n > maxTraced:
		return nil, nil, failure.Cannot(fmt.Errorf("a timeline of %d events is more than a viewer opens (%d); take a smaller --size, fewer nodes (-l) or another --algo", n, maxTraced))
	case n > manyTraced:
		env.note(fmt.Sprintf("the timeline will have about %d events; a viewer is slow with more than %d: a smaller --size or fewer nodes make less", n, manyTraced))
	}
	done := env.working("playing every message")
	run, err = p.Simulate(ctx, r.operation(), r.Row.Setting)
	done()
	if err != nil {
		return nil, nil, failure.Cannot(err)
	}
	run.Op, run.Algo = r.Row.Op, r.Algo
	if run.Time != r.Time {
		env.note(fmt.Sprintf("the timeline lasts %v, every message played; the table says %v by the steady form, which the model's figures were fitted with: go by the table for how long it takes", run.Time, r.Time))
	}
	return run, p.Name, nil
}
