package hub

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
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
	maxParts  = 4096 // of one node's window
	// maxWindows are kept of a node, which sends six a minute.
	maxWindows = 24
	// pointEvery makes an hour of jobPoints; rankSeries are kept of jobs with at most so many ranks.
	pointEvery = 10 * time.Second
	rankSeries = 256
	// predicting is how long one report may wait for new predictions; what is missing comes with the next.
	predicting = time.Second
)

// jobs is what the fleet's jobs did of late. It is not stored: a server that starts anew knows it after a minute.
type jobs struct {
	mu      sync.Mutex
	windows map[fleet.Name][]jobWindow
	series  map[string][]JobPoint
	report  *rates.Report
	at      time.Time // the report is of then
	on, why string    // the cluster that it was predicted on, or why it was not
	held    holding
	expect  predictors
}

// predictors are those of communicators on the fleet as it was.
type predictors struct {
	on   *cluster.Cluster
	each map[string]*predict.Predictor
	fail map[string]error
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
}

// take keeps a node's window. What a node says of ranks of other hosts cannot be told from what they say: it counts as
// said.
func (j *jobs) take(n fleet.Name, data []byte, now time.Time) {
	w, err := rates.Unpack(data)
	if err != nil || len(w.Parts) > maxParts || len(w.Members) > maxParts {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.windows == nil {
		j.windows, j.series = map[fleet.Name][]jobWindow{}, map[string][]JobPoint{}
	}
	j.windows[n] = append(j.windows[n], jobWindow{now, w})
	if list := j.windows[n]; len(list) > maxWindows {
		j.windows[n] = slices.Clone(list[len(list)-maxWindows:])
	}
}

// jobsNow is the report of the last minute, made at most every few seconds.
func (h *Hub) jobsNow() *rates.Report {
	now, j := h.now(), &h.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.report != nil && now.Sub(j.at) < 5*time.Second && !now.Before(j.at) {
		return j.report
	}
	var list []*rates.Window
	for n, windows := range j.windows {
		windows = slices.DeleteFunc(windows, func(w jobWindow) bool { return now.Sub(w.at) > jobSpan })
		if j.windows[n] = windows; len(windows) == 0 {
			delete(j.windows, n)
		}
		for _, w := range windows {
			list = append(list, w.w)
		}
	}
	j.report, j.at, j.on, j.why = rates.Join(list...), now, "", ""
	if len(j.report.Jobs) > 0 {
		c, err := h.predictable()
		j.on, j.why = j.report.Expect(j.expect.of(c, err, time.Now().Add(predicting)))
	}
	j.keep(now)
	return j.report
}

// keep adds a point to every series.
func (j *jobs) keep(now time.Time) {
	add := func(key string, p JobPoint) {
		points, ok := j.series[key]
		if !ok && len(j.series) >= maxSeries || len(points) > 0 && now.Sub(points[len(points)-1].At) < pointEvery {
			return
		}
		p.At = now.UTC()
		points = append(points, p)
		j.series[key] = points[max(0, len(points)-jobPoints):]
	}
	for i := range j.report.Jobs {
		job := &j.report.Jobs[i]
		for k := range job.Rows {
			r := &job.Rows[k]
			add(seriesKey(r), JobPoint{BusBW: r.BusBW.GBps(), Transfer: r.Transfer.Micros(), Wait: r.Wait.Micros()})
		}
		for k := range job.Ranks {
			if r := &job.Ranks[k]; len(job.Ranks) <= rankSeries {
				add(rankKey(r), JobPoint{Share: r.Wait})
			}
		}
	}
	for key, points := range j.series {
		if now.Sub(points[len(points)-1].At) > time.Hour {
			delete(j.series, key)
		}
	}
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
		key := fmt.Sprintf("%s/%d", row.Comm, row.Seen)
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

func rankKey(r *rates.Rank) string { return fmt.Sprintf("rank/%s/%d", r.Host, r.PID) }

// jobFindings are what is wrong with the fleet's jobs.
func (h *Hub) jobFindings() []finding.Finding {
	list := h.jobsNow().Findings()
	h.jobs.mu.Lock()
	defer h.jobs.mu.Unlock()
	return h.jobs.held.with(list, h.now())
}

func (h *Hub) getJobs(w http.ResponseWriter, _ *http.Request) {
	r := h.jobsNow()
	h.jobs.mu.Lock()
	out := JobsReply{
		Report: *r, Findings: r.Findings(), Series: map[string][]JobPoint{}, Predicted: h.jobs.on, Unpredicted: h.jobs.why,
	}
	for i := range r.Jobs {
		for k := range r.Jobs[i].Rows {
			key := seriesKey(&r.Jobs[i].Rows[k])
			out.Series[key] = slices.Clone(h.jobs.series[key])
		}
		for k := range r.Jobs[i].Ranks {
			key := rankKey(&r.Jobs[i].Ranks[k])
			if list := h.jobs.series[key]; list != nil {
				out.Series[key] = slices.Clone(list)
			}
		}
	}
	h.jobs.mu.Unlock()
	reply(w, out)
}

func (h *Hub) jobMetrics(p *page) {
	r := h.jobsNow()
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
