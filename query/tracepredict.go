package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/doctor/rates"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result/trace"
)

// predict puts predictions beside what a trace measured: of every collective whose group and size it names, and of the step
// where a model is given.
func (q *Trace) predict(ctx context.Context, env *Env, d *TraceDoc, together *rates.Report, t *trace.Trace) error {
	place := q.placement()
	shapes, err := place.shapes()
	if err != nil {
		return err
	}
	version, err := env.parseNCCL(cmp.Or(q.NCCL, t.NCCL))
	if err != nil && q.NCCL == "" {
		version, err = env.parseNCCL("")
	}
	if err != nil {
		return err
	}
	cl, err := place.loadGPUs(ctx, env, shapes)
	if err != nil {
		return err
	}
	per := cl.TypeOf(0).Count(cluster.GPU)
	if shapes[0].gpus > 0 {
		per = shapes[0].gpus
	}
	for i := range together.Jobs {
		expectRows(cl, together.Jobs[i].Rows, d.Calls, per, version)
	}
	if q.Model == "" {
		return nil
	}
	doc, err := Step{Job: q.Job}.Run(ctx, *env)
	if err != nil {
		return err
	}
	d.Step = &doc.Rows[0]
	return nil
}

// expectRows predicts the rows whose group and size the traces name.
func expectRows(cl *cluster.Cluster, rows []rates.Row, calls []TraceCall, per int, v nccl.Version) {
	known := map[shape]*predict.Predictor{}
	for i := range rows {
		row := &rows[i]
		at := slices.IndexFunc(calls, func(c TraceCall) bool { return c.row.comm == row.Comm })
		if at < 0 || row.Bytes == 0 {
			continue
		}
		s, ok := groupShape(calls[at].members, row.Ranks, per)
		if !ok {
			continue
		}
		row.Nodes = s.nodes
		p, seen := known[s]
		if !seen {
			if l, _, err := s.ranks(cl); err == nil {
				p, _ = predict.New(cl, l, v, nil, nil)
			}
			known[s] = p
		}
		if p != nil {
			_ = row.Expect(p) // rows without an expectation are told all the same
		}
	}
}

// groupShape is the layout of a process group: how many nodes it is on, with how many GPUs of each. Ranks are taken to be
// numbered node by node, as launchers do it.
func groupShape(members []int, size, per int) (shape, bool) {
	if size < 2 || per < 1 || len(members) != size {
		return shape{}, false
	}
	nodes := map[int]int{}
	for _, r := range members {
		nodes[r/per]++
	}
	most := 0
	for _, n := range nodes {
		most = max(most, n)
	}
	s := shape{nodes: len(nodes), gpus: most}
	s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
	return s, s.nodes*s.gpus == size
}
