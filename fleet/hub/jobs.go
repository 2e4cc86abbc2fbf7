package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
)

// Bounds of what is kept of jobs.
const (
	jobSpan = time.Minute
	// maxPredictors is how many layouts have predictions.
	maxPredictors = 4096
	// maxWindows are kept of a node, which sends six a minute, and maxWaiting between two reports.
	maxWindows = 24
	maxWaiting = 4
	// jobsEvery is how often a report is made, and how long that may take.
	jobsEvery = 5 * time.Second
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
	windows map[fleet.Name][]jobWindow // the oldest first
	expect  predictors
}

// predictors are those of layouts on the fleet as it was.
type predictors struct {
	on   *cluster.Cluster
	each map[string]prediction
}

// prediction is a predictor, or why there is none.
type prediction struct {
	by  *predict.Predictor
	err error
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

// JobsReply is what the fleet's jobs did in the last minute.
type JobsReply struct {
	rates.Report

	Findings []finding.Finding `json:"findings"`
	// Predicted names the cluster that expectations are of, empty where there are none; Unpredicted says why.
	Predicted   string `json:"predicted_on,omitempty"`
	Unpredicted string `json:"unpredicted,omitempty"`
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
		if err := h.judgeJobs(within, time.Now()); err != nil && ctx.Err() == nil {
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
	r := &JobsReply{Report: *joined}
	r.From, r.To = now.Add(-jobSpan), now // clocks of nodes may be wrong
	if len(r.Jobs) > 0 {
		c, err := h.predictable()
		r.Predicted, r.Unpredicted = r.Expect(j.expect.of(c, err, time.Now().Add(predicting)))
	}
	r.Findings = r.Report.Findings()
	for i := range r.Findings {
		// Records pass by and nobody can look at them again: no node is drained for them.
		f := &r.Findings[i]
		f.Severity, f.Confidence = min(f.Severity, finding.Warn), min(f.Confidence, 0.8)
		h.notice(*f)
	}
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
		j.windows = map[fleet.Name][]jobWindow{}
	}
	for n, records := range waiting {
		for _, r := range records {
			if w, err := rates.Unpack(r.data, string(n)); err == nil {
				j.windows[n] = append(j.windows[n], jobWindow{r.at, w})
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(j.windows)) {
		kept := slices.DeleteFunc(j.windows[n], func(w jobWindow) bool { return now.Sub(w.at) > jobSpan })
		j.windows[n] = kept[max(0, len(kept)-maxWindows):]
		if len(kept) == 0 {
			delete(j.windows, n)
		}
		for _, w := range slices.Backward(j.windows[n]) { // the newest first
			list = append(list, w.w)
		}
	}
	return list
}

// of gives the predictor of a row's communicator where it stands in the fleet.
func (p *predictors) of(c *cluster.Cluster, err error, until time.Time) func(*rates.Row) (*predict.Predictor, error) {
	if p.on != c || len(p.each) > maxPredictors {
		*p = predictors{on: c, each: map[string]prediction{}}
	}
	return func(row *rates.Row) (*predict.Predictor, error) {
		if err != nil {
			return nil, err
		}
		key := row.Where()
		x, known := p.each[key]
		if !known {
			if time.Now().After(until) {
				return nil, errors.New("predictions take long; the next report has more")
			}
			l, err := row.Layout(c)
			if x.err = err; err == nil {
				x.by, x.err = predict.New(c, l, predict.CalibratedRelease(c, nccl.Newest), nil, nil)
			}
			p.each[key] = x
		}
		return x.by, x.err
	}
}
