package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// predict puts predictions beside what a trace measured: of every collective whose group and size it names, and of the step
// where a model is given.
func (q *Trace) predict(ctx context.Context, env *Env, d *TraceDoc, t *trace.Trace) error {
	place := q.placement()
	shapes, err := place.shapes()
	if err != nil {
		return err
	}
	version, err := parseNCCL(cmp.Or(q.NCCL, t.NCCL))
	if err != nil && q.NCCL == "" {
		version, err = parseNCCL("")
	}
	if err != nil {
		return err
	}
	cl, err := place.enough(ctx, env, shapes)
	if err != nil {
		return err
	}
	if err := place.requireGPUs(cl); err != nil {
		return err
	}
	if err := place.assume(env, cl, shapes); err != nil {
		return err
	}
	per := cl.TypeOf(0).Count(cluster.GPU)
	if shapes[0].gpus > 0 {
		per = shapes[0].gpus
	}
	known := map[string]*predict.Predictor{}
	for i := range d.Calls {
		if err := d.Calls[i].expect(cl, per, version, known); err != nil {
			env.note(err.Error())
		}
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

// expect predicts one kind of calls.
func (c *TraceCall) expect(cl *cluster.Cluster, per int, v nccl.Version, known map[string]*predict.Predictor) error {
	kind, err := coll.ParseKind(c.Op)
	s, ok := groupShape(c.members, c.Ranks, per)
	if err != nil || c.Bytes == 0 || !ok {
		return nil
	}
	p := known[s.text]
	if p == nil {
		l, _, err := s.ranks(cl)
		if err != nil {
			return fmt.Errorf("%s over %s is not predicted: %w", c.Op, words.Plural(c.Ranks, "rank"), err)
		}
		if p, err = predict.New(cl, l, v, nil, nil); err != nil {
			return err
		}
		known[s.text] = p
	}
	a, err := p.Ask(predict.Query{Kind: kind, Type: coll.Uint8, Sizes: []unit.Bytes{c.Bytes}})
	if err != nil || len(a.Rows) == 0 {
		return err
	}
	c.Layout, c.Expected = s.text, a.Rows[0].Time
	c.Low, c.High = a.Rows[0].Span()
	return nil
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

// judge says what stands out: who is late, and what is slower than its prediction allows.
func (d *TraceDoc) judge() {
	if len(d.Waiting) > 0 {
		last := d.Waiting[0]
		total := unit.Span(0)
		for _, w := range d.Waiting {
			total += w.Held
		}
		if last.Last > 0.5 && last.Held > total*6/10 {
			d.Findings = append(d.Findings, finding.Finding{
				ID: "late-rank", Kind: "late-rank", Severity: finding.Warn, Confidence: 0.8, Ranks: []int{last.Rank},
				Title: fmt.Sprintf("rank %d comes last to %.0f%% of the collectives; the others wait %s for it in these traces", last.Rank, 100*last.Last, last.Held.Short()),
				Cause: "It computes longer than the others, or its host starts kernels later: the network is not what they wait for.",
				Fix:   fmt.Sprintf("Look at rank %d: clocks and temperature of its GPU (nvidia-smi -q -d PERFORMANCE), its data loading, its share of the work.", last.Rank),
			})
		}
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		took := cmp.Or(c.Transfer, c.Median)
		if c.High == 0 || took <= c.High {
			continue
		}
		severity, cause := finding.Warn, "The transfer itself is slow: ranks that come late are taken out."
		if c.Transfer == 0 {
			severity, cause = finding.Note, "One rank's trace does not tell waiting for a late rank from a slow network: give the traces of several ranks."
		}
		d.Findings = append(d.Findings, finding.Finding{
			ID: "slow-collective", Kind: "slow-collective", Severity: severity, Confidence: 0.7,
			Title: fmt.Sprintf("%s of %s over %s takes %s; %s is expected, at most %s", c.Op, c.Bytes, words.Plural(c.Ranks, "rank"), took, c.Expected, c.High),
			Cause: cause, Fix: "Measure it alone: busbar bench gpu, or nccl-tests with the same ranks; then busbar doctor bench.", Factor: float64(c.Expected) / float64(took),
		})
		if severity == finding.Note {
			break // the same remark for every size is no news
		}
	}
	slices.SortStableFunc(d.Findings, func(a, b finding.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
}
