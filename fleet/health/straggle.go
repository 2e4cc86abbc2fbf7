package health

import (
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Work is how long a rank took before it joined a collective: its own computing, without
// waiting for others. (The collective's own duration says the opposite: who comes last waits
// least.) The operation, the node and the rank are its identity.
type Work struct {
	Op    string    `json:"op"` // one call of a collective, over all ranks
	Node  string    `json:"node"`
	Rank  int       `json:"rank"`
	Time  time.Time `json:"time"`
	Spent unit.Time `json:"spent_us"`
}

// job is one call of a collective: the greatest time of each node.
type job struct {
	id    string
	at    int64
	spent map[int32]unit.Time
}

// Bounds of what is kept of calls.
const (
	mostJobs  = 256
	mostRanks = 1 << 20
)

// Work takes a rank's part of a call; false where it changes nothing.
func (h *History) Work(w Work) bool {
	i, ok := h.nodeOf(w.Node)
	if !ok || w.Op == "" || len(w.Op) > longest || w.Spent <= 0 || !isTime(w.Time) || w.Rank < 0 || w.Rank > mostRanks {
		return false
	}
	k := slices.IndexFunc(h.jobs, func(j *job) bool { return j.id == w.Op })
	if k < 0 {
		at := w.Time.UnixNano()
		if n := len(h.jobs); n >= mostJobs {
			if at < h.jobs[0].at {
				return false
			}
			h.jobs = slices.Delete(h.jobs, 0, 1)
		}
		k, h.jobs = len(h.jobs), append(h.jobs, &job{w.Op, at, map[int32]unit.Time{}})
	}
	if w.Spent <= h.jobs[k].spent[i] {
		return false
	}
	h.jobs[k].spent[i] = w.Spent
	return true
}

// A straggler was last so often that chance does so less than once in a million, and was
// late by margin in the middle.
const (
	unlikely = 1e-6
	margin   = 1.05
)

// stragglers finds nodes that are last again and again.
func (h *History) stragglers() (list []finding.Finding) {
	type record struct {
		calls  int
		expect float64 // of being last, summed over calls
		late   []float64
		since  int64
	}
	by := map[int32]*record{}
	for _, j := range h.jobs {
		if len(j.spent) < 3 {
			continue // of two nobody is out of line
		}
		all, last := make([]float64, 0, len(j.spent)), int32(-1)
		for n, d := range j.spent {
			all = append(all, float64(d))
			if last < 0 || d > j.spent[last] || d == j.spent[last] && n < last {
				last = n
			}
			if by[n] == nil {
				by[n] = &record{since: math.MaxInt64}
			}
			by[n].calls++
			by[n].expect += 1 / float64(len(j.spent)-1) // one may say that it is never last
		}
		r := by[last]
		r.late, r.since = append(r.late, float64(j.spent[last])/stats.MedianLow(all)), min(r.since, j.at)
	}
	for i, r := range by {
		n := len(r.late)
		late := stats.Nearest(r.late, 0.5)
		p := tail(r.calls, n, r.expect/float64(r.calls)) * float64(len(by))
		if n < 3 || h.node[i].gone || p > unlikely || late < margin {
			continue
		}
		f := found(Straggler, h.nodes.list[i], "", r.since, []string{fmt.Sprintf("by chance it would be last in %.1f of %d; "+
			"a binomial test gives %.1g for all %d nodes together", r.expect, r.calls, p, len(by))},
			n, r.calls, 100*(late-1))
		f.Factor, f.Confidence = round(1/late), round(1-min(0.1, p*1e4))
		switch {
		case late >= 1.5:
			f.Severity = finding.Error
		case late >= 1.1:
			f.Severity = finding.Warn
		}
		list = append(list, f)
	}
	return list
}

// tail is the chance of k or more of n that each happen with p.
func tail(n, k int, p float64) float64 {
	if k <= 0 || p >= 1 {
		return 1
	}
	lg := func(v int) float64 { r, _ := math.Lgamma(float64(v) + 1); return r }
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(lg(n) - lg(i) - lg(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
