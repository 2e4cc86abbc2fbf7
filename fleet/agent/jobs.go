package agent

import (
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/input/profile"
)

// A beat carries what jobs did since the one before, in a bounded message: fewer samples where there are many
// communicators.
const (
	jobSamples = 32
	maxJobs    = 10 << 10 // of the 16 KiB that a server listens to, as text
)

// jobs is what the rings of the profiler plugin say about the operations since the last time; nil where no job of this
// machine writes any. The jobs themselves do not notice.
func (a *agent) jobs() []byte {
	names, err := profile.Files(a.Sys, profile.Folder[1:])
	if err != nil || len(names) == 0 {
		return nil
	}
	since := a.jobsRead.Add(1)
	var rings []*profile.Ring
	for _, n := range names {
		r, err := profile.ReadFile(a.Sys, n)
		if err != nil || len(r.Ops) == 0 {
			continue // another user's, or damaged
		}
		r.Host = string(a.Name) // a pod's name is not the node's
		rings = append(rings, r)
		if at := r.Ops[len(r.Ops)-1].Launched; at.After(a.jobsRead) && at.Before(time.Now().Add(time.Minute)) {
			a.jobsRead = at
		}
	}
	for samples := jobSamples; samples > 0; samples /= 2 {
		w := rates.NewWindow(samples)
		for _, r := range rings {
			w.AddRing(r, since)
		}
		if len(w.Parts) == 0 {
			return nil
		}
		if data, err := w.Done().Pack(); err == nil && len(data) <= maxJobs {
			return data
		}
	}
	return nil // too many communicators for a beat
}
