package query

import (
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/result"
)

// BenchDoc is the answer of Bench.
type BenchDoc struct {
	Op        coll.Kind  `json:"op"`
	Ranks     int        `json:"ranks"`
	Transport string     `json:"transport"` // what carried the bytes: tcp, shm, mem, or auto where hosts share memory within and not between
	Dtype     string     `json:"dtype"`
	Redop     string     `json:"redop"`
	Iters     int        `json:"iters"`   // runs of each size that count
	Warmup    int        `json:"warmup"`  // runs before those
	Checked   bool       `json:"checked"` // results were compared with what they must be
	Hosts     []string   `json:"hosts,omitempty"`
	Rows      []BenchRow `json:"rows"`
	AvgBus    float64    `json:"avg_busbw_GBps"`      // over all rows, out of place and in place
	Refused   int64      `json:"refused_connections"` // that did not belong to the job

	Group    *engine.Group            `json:"-"`
	Plan     bench.Plan               `json:"-"`
	Factor   float64                  `json:"-"` // from size to size
	Refusals map[engine.Refusal]int64 `json:"-"`
	Sweeps   result.Sweeps            `json:"-"` // the rows as they are kept
	Noted
}

// Wrong reports elements that are not what they must be.
func (d *BenchDoc) Wrong() bool { return d.WrongElements() > 0 }

// WrongElements counts them over all rows.
func (d *BenchDoc) WrongElements() (n int64) {
	for i := range d.Rows {
		n += d.Rows[i].Wrong
		if in := d.Rows[i].InPlace; in != nil {
			n += in.Wrong
		}
	}
	return n
}

// BenchRow is one size; the figures of the row itself are those out of place.
type BenchRow struct {
	Size      int64  `json:"size_bytes"`
	Count     int64  `json:"count"` // elements
	Algo      string `json:"algo"`  // of the schedule that ran
	Dtype     string `json:"dtype"`
	WireBytes int64  `json:"wire_bytes"` // what all ranks send in a run
	BenchTiming
	InPlace *BenchTiming `json:"in_place,omitempty"`

	Redop string `json:"-"` // "" where nothing is reduced
	Root  int    `json:"-"` // -1 where there is none
}

// BenchTiming is a size out of place or in place.
type BenchTiming struct {
	Time    BenchTimes `json:"time_us"`
	AlgBW   float64    `json:"algbw_GBps"`
	BusBW   float64    `json:"busbw_GBps"`
	Wrong   int64      `json:"wrong"`        // 0 where results were not checked, see checked
	Slowest int        `json:"slowest_rank"` // whose runs took longest in all
	Spread  float64    `json:"spread_us"`    // between the slowest and the fastest rank, per run
}

// BenchTimes are per run, of the slowest rank.
type BenchTimes struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Mean   float64 `json:"mean"`
}

// newBenchRow is a sweep of one size as a row.
func newBenchRow(s *result.Sweep) (BenchRow, error) {
	p := &s.Points[0]
	op, err := s.Operation(p.Size)
	if err != nil {
		return BenchRow{}, err
	}
	x := BenchRow{
		Size: int64(p.Size), Count: op.Count(s.Ranks), Algo: p.Algo, Dtype: s.Dtype,
		WireBytes: int64(p.WireBytes), Redop: s.Redop, Root: -1,
	}
	if s.Op.Rooted() {
		x.Root = s.Root
	}
	for _, r := range s.Rows() {
		t := BenchTiming{
			Time:  BenchTimes{r.Time.Min, r.Time.Median, r.Time.P99, r.Time.Mean},
			AlgBW: r.AlgBW().GBps(), BusBW: r.BusBW().GBps(), Slowest: *r.Slowest, Spread: r.Spread,
		}
		if r.Wrong != nil {
			t.Wrong = *r.Wrong
		}
		if r.InPlace {
			x.InPlace = &t
		} else {
			x.BenchTiming = t
		}
	}
	return x, nil
}
