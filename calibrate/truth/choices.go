package truth

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/internal/stats"
)

// Choices is how well the order of settings is foretold where a source ran one job in several
// ways, which is what whoever chooses among them asks: errors that all ways share do not matter
// there, and small ones that they do not share do.
type Choices struct {
	Jobs int `json:"jobs"` // that were run in several ways
	// Pairs of ways whose measured times differ by more than Apart, and those of them that are
	// foretold in that order; Far and FarRight are the same for pairs far apart.
	Pairs    int `json:"pairs"`
	Right    int `json:"pairs_in_order"`
	Far      int `json:"far_pairs"`
	FarRight int `json:"far_pairs_in_order"`
	// Within is the jobs whose way that is foretold to be the fastest was measured within Apart
	// of the fastest; Lost by how much it was slower in the median job, Worst in the worst.
	Within int     `json:"first_within"`
	Lost   float64 `json:"first_slower_median"`
	Worst  float64 `json:"first_slower_worst"`
}

// Apart and Far apart are by how much two times differ: runs of one setting move by 1 to 5%
// between releases of software.
const (
	Apart    = 0.05
	FarApart = 0.2
)

// task is what ways to run have in common.
type task struct {
	cluster, model, precision         string
	params                            float64
	layers, hidden, heads, seq, batch int64
	gpus                              int
	gbps                              float64
}

// way is how a job was run.
type way struct {
	dp, tp, pp, vpp, cp, ep, zero, shard int
	micro                                int64
	seqParallel                          bool
	recompute, group                     string
}

func (t *Training) task() task {
	k := task{
		cluster: t.Cluster, model: t.Model.Name, precision: t.Parallel.Precision, params: t.Model.Params,
		layers: t.Model.Layers, hidden: t.Model.Hidden, heads: t.Model.Heads, seq: t.Model.Seq, batch: t.Parallel.GlobalBatch,
		gpus: t.Hardware.GPUs,
	}
	if t.Hardware.NodeGbps != nil {
		k.gbps = *t.Hardware.NodeGbps
	}
	return k
}

func (t *Training) way() way {
	p := &t.Parallel
	w := way{
		dp: p.DP, tp: p.TP, pp: p.PP, vpp: p.VPP, cp: p.CP, ep: p.EP, shard: p.ShardSize, micro: p.MicroBatch,
		recompute: p.Recompute, group: fmt.Sprint(p.ZeROGroup),
	}
	if p.ZeRO != nil {
		w.zero = *p.ZeRO
	}
	if p.SeqParallel != nil {
		w.seqParallel = *p.SeqParallel
	}
	return w
}

// timed is a way to run with the mean of its runs.
type timed struct{ measured, predicted, runs float64 }

// ways are the means of each job's ways, in the order of the rows.
func ways(rows []*RunRow) [][]timed {
	at := map[task]int{}
	var jobs []map[way]timed
	for _, r := range rows {
		k := r.task()
		if _, ok := at[k]; !ok {
			at[k] = len(jobs)
			jobs = append(jobs, map[way]timed{})
		}
		m := jobs[at[k]]
		w := m[r.way()]
		m[r.way()] = timed{w.measured + r.Seconds(), w.predicted + r.Predicted, w.runs + 1}
	}
	var list [][]timed
	for _, m := range jobs {
		var job []timed
		for _, w := range m {
			job = append(job, timed{w.measured / w.runs, w.predicted / w.runs, w.runs})
		}
		list = append(list, job)
	}
	return list
}

// RateChoices compares the orders of settings.
func RateChoices(rows []*RunRow) Choices {
	var c Choices
	var lost []float64
	for _, job := range ways(rows) {
		if len(job) < 2 {
			continue
		}
		c.Jobs++
		slices.SortFunc(job, func(a, b timed) int { return cmp.Compare(a.measured, b.measured) })
		first := job[0]
		for i, a := range job {
			if a.predicted < first.predicted {
				first = a
			}
			for _, b := range job[i+1:] {
				c.pair(b.measured/a.measured-1, a.predicted < b.predicted)
			}
		}
		lost = append(lost, first.measured/job[0].measured-1)
	}
	if len(lost) == 0 {
		return c
	}
	c.Lost, c.Worst = stats.Median(lost), stats.Quantile(lost, 1)
	for _, x := range lost {
		if x <= Apart {
			c.Within++
		}
	}
	return c
}

// pair counts two ways that differ by so much.
func (c *Choices) pair(apart float64, right bool) {
	count := func(all, ok *int) {
		*all++
		if right {
			*ok++
		}
	}
	if apart > Apart {
		count(&c.Pairs, &c.Right)
	}
	if apart > FarApart {
		count(&c.Far, &c.FarRight)
	}
}
