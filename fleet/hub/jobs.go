package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Bounds of what is kept of jobs: windows of a node, and points of a row's series.
const (
	jobSpan   = time.Minute
	jobPoints = 360
	maxSeries = 4096
	// maxWindows are kept of a node, which sends six a minute, and maxWaiting between two reports.
	maxWindows = 24
	maxWaiting = 4
	// jobsEvery is how often a report is made, and how long that may take.
	jobsEvery = 5 * time.Second
	// pointEvery makes an hour of jobPoints; rankSeries are kept of jobs with at most so many ranks.
	pointEvery = 10 * time.Second
	rankSeries = 256
	// predicting is how long one report may wait for new predictions; what is missing comes with the next.
	predicting = time.Second
)

// oneHost is what the records of a node may have in a minute: up to 16 GPUs, and two jobs in turn.
var oneHost = rates.Bounds{Processes: 64, Members: 256, Rows: 512}

// jobs is what the fleet's jobs did of late. It is not stored: a server that starts anew knows it after a minute.
type jobs struct {
	mu      sync.Mutex // guards following
	waiting map[fleet.Name][]jobRecord

	last atomic.Pointer[JobsReply]

	// What follows belongs to who makes reports.
	windows map[fleet.Name][]jobWindow // the newest first
	series  map[string][]JobPoint
	held    holding
	expect  predictors
}

// predictors are those of layouts on the fleet as it was.
type predictors struct {
	on   *cluster.Cluster
	each map[string]*predict.Predictor
	fail map[string]error
}

// jobRecord is a window as a node sent it.
type jobRecord struct {
	at   time.Time
	data []byte
}

type jobWindow struct {
	at time.Time
	w  *rates.Window
}

// JobPoint is one point of a row's series.
type JobPoint struct {
	At       time.Time `json:"at"`
	BusBW    float64   `json:"busbw_GBps"`
	Transfer float64   `json:"transfer_us"`
	Wait     float64   `json:"wait_us"`
	Share    float64   `json:"wait,omitempty"` // of a rank: the part of the minute that it waited
}

// JobsReply is what the fleet's jobs did in the last minute, and how their rows and ranks went before:
// COMM/OPERATION/CLASS, rank/HOST/PID.
type JobsReply struct {
	rates.Report

	Findings []finding.Finding     `json:"findings"`
	Series   map[string][]JobPoint `json:"series"`
	// Predicted names the cluster that expectations are of, empty where there are none; Unpredicted says why.
	Predicted   string `json:"predicted_on,omitempty"`
	Unpredicted string `json:"unpredicted,omitempty"`

	hold []finding.Finding // what is wrong now, or was a moment ago
}

// take keeps a node's window for the next report; reading it takes longer than a beat may.
func (j *jobs) take(n fleet.Name, data []byte, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = map[fleet.Name][]jobRecord{}
	}
	if list := j.waiting[n]; len(list) < maxWaiting {
		j.waiting[n] = append(list, jobRecord{now, data})
	}
}

// watchJobs makes a report now and then, apart from all else that the hub does.
func (h *Hub) watchJobs(ctx context.Context) error {
	tick := time.NewTicker(jobsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, jobsEvery)
		if err := h.judgeJobs(within, h.now()); err != nil && ctx.Err() == nil {
			h.cfg.Warn(fmt.Errorf("the records of jobs: %w", err))
		}
		cancel()
	}
}

// judgeJobs makes the report of the last minute.
func (h *Hub) judgeJobs(ctx context.Context, now time.Time) error {
	j := &h.jobs
	joined, err := rates.Join(ctx, oneHost, j.recent(now)...)
	if err != nil {
		return err
	}
	r := &JobsReply{Report: *joined, Series: map[string][]JobPoint{}}
	r.From, r.To = now.Add(-jobSpan), now // clocks of nodes may be wrong
	if len(r.Jobs) > 0 {
		c, err := h.predictable()
		r.Predicted, r.Unpredicted = r.Expect(j.expect.of(c, err, time.Now().Add(predicting)))
	}
	j.keep(r, now)
	r.Findings = r.Report.Findings()
	for i := range r.Findings {
		// Records pass by and nobody can look at them again: no node is drained for them.
		f := &r.Findings[i]
		f.Severity, f.Confidence = min(f.Severity, finding.Warn), min(f.Confidence, 0.8)
	}
	r.hold = j.held.with(r.Findings, now)
	j.last.Store(r)
	return nil
}

// recent takes in what came, and gives the windows of the last minute.
func (j *jobs) recent(now time.Time) (list []*rates.Window) {
	j.mu.Lock()
	waiting := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	if j.windows == nil {
		j.windows, j.series = map[fleet.Name][]jobWindow{}, map[string][]JobPoint{}
	}
	for n, records := range waiting {
		for _, r := range records {
			if w, err := rates.Unpack(r.data, string(n)); err == nil {
				j.windows[n] = slices.Insert(j.windows[n], 0, jobWindow{r.at, w})
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(j.windows)) {
		kept := slices.DeleteFunc(j.windows[n], func(w jobWindow) bool { return now.Sub(w.at) > jobSpan })
		if kept = kept[:min(len(kept), maxWindows)]; len(kept) == 0 {
			delete(j.windows, n)
			continue
		}
		j.windows[n] = kept
		for _, w := range kept {
			list = append(list, w.w)
		}
	}
	return list
}

// keep adds a point to every series, and gives the report those of its rows and ranks.
func (j *jobs) keep(r *JobsReply, now time.Time) {
	if len(j.series) >= maxSeries { // rows that were are no reason to forget those that are
		maps.DeleteFunc(j.series, func(_ string, list []JobPoint) bool { return now.Sub(list[len(list)-1].At) > jobSpan })
	}
	add := func(key string, p JobPoint) {
		points, ok := j.series[key]
		if !ok && len(j.series) >= maxSeries {
			return
		}
		if len(points) == 0 || now.Sub(points[len(points)-1].At) >= pointEvery {
			p.At = now.UTC()
			points = append(points, p) // readers of the last report have the shorter one
			j.series[key] = points[max(0, len(points)-jobPoints):]
		}
		r.Series[key] = j.series[key]
	}
	for i := range r.Jobs {
		job := &r.Jobs[i]
		for k := range job.Rows {
			x := &job.Rows[k]
			add(seriesKey(x), JobPoint{BusBW: x.BusBW.GBps(), Transfer: x.Transfer.Micros(), Wait: x.Wait.Micros()})
		}
		for k := range job.Ranks {
			if x := &job.Ranks[k]; len(job.Ranks) <= rankSeries {
				add(fmt.Sprintf("rank/%s/%d", x.Host, x.PID), JobPoint{Share: x.Wait})
			}
		}
	}
	maps.DeleteFunc(j.series, func(_ string, list []JobPoint) bool { return now.Sub(list[len(list)-1].At) > time.Hour })
}

// of gives the predictor of a row's communicator where it stands in the fleet.
func (p *predictors) of(c *cluster.Cluster, err error, until time.Time) func(*rates.Row) (*predict.Predictor, error) {
	if p.on != c || len(p.each)+len(p.fail) > maxSeries {
		*p = predictors{on: c, each: map[string]*predict.Predictor{}, fail: map[string]error{}}
	}
	return func(row *rates.Row) (*predict.Predictor, error) {
		if err != nil {
			return nil, err
		}
		key := row.Where()
		if p.each[key] == nil && p.fail[key] == nil {
			if time.Now().After(until) {
				return nil, errors.New("predictions take long; the next report has more")
			}
			l, err := row.Layout(c)
			if err == nil {
				p.each[key], err = predict.New(c, l, nccl.Newest, nil, nil)
			}
			p.fail[key] = err
		}
		return p.each[key], p.fail[key]
	}
}

// seriesKey names a row by its size class: the mean size of a class moves.
func seriesKey(r *rates.Row) string { return fmt.Sprintf("%s/%s/%d", r.Comm, r.Op, r.Class) }

func (h *Hub) jobMetrics(p *page) {
	r := h.jobs.last.Load()
	row := func(name, help string, of func(r *rates.Row) float64) {
		p.head(name, "gauge", help)
		for i := range r.Jobs {
			for k := range r.Jobs[i].Rows {
				x := &r.Jobs[i].Rows[k]
				if v := of(x); x.Transfer > 0 && !math.IsNaN(v) {
					p.line(name, v, "job", r.Jobs[i].Name, "communicator", x.Group, "comm", x.Comm, "operation", x.Op, "bytes_from",
						fmt.Sprint(int64(1)<<x.Class))
				}
			}
		}
	}
	row("busbar_job_collective_transfer_seconds", "Median transfer of a job's collective in the last minute.",
		func(r *rates.Row) float64 { return r.Transfer.Seconds() })
	row("busbar_job_collective_wait_seconds", "Mean time that ranks waited for the last one in a collective.",
		func(r *rates.Row) float64 { return r.Wait.Seconds() })
	row("busbar_job_collective_busbw_bytes_per_second", "Bus bandwidth of the median transfer.",
		func(r *rates.Row) float64 { return float64(r.BusBW) })
	row("busbar_job_collective_expected_seconds",
		"Transfer that predict expects on the fleet's topology; none where it cannot.",
		expectedOf(func(e *rates.Expected) unit.Time { return e.Time }))
	row("busbar_job_collective_expected_high_seconds", "Upper end of the error bar of the expected transfer.",
		expectedOf(func(e *rates.Expected) unit.Time { return e.High }))
	p.head("busbar_job_rank_wait_ratio", "gauge", "Share of the last minute that a rank waited for others in collectives.")
	for i := range r.Jobs {
		for k := range r.Jobs[i].Ranks {
			x := &r.Jobs[i].Ranks[k]
			p.line("busbar_job_rank_wait_ratio", x.Wait, "job", r.Jobs[i].Name, "rank", fmt.Sprint(x.Rank), "node", x.Host)
		}
	}
	p.head("busbar_job_late_ratio", "gauge", "Share of the last minute that the median rank waited for the rank that "+
		"comes last; none where no rank is late.")
	for i := range r.Jobs {
		if l := r.Jobs[i].Late; l != nil {
			p.line("busbar_job_late_ratio", l.Share, "job", r.Jobs[i].Name, "rank", fmt.Sprint(l.Ranks[0]), "node", l.Host)
		}
	}
}

// expectedOf is a time of what is expected, NaN where nothing is.
func expectedOf(of func(*rates.Expected) unit.Time) func(*rates.Row) float64 {
	return func(r *rates.Row) float64 {
		if r.Expected == nil {
			return math.NaN()
		}
		return of(r.Expected).Seconds()
	}
}
