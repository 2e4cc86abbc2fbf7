package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// PlanDoc is the answer to Plan for one cluster; those of other clusters that were asked about side by side are its variants.
type PlanDoc struct {
	Cluster string `json:"cluster"`
	Set     string `json:"set,omitempty"` // what was changed of the cluster
	Model   string `json:"model"`
	GPUs    int    `json:"gpus"`
	// Considered is the settings of the space, the sum of the next three: Bounded were ruled out one by one, Cut were ruled
	// out in groups, Priced were priced in full. Failed are those, or groups, among Bounded and Cut that could not be priced.
	Considered int64       `json:"considered"`
	Bounded    int64       `json:"bounded"`
	Cut        int64       `json:"cut"`
	Priced     int64       `json:"priced"`
	Failed     int64       `json:"failed"`
	Seconds    float64     `json:"search_s"` // that the search took
	Complete   bool        `json:"complete"` // it came to its end
	Objective  string      `json:"objective"`
	Batch      int64       `json:"global_batch"`                // sequences of a step
	BatchRule  string      `json:"global_batch_rule,omitempty"` // where it comes from, if nobody named it
	Framework  string      `json:"framework,omitempty"`         // NAME@RELEASE that all plans run with; "" is any
	Chosen     string      `json:"framework_reason,omitempty"`  // why, where none was named
	Others     []PlanOther `json:"other_frameworks,omitempty"`
	Bound      float64     `json:"bound"`                 // the least value of the objective that anything else could have
	Gap        float64     `json:"gap"`                   // how much better than the first that would be
	Holds      string      `json:"sensitivity,omitempty"` // whether the order depends on figures that are only assumed
	Hosts      *PlanHosts  `json:"hosts,omitempty"`
	Plans      []PlanRow   `json:"plans"` // the best first
	Tie        *PlanTie    `json:"tie,omitempty"`
	Variants   []PlanDoc   `json:"variants,omitempty"`
	Emitted    *PlanFiles  `json:"emitted,omitempty"`

	Goal    PlanGoal    `json:"-"`
	Space   *plan.Space `json:"-"` // of all GPUs
	Spaces  int         `json:"-"` // numbers of nodes that were tried
	GPU     string      `json:"-"` // that all ranks are priced by
	Mixed   string      `json:"-"` // what is taken where GPUs differ; "" where they do not
	Nearby  bool        `json:"-"` // ranks follow the network and not the cluster's order of hosts
	Error   error       `json:"-"` // why the first that failed could not be priced
	Tuned   *plan.Tuned `json:"-"` // the first plan under busbar's tuner plugin
	Tuner   bool        `json:"-"` // all plans are under it
	Memory  unit.Bytes  `json:"-"` // of a node's own
	MemFrom string      `json:"-"` // who says so
	Noted
}

// PlanRow is one plan.
type PlanRow struct {
	Rank      int            `json:"rank"` // from 1
	Parallel  workload.Split `json:"parallel"`
	Micro     int64          `json:"micro_batch"`
	Recompute string         `json:"recompute"`
	Schedule  string         `json:"schedule,omitempty"`
	Context   string         `json:"context,omitempty"`
	Bucket    unit.Bytes     `json:"bucket_bytes,omitempty"`
	Offload   string         `json:"offload,omitempty"`
	Compress  string         `json:"compress,omitempty"`
	GPUs      int            `json:"gpus"`
	Value     float64        `json:"value"` // of the objective, for a step
	Step      unit.Span      `json:"step_s"`
	Low       unit.Span      `json:"low_s"` // the error bar
	High      unit.Span      `json:"high_s"`
	Tied      bool           `json:"tied,omitempty"`  // with the first
	Tight     bool           `json:"tight,omitempty"` // its memory is within the error bar of what the GPU has
	PerGPU    float64        `json:"tokens_per_s_per_gpu"`
	MFU       float64        `json:"mfu"`
	Why       string         `json:"why"`            // what limits the first, and what the others lose against it
	NCCL      *PlanTuned     `json:"nccl,omitempty"` // of the first
	Command   string         `json:"command"`        // busbar step for this plan
	Row       StepRow        `json:"row"`

	PerMillion float64 `json:"-"` // of the objective, for a million tokens
}

// PlanTuned is the first plan under busbar's tuner plugin for NCCL.
type PlanTuned struct {
	Step    unit.Span    `json:"step_s"`
	Choices []PlanChoice `json:"choices"`
}

// PlanChoice is a collective for which another algorithm or protocol than NCCL's own choice is predicted to be faster.
type PlanChoice struct {
	Group string     `json:"group"`
	Op    string     `json:"op"`
	Bytes unit.Bytes `json:"bytes"`
	Algo  string     `json:"algo"`
	Proto string     `json:"proto"`
	Own   string     `json:"nccl_algo"`
	OwnP  string     `json:"nccl_proto"`
	Gain  float64    `json:"times_as_fast"`
}

// document is the answer for one cluster.
func (x *planned) document() *PlanDoc {
	a, q := x.answer, x.query
	d := &PlanDoc{
		Cluster: q.Cluster.Name, Set: x.set, Model: q.Spaces[0].Base.Model.Name, GPUs: q.Spaces[0].Ranks,
		Considered: a.Considered, Bounded: a.Bounded, Cut: a.Cut, Priced: a.Priced, Failed: a.Failed, Seconds: x.took.Seconds(),
		Complete: a.Whole, Objective: x.goal.Name, Bound: a.Bound, Gap: x.gap(), Holds: x.holds, Plans: []PlanRow{},
		Goal: x.goal, Space: q.Spaces[0], Spaces: len(q.Spaces), GPU: q.GPU.Model.Title, Mixed: x.mixed, Nearby: x.nearby, Error: a.Err,
		Tuned: x.tuned, Tuner: q.Tuned, Memory: q.HostMemory, MemFrom: x.hostMemory, Batch: q.Spaces[0].Base.GlobalBatch / x.pairs(),
	}
	if base := &q.Spaces[0].Base; x.Global == 0 && !base.Model.Pictures() {
		d.BatchRule = workload.DefaultBatchRule
	}
	if x.order != nil {
		d.Hosts = &x.order.doc
	}
	if x.framework != nil {
		d.Framework, d.Chosen, d.Others = x.framework.String(), x.chosen, x.others
	}
	for i, p := range x.steps {
		var help []step.Change
		if i == 0 {
			help = x.help
		}
		row, j := p.row(help), p.job
		d.Plans = append(d.Plans, PlanRow{
			Rank: i + 1, Parallel: j.Split, Micro: j.MicroBatch, Recompute: string(j.Recompute), Schedule: row.Schedule, Context: string(j.Context),
			Bucket: j.Bucket, Offload: string(j.Offload), Compress: string(j.Compress), GPUs: j.Split.Ranks(), Value: a.Plans[i].Value,
			Step: p.Step, Low: row.Low, High: row.High, PerGPU: row.PerGPU, MFU: p.MFU, Tight: x.tight(&a.Plans[i]), Why: x.why(i), Command: x.command(p), Row: row, PerMillion: x.goal.perMillion(&a.Plans[i]),
		})
	}
	d.Plans[0].NCCL = newPlanTuned(x.tuned)
	if d.Tie = x.tie(); d.Tie != nil {
		for _, rank := range d.Tie.Plans {
			d.Plans[rank-1].Tied = true
		}
	}
	return d
}

func newPlanTuned(t *plan.Tuned) *PlanTuned {
	if t == nil {
		return nil
	}
	d := &PlanTuned{Step: t.Step, Choices: []PlanChoice{}}
	for _, c := range t.Choices {
		d.Choices = append(d.Choices, PlanChoice{
			Group: c.Group.String(), Op: c.Kind.String(), Bytes: c.Bytes, Algo: c.Best.Algo, Proto: c.Best.Proto, Own: c.Own.Algo, OwnP: c.Own.Proto,
			Gain: float64(c.Was / c.Is),
		})
	}
	return d
}

// gap is how much better than the best plan something could be that was not seen.
func (x *planned) gap() float64 {
	if x.answer.Bound <= 0 {
		return 0
	}
	return max(0, x.fastest()/x.answer.Bound-1)
}

// why says what limits the best plan, and what the others lose against it.
func (x *planned) why(i int) string {
	if i > 0 && x.answer.Plans[i].Value < x.answer.Plans[0].Value {
		return x.behind(i)
	}
	if i > 0 {
		return x.query.Compare(x.answer.Plans[0], x.answer.Plans[i], x.goal.worse())
	}
	return x.steps[0].limit().Text
}

// command is busbar step for a plan.
func (x *planned) command(p *pricedStep) string {
	j := p.job
	text := "busbar step -c " + shellWord(x.Cluster)
	if p.layout != "all" {
		text += " -l " + p.layout
	}
	if x.set != "" {
		text += " --set " + shellWord(x.set)
	}
	text += fmt.Sprintf(" -m %s --parallel %s --global-batch %d --micro-batch %d --seq %d --precision %s --recompute %s",
		shellWord(x.Model), x.said(j.Split), j.GlobalBatch/x.pairs(), j.MicroBatch/x.pairs(), j.Seq, j.Precision, j.Recompute) + x.words()
	if x.framework == nil {
		text += " --kernels " + string(j.Kernels)
	} else {
		text += " --framework " + x.framework.String()
		if string(j.Kernels) != x.framework.Kernels {
			text += " --kernels " + string(j.Kernels)
		}
	}
	if j.Split.PP > 1 {
		text += " --schedule " + string(j.Schedule)
		if j.Split.Order != workload.TensorDataPipeline {
			text += " --order " + string(j.Split.Order)
		}
	}
	own := workload.Job{Split: j.Split}
	if x.framework != nil { // whose own size step takes
		x.framework.Adopt(&own, p.model.SM)
	}
	if j.Bucket != 0 && j.Bucket != cmp.Or(own.Bucket, workload.DefaultBucket) {
		text += " --bucket " + j.Bucket.Exact()
	}
	for _, y := range []struct{ flag, value string }{
		{"--context", string(j.Context)},
		{"--offload", string(j.Offload)},
		{"--compress", string(j.Compress)},
		{"--nccl", x.NCCL},
		{"--gpu", x.Plan.GPU},
		{"--nic", x.NIC},
	} {
		if y.value != "" && y.value != "none" {
			text += " " + y.flag + " " + shellWord(y.value)
		}
	}
	if x.Tuner {
		text += " --tuner"
	}
	return text
}

// assumedRates are the layers of a fabric with rates that are only assumed, in words. Inside one node the network is none of them,
// nor is PCIe where GPUs have links of their own.
func assumedRates(c *cluster.Cluster, oneNode bool) []string {
	var list []string
	tiers, why := step.Assumed(c)
	_, linked := step.Faster(c, 1, step.Inner)
	for i, t := range tiers {
		if oneNode && (t == step.Ports || t == step.Trunks || t == step.Bus && linked) {
			continue
		}
		list = append(list, fmt.Sprintf("%s (%s)", t, why[i]))
	}
	return list
}

// assumedNode says how a node is built that was named by its GPUs alone; "" where it was not.
func assumedNode(c *cluster.Cluster) string {
	for _, source := range c.Sources {
		if strings.Contains(source, hardware.AssumedNode) {
			return source
		}
	}
	return ""
}

// sensitivity says whether the order of the plans depends on figures of the network that are only assumed, and names them.
func sensitivity(q *plan.Query, plans []plan.Plan) (string, error) {
	list := assumedRates(q.Cluster, false)
	if node := assumedNode(q.Cluster); len(list) == 0 && node != "" {
		return "no rate is assumed, the node itself is: " + node, nil
	}
	if len(list) == 0 && q.Cluster.Network.TrunksUnknown() {
		return "rates between switches are unknown and taken as enough; all others were read, measured, or are on data sheets", nil
	}
	if len(list) == 0 {
		return "no network rate is assumed: all were read, measured, or are on data sheets", nil
	}
	what := strings.Join(list, "; ")
	if len(plans) < 2 {
		return "assumed: " + what, nil
	}
	for _, factor := range []float64{0.8, 1.25, 0.5, 2} {
		values, err := q.Reprice(plans, factor)
		if err != nil || values == nil {
			return "", err
		}
		best := slices.Index(values, slices.Min(values))
		if gain := 1 - values[best]/values[0]; values[0] > values[best]*step.TieMargin {
			return fmt.Sprintf("with %.0f%% of the assumed rates plan %d would be %.0f%% better than plan 1; assumed: %s", 100*factor, best+1, 100*gain, what), nil
		}
	}
	return fmt.Sprintf("plan 1 stays within %.0f%% of the best of these with half and with twice the assumed rates: %s", 100*(step.TieMargin-1), what), nil
}
