package gpu

import (
	"slices"

	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Results are what settings gave.
type Results struct {
	Sweeps   result.Sweeps `json:"results"`
	Rows     []Best        `json:"rows"`
	Refused  []Refusal     `json:"refused"`
	Settings int           `json:"settings"`     // that gave something
	Untimed  int           `json:"untimed_rows"` // without a time that is a number above 0
	Bad      int64         `json:"wrong"`        // elements

	times map[trial][]unit.Time // out of place, of every run
	order []trial
}

// trial is a size of a collective with a setting.
type trial struct {
	kind    coll.Kind
	size    unit.Bytes
	setting Setting
}

// Refusal is a setting that gave nothing.
type Refusal struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

// Best is the best setting of a size.
type Best struct {
	Op   coll.Kind  `json:"op,omitempty"`
	Size unit.Bytes `json:"size_bytes"`
	Auto unit.Time  `json:"auto_s"` // by NCCL's own choice
	Time unit.Time  `json:"best_s"`
	Setting
	Env  map[string]string `json:"env"`  // what makes NCCL do it
	Lost float64           `json:"lost"` // how much longer NCCL's own choice takes, as a share
}

// Refuse notes that a setting gave nothing, once.
func (r *Results) Refuse(s Setting, err error) {
	if x := (Refusal{s.String(), texttab.Clean(err.Error())}); !slices.Contains(r.Refused, x) {
		r.Refused = append(r.Refused, x)
	}
}

// Add takes what one run of a setting gave.
func (r *Results) Add(s Setting, list result.Sweeps) {
	r.Sweeps = append(r.Sweeps, list...)
	if r.times == nil {
		r.times = map[trial][]unit.Time{}
	}
	for _, row := range list.Rows() {
		if row.Wrong != nil {
			r.Bad += *row.Wrong
		}
		if row.InPlace || row.Wrong != nil && *row.Wrong > 0 {
			continue
		}
		t := trial{row.Op, row.Size, s}
		if r.times[t] == nil {
			r.order = append(r.order, t)
		}
		r.times[t] = append(r.times[t], row.Time.Mean)
	}
}

// Find finds the fastest setting of every size, by the median of its runs. Sizes stay in the order in which they came.
func (r *Results) Find() {
	var list []*Best
	at, settings := map[trial]*Best{}, map[Setting]bool{}
	for _, t := range r.order {
		took := stats.Nearest(r.times[t], 0.5)
		size := trial{kind: t.kind, size: t.size}
		b := at[size]
		if b == nil {
			b = &Best{Op: t.kind, Size: t.size, Time: took, Setting: t.setting}
			list = append(list, b)
		}
		if t.setting.Auto() {
			b.Auto = took
		}
		if took < b.Time {
			b.Time, b.Setting = took, t.setting
		}
		at[size], settings[t.setting] = b, true
	}
	r.Settings = len(settings)
	for _, b := range list {
		if b.Env = b.Setting.Env(); b.Time > 0 && b.Auto > 0 {
			b.Lost = float64(b.Auto)/float64(b.Time) - 1
		}
		r.Rows = append(r.Rows, *b)
	}
}
