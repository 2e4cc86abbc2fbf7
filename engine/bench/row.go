package bench

import (
	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Row is one size; the figures of the row itself are those out of place.
type Row struct {
	Size      int64      `json:"size_bytes"`
	Count     int64      `json:"count"` // elements
	Algo      string     `json:"algo"`  // of the schedule that ran
	Dtype     string     `json:"dtype"`
	WireBytes unit.Bytes `json:"wire_bytes"` // what all ranks send in a run
	Timing
	InPlace *Timing `json:"in_place,omitempty"`
}

// Timing is a size out of place or in place.
type Timing struct {
	Time    result.Times `json:"time_s"` // per run, of the slowest rank
	AlgBW   unit.Rate    `json:"algbw_GBps"`
	BusBW   unit.Rate    `json:"busbw_GBps"`
	Wrong   int64        `json:"wrong"`        // 0 where results were not checked, see checked
	Slowest int          `json:"slowest_rank"` // whose runs took longest in all
	Spread  unit.Time    `json:"spread_s"`     // between the slowest and the fastest rank, per run
}

// NewRow is a sweep of one size as a row.
func NewRow(s *result.Sweep, op coll.Op) Row {
	p := &s.Points[0]
	op.Bytes = p.Size
	x := Row{Size: int64(p.Size), Count: op.Count(s.Ranks), Algo: p.Algo, Dtype: s.Dtype, WireBytes: p.WireBytes}
	for _, r := range s.Rows() {
		t := Timing{Time: r.Time, AlgBW: r.AlgBW(), BusBW: r.BusBW(), Slowest: *r.Slowest, Spread: r.Spread}
		if r.Wrong != nil {
			t.Wrong = *r.Wrong
		}
		if r.InPlace {
			x.InPlace = &t
		} else {
			x.Timing = t
		}
	}
	return x
}
