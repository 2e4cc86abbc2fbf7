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

// jobs are the last calls of collectives.
type jobs struct {
	list []*job // as they came
	byID map[string]*job
}

// job is one call: the greatest time of each node.
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
	if !ok || w.Op == "" || len(w.Op) > longest || w.Spent <= 0 || !known(w.Time) || w.Rank < 0 || w.Rank > mostRanks {
		return h.no()
	}
	j := h.jobs.byID[w.Op]
	if j == nil {
		if len(h.jobs.list) >= mostJobs {
			if w.Time.UnixNano() < h.jobs.list[0].at {
				return false
			}
			delete(h.jobs.byID, h.jobs.list[0].id)
			h.jobs.list = slices.Delete(h.jobs.list, 0, 1)
		}
		j = &job{id: w.Op, at: w.Time.UnixNano(), spent: map[int32]unit.Time{}}
		h.jobs.byID[w.Op], h.jobs.list = j, append(h.jobs.list, j)
	}
	if w.Spent <= j.spent[i] {
		return false
	}
	j.spent[i] = w.Spent
	return true
}

// A straggler was last so often that chance does so less than once in a million, and was
// late by margin in the middle.
const (
	unlikely = 1e-6
	margin   = 1.05
)

// stragglers finds nodes that are last again and again.
func (h *History) stragglers(time.Time) []finding.Finding {
	type tally struct {
		calls, last int
		expect      float64 // of being last, summed over calls
		late        []float64
		since       int64
	}
	by := map[int32]*tally{}
	for _, j := range h.jobs.list {
		if len(j.spent) < 3 {
			continue // of two nobody is out of line
		}
		worst, who := unit.Time(0), int32(-1)
		all := make([]float64, 0, len(j.spent))
		for n, d := range j.spent {
			all = append(all, float64(d))
			if d > worst || d == worst && n < who {
				worst, who = d, n
			}
		}
		mid := stats.MedianLow(all)
		for n := range j.spent {
			t := by[n]
			if t == nil {
				t = &tally{}
				by[n] = t
			}
			t.calls++
			t.expect += 1 / float64(len(j.spent)-1) // one may say that it is never last
			if n != who {
				continue
			}
			t.last++
			t.late = append(t.late, float64(worst)/mid)
			if t.since == 0 || j.at < t.since {
				t.since = j.at
			}
		}
	}
	var list []finding.Finding
	for i := range h.node {
		t := by[int32(i)]
		if t == nil || t.last < 3 || h.node[i].gone {
			continue
		}
		late := stats.Nearest(t.late, 0.5)
		p := tail(t.calls, t.last, t.expect/float64(t.calls)) * float64(len(by))
		if p > unlikely || late < margin {
			continue
		}
		name := h.nodes.list[i]
		f := finding.Finding{
			ID: "straggler:" + name, Kind: Straggler, Severity: finding.Note, Nodes: []string{name}, Since: stamp(t.since),
			Factor: round(1 / late), Confidence: round(1 - min(0.1, p*1e4)),
			Text: fmt.Sprintf("%s is last in %d of %d collectives, %.0f%% later than the median node: the others wait for "+
				"it.", name, t.last, t.calls, 100*(late-1)),
			Fix: "Check GPU clocks, temperature and power limits (nvidia-smi -q -d PERFORMANCE), ECC retirements, CPU " +
				"and storage of the node; balance the input if they are healthy.",
			Evidence: finding.Facts(fmt.Sprintf("by chance it would be last in %.1f of %d; a binomial test gives %.1g for all "+
				"%d nodes together", t.expect, t.calls, p, len(by))),
		}
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
