package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Floors asks what bandwidth every part of a cluster should reach: nodes, pairs, rails, leaves and all of it.
type Floors struct {
	Sources []string `arg:"" optional:"" name:"source" page:"c" names:"cluster" help:"As for Map."`
	Op      Op       `default:"all_reduce" help:"The collective: all_reduce, all_gather, reduce_scatter, all_to_all, … (default all_reduce)."`
	Size    Size     `placeholder:"SIZE" help:"Its size (default 1G)."`
	Given
}

// FloorsDoc is the answer to Floors.
type FloorsDoc struct {
	Cluster string     `json:"cluster"`
	Op      Op         `json:"op"`
	Size    unit.Bytes `json:"size_bytes"`
	NCCL    string     `json:"nccl"`
	Parts   []floorRow `json:"parts"`
	Skipped []string   `json:"skipped,omitempty"` // parts that could not be predicted, and why
	Noted
}

// floorRow is what one part, and those like it, should reach.
type floorRow struct {
	Part  string           `json:"part"`
	Nodes string           `json:"nodes"` // of the one that was predicted
	Count int              `json:"count"` // parts like it
	Ranks int              `json:"ranks"`
	BusBW unit.Rate        `json:"busbw_GBps"` // expected
	Floor unit.Rate        `json:"floor_GBps"` // at least
	Grade predict.Grade    `json:"grade"`
	Limit result.LimitKind `json:"limit"`
}

// Run predicts every part.
func (q Floors) Run(ctx context.Context, env Env) (doc *FloorsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	ask := Predict{Op: q.Op, Size: cmp.Or(q.Size, "1G")}
	if err := prepare(&ask); err != nil {
		return nil, err
	}
	what, err := ask.operation(ctx, &env)
	if err != nil {
		return nil, err
	}
	if len(what.Sizes) != 1 {
		return nil, fmt.Errorf("--size %s; expected one size", q.Size)
	}
	cl, _, err := q.Given.load(ctx, &env, q.Sources)
	if err != nil {
		return nil, err
	}
	version, err := env.parseNCCL("")
	if err != nil {
		return nil, err
	}
	version = predict.CalibratedRelease(cl, version)
	defer env.working("predicting")()
	d := &FloorsDoc{Cluster: cl.Name, Op: q.Op, Size: what.Sizes[0], NCCL: version.String(), Parts: []floorRow{}}
	parts := plan.Parts(cl)
	for i, part := range parts {
		env.steps(i, len(parts))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := predict.New(cl, part.Layout, version, nil, nil)
		var a *predict.Answer
		if err == nil {
			a, err = p.Ask(what)
		}
		if err != nil {
			d.Skipped = append(d.Skipped, fmt.Sprintf("%s (%s): %v", part.Name, part.Nodes, err))
			continue
		}
		r := a.Rows[0]
		d.add(floorRow{
			Part: part.Name, Nodes: part.Nodes, Count: part.Count, Ranks: r.Ranks, BusBW: r.BusBW, Floor: r.Floor,
			Grade: r.Grade,
			Limit: r.Limit.Kind,
		})
	}
	if len(d.Parts) == 0 {
		return nil, failure.Cannot(fmt.Errorf("no part of %s can be predicted: %s", cl.Name,
			cmp.Or(slices.Concat(d.Skipped, []string{"it has no two GPUs"})[0])))
	}
	return d, nil
}

// add adds a row. Rails that are alike are one row.
func (d *FloorsDoc) add(r floorRow) {
	if n := len(d.Parts) - 1; n >= 0 {
		last := &d.Parts[n]
		was, is := *last, r
		was.Part, is.Part, was.Count, is.Count = "", "", 0, 0
		if isRail(last.Part) && isRail(r.Part) && was == is {
			first, _, _ := strings.Cut(strings.TrimPrefix(last.Part, "rails "), "-")
			last.Part = "rails " + strings.TrimPrefix(first, "rail ") + "-" + strings.TrimPrefix(r.Part, "rail ")
			last.Count++
			return
		}
	}
	d.Parts = append(d.Parts, r)
}

func isRail(part string) bool { return strings.HasPrefix(part, "rail") }
