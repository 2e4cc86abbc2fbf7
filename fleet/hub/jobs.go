package hub

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// Bounds of what is kept of jobs: windows of a node, and points of a row's series.
const (
	jobSpan   = time.Minute
	jobPoints = 360
	maxSeries = 4096
	maxParts  = 4096 // of one node's window
	// maxWindows are kept of a node, which sends six a minute.
	maxWindows = 24
)

// jobs is what the fleet's jobs did of late. It is not stored: a server that starts anew knows it after a minute.
type jobs struct {
	mu      sync.Mutex
	windows map[fleet.Name][]jobWindow
	series  map[string][]JobPoint
	report  *rates.Report
	at      time.Time // the report is of then
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
}

// JobsReply is what the fleet's jobs did in the last minute, and how their rows went before: by communicator, operation and size class.
type JobsReply struct {
	rates.Report

	Findings []finding.Finding     `json:"findings"`
	Series   map[string][]JobPoint `json:"series"`
}

// take keeps a node's window. What a node says of ranks of other hosts cannot be told from what they say: it counts as said.
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

// now is the report of the last minute, made at most every few seconds.
func (j *jobs) now(now time.Time) *rates.Report {
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
	j.report, j.at = rates.Join(list...), now
	for i := range j.report.Jobs {
		for k := range j.report.Jobs[i].Rows {
			r := &j.report.Jobs[i].Rows[k]
			key := seriesKey(r)
			if _, ok := j.series[key]; !ok && len(j.series) >= maxSeries {
				continue
			}
			points := append(j.series[key], JobPoint{now.UTC(), r.BusBW.GBps(), r.Transfer.Micros(), r.Wait.Micros()})
			j.series[key] = points[max(0, len(points)-jobPoints):]
		}
	}
	for key, points := range j.series {
		if now.Sub(points[len(points)-1].At) > time.Hour {
			delete(j.series, key)
		}
	}
	return j.report
}

// seriesKey names a row by its size class: the mean size of a class moves.
func seriesKey(r *rates.Row) string { return fmt.Sprintf("%s/%s/%d", r.Comm, r.Op, r.Class) }

// findings are those of jobs that need a look at a node: hints are for who looks at the job.
func (j *jobs) findings(now time.Time) []finding.Finding {
	list := slices.DeleteFunc(j.now(now).Findings(), func(f finding.Finding) bool { return f.Severity < finding.Warn })
	for i := range list {
		list[i].Since = now
	}
	return list
}

func (h *Hub) getJobs(w http.ResponseWriter, _ *http.Request) {
	r := h.jobs.now(h.now())
	h.jobs.mu.Lock()
	series := map[string][]JobPoint{}
	for i := range r.Jobs {
		for k := range r.Jobs[i].Rows {
			key := seriesKey(&r.Jobs[i].Rows[k])
			series[key] = slices.Clone(h.jobs.series[key])
		}
	}
	h.jobs.mu.Unlock()
	reply(w, JobsReply{Report: *r, Findings: r.Findings(), Series: series})
}

func (h *Hub) jobMetrics(p *page) {
	r := h.jobs.now(h.now())
	row := func(name, help string, of func(r *rates.Row) float64) {
		p.head(name, "gauge", help)
		for i := range r.Jobs {
			for k := range r.Jobs[i].Rows {
				if x := &r.Jobs[i].Rows[k]; x.Transfer > 0 {
					p.line(name, of(x), "job", r.Jobs[i].Name, "communicator", x.Group, "comm", x.Comm, "operation", x.Op, "bytes_from", fmt.Sprint(int64(1)<<x.Class))
				}
			}
		}
	}
	row("busbar_job_collective_transfer_seconds", "Median transfer of a job's collective in the last minute.", func(r *rates.Row) float64 { return r.Transfer.Seconds() })
	row("busbar_job_collective_wait_seconds", "Mean time that ranks waited for the last one in a collective.", func(r *rates.Row) float64 { return r.Wait.Seconds() })
	row("busbar_job_collective_busbw_bytes_per_second", "Bus bandwidth of the median transfer.", func(r *rates.Row) float64 { return float64(r.BusBW) })
	p.head("busbar_job_rank_wait_ratio", "gauge", "Share of the last minute that a rank waited for others in collectives.")
	for i := range r.Jobs {
		for k := range r.Jobs[i].Ranks {
			x := &r.Jobs[i].Ranks[k]
			p.line("busbar_job_rank_wait_ratio", x.Wait, "job", r.Jobs[i].Name, "rank", fmt.Sprint(x.Rank), "node", x.Host)
		}
	}
	p.head("busbar_job_late_ratio", "gauge", "Share of the last minute that the median rank waited for the rank that comes last; none where no rank is late.")
	for i := range r.Jobs {
		if l := r.Jobs[i].Late; l != nil {
			p.line("busbar_job_late_ratio", l.Share, "job", r.Jobs[i].Name, "rank", fmt.Sprint(l.Ranks[0]), "node", l.Host)
		}
	}
}
