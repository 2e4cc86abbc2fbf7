package main

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/internal/stats"
)

// choices are how well the order of settings is foretold where a source ran one job in several
// ways, which is what whoever chooses among them asks: errors that all ways share do not matter
// there, and small ones that they do not share do.
type choices struct {
	Jobs int // that were run in several ways
	// Pairs of ways whose measured times differ by more than differ, and those of them that are
	// foretold in that order; Far and FarRight are the same for pairs far apart.
	Pairs    int
	Right    int
	Far      int
	FarRight int
	// Within is the jobs whose way that is foretold to be the fastest was measured within differ
	// of the fastest; Lost by how much it was slower in the median job, Worst in the worst.
	Within int
	Lost   float64
	Worst  float64
}

// differ and differFar are by how much two times differ: runs of one setting move by 1 to 5%
// between releases of software.
const (
	differ    = 0.05
	differFar = 0.2
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

func taskOf(t *training) task {
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

func wayOf(t *training) way {
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
func ways(rows []*runRow) [][]timed {
	at := map[task]int{}
	var jobs []map[way]timed
	for _, r := range rows {
		k := taskOf(r.training)
		if _, ok := at[k]; !ok {
			at[k] = len(jobs)
			jobs = append(jobs, map[way]timed{})
		}
		m := jobs[at[k]]
		w := m[wayOf(r.training)]
		m[wayOf(r.training)] = timed{w.measured + r.Seconds(), w.predicted + r.Predicted, w.runs + 1}
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

// rateChoices compares the orders of settings.
func rateChoices(rows []*runRow) choices {
	var c choices
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
		if x <= differ {
			c.Within++
		}
	}
	return c
}

// pair counts two ways that differ by so much.
func (c *choices) pair(apart float64, right bool) {
	count := func(all, ok *int) {
		*all++
		if right {
			*ok++
		}
	}
	if apart > differ {
		count(&c.Pairs, &c.Right)
	}
	if apart > differFar {
		count(&c.Far, &c.FarRight)
	}
}
