package step

import "busbar.dev/unit"

// Feed lets a step wait for its samples where loading them takes longer than the step. Loaders work ahead, so that a
// step as long as the loading waits for nothing.
func (r *Result) Feed(data unit.Span) {
	r.Data = data
	if data <= r.Step || r.Step <= 0 {
		return
	}
	share := float64(r.Step / data)
	r.Starved, r.Step = data-r.Step, data
	r.MFU, r.HFU = r.MFU*share, r.HFU*share
}
