package query

import (
	"context"
	"fmt"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Suggest asks which sizes of a collective to measure on a cluster, so that a calibration with them says most about all
// sizes.
type Suggest struct {
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"The cluster: a preset, a cluster file, or any file that map reads."`
	Layout  Layout `short:"l" placeholder:"NxG" help:"Nodes and GPUs per node that take part (default: all)."`
	Op      Op     `default:"all_reduce" help:"The collective (default all_reduce)."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"The release of NCCL."`
	Count   int    `default:"5" least:"1" most:"30" help:"Number of sizes, 1 to 30 (default 5)."`
}

// SuggestDoc is the answer to Suggest.
type SuggestDoc struct {
	Cluster string         `json:"cluster"`
	Op      string         `json:"op"`
	Layout  string         `json:"layout"`
	Points  []SuggestPoint `json:"points"` // the one first that says most
	Margin  float64        `json:"margin"` // the error bar without any
	Nodes   int            `json:"nodes"`
	PerNode int            `json:"gpus_per_node"`
	By      string         `json:"tests"` // the program of nccl-tests
	Tool    string         `json:"tool"`  // nccl-tests, or rccl-tests on AMD's GPUs
	Noted
}

// SuggestPoint is one size.
type SuggestPoint struct {
	Size  unit.Bytes `json:"size_bytes"`
	Algo  string     `json:"algo"`
	Proto string     `json:"proto"`
	Time  float64    `json:"predicted_us"`
	Left  float64    `json:"uncertainty_left"` // of all sizes together, with this one and those before it
}

// Run chooses.
func (q Suggest) Run(ctx context.Context, env Env) (doc *SuggestDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	return q.upTo(ctx, env, 8*unit.GiB)
}

// upTo chooses of sizes up to one.
func (q Suggest) upTo(ctx context.Context, env Env, most unit.Bytes) (*SuggestDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if q.Count < 1 || q.Count > 30 {
		return nil, fmt.Errorf("%d sizes; expected 1 to 30", q.Count)
	}
	kind, err := q.Op.kind()
	if err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	version, err := env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, err
	}
	place := placement{cluster: q.Cluster, layout: string(q.Layout)}
	shapes, cl, err := place.shapedGPUs(ctx, &env)
	if err != nil {
		return nil, err
	}
	l, name, err := shapes[0].ranks(cl)
	if err != nil {
		return nil, err
	}
	p, err := predict.New(cl, l, version, nil, nil)
	if err != nil {
		return nil, err
	}
	var sizes []unit.Bytes
	for size := unit.Bytes(8); size <= most; size *= 2 {
		sizes = append(sizes, size)
	}
	list, err := calibrate.Suggest(p, kind, sizes, q.Count)
	if err != nil {
		return nil, err
	}
	d := &SuggestDoc{
		Cluster: cl.Name, Op: kind.String(), Layout: name, Points: []SuggestPoint{}, Nodes: hostsOf(l),
		PerNode: len(l) / hostsOf(l), By: kind.String() + "_perf", Tool: strings.ToLower(p.Library()) + "-tests",
	}
	for _, s := range list {
		op := coll.Op{Kind: kind, Bytes: s.Size, Type: coll.Float}
		d.Margin = max(d.Margin, p.Margin(op))
		d.Points = append(d.Points, SuggestPoint{s.Size, s.Setting.Algo, s.Setting.Proto, validateMicros(s.Time), s.Left})
	}
	return d, nil
}
