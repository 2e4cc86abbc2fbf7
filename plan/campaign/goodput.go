package campaign

import (
	"cmp"
	"fmt"
	"math"

	"busbar.dev/unit"
)

// Failures are how a job is interrupted and saved. Interruptions come independently of each other
// and of the job's age (a Poisson process), while it computes, saves and restarts alike.
type Failures struct {
	Between unit.Span `json:"mtbf_job_s"`   // mean time between interruptions of the whole job
	Save    unit.Span `json:"checkpoint_s"` // that training stands still for a checkpoint
	// Write is how long an asynchronous checkpoint is written after that, while training goes on; 0 is synchronous.
	Write    unit.Span `json:"write_s,omitempty"`
	Interval unit.Span `json:"interval_s"` // of training between two checkpoints; 0 is the best
	Restart  unit.Span `json:"restart_s"`  // from an interruption until training goes on at the last checkpoint
}

// Goodput is how the time of a run is spent. Shares add up to 1.
type Goodput struct {
	Failures            // with the interval that was taken
	Best      unit.Span `json:"best_interval_s"`  // that loses least
	Young     unit.Span `json:"young_interval_s"` // √(2 × save × between), the usual approximation of it
	Share     float64   `json:"goodput"`          // of the time that goes into steps that count
	Lost      `json:"lost"`
	AtBest    float64   `json:"goodput_at_best"` // Share with the best interval
	PerDay    float64   `json:"interruptions_per_day"`
	PerCommit unit.Span `json:"checkpoint_to_checkpoint_s"` // expected, interruptions included
}

// Lost is the shares of the time that go into other things than steps that count.
type Lost struct {
	Saving   float64 `json:"checkpoints"`
	Redoing  float64 `json:"redone"` // steps and checkpoints that were lost in an interruption
	Restarts float64 `json:"restarts"`
	// Waiting and Fewer are of a job with a pool of nodes: too few of them, or not all.
	Waiting float64 `json:"waiting,omitempty"`
	Fewer   float64 `json:"fewer,omitempty"`
}

// Check reports times that no run has.
func (f Failures) Check() error {
	for _, x := range []struct {
		name string
		v    unit.Span
	}{
		{"the time of a checkpoint", f.Save},
		{"the time of writing a checkpoint", f.Write},
		{"the time between checkpoints", f.Interval},
		{"the time of a restart", f.Restart},
	} {
		if !(x.v >= 0) || math.IsInf(float64(x.v), 0) {
			return fmt.Errorf("%s is %g s; expected 0 or more", x.name, float64(x.v))
		}
	}
	if !(f.Between > 0) {
		return fmt.Errorf("the mean time between interruptions is %g s; expected more than 0", float64(f.Between))
	}
	return nil
}

// Goodput is the expected share of time that goes into steps that count, and where the rest goes.
// From one checkpoint to the next a job trains for τ and saves for C; an interruption at any moment
// throws it back to the last checkpoint and costs R, in which the next one may come. With M between
// interruptions the expected time is M × e^(R/M) × (e^((τ+C)/M) − 1), exactly (Daly 2006, A higher
// order estimate of the optimum checkpoint interval for restart dumps, section 3).
//
// An asynchronous checkpoint counts only W after training went on. From one that counts to the next there are τ+C
// again; after an interruption training begins W of training before the point where the next would count, so that
// τ+C+W must go by without another. The expected time is (1 − e^(−(τ+C)/M)) × M × e^((R+τ+C+W)/M), which is
// that above times e^(W/M): exactly too, and with the same best interval, unless writing takes longer than that.
//
// An interval of 0 takes the best; least is the shortest that can be, such as one step.
func (f Failures) Goodput(least unit.Span) (Goodput, error) {
	if err := f.Check(); err != nil {
		return Goodput{}, err
	}
	best := max(Best(f.Save, f.Between), least, f.Write)
	if f.Interval > 0 && f.Interval < f.Write {
		return Goodput{}, fmt.Errorf("a checkpoint every %v, and each takes %v to write; expected an interval of %v at least",
			f.Interval, f.Write, f.Write)
	}
	f.Interval = cmp.Or(f.Interval, best)
	if f.Interval <= 0 { // checkpoints that cost nothing, after every step
		f.Interval = max(least, f.Between*1e-9)
		best = f.Interval
	}
	g := Goodput{
		Failures: f, Best: best, Young: Young(f.Save, f.Between), PerDay: float64(unit.Day / f.Between),
		Share: f.share(f.Interval),
	}
	g.AtBest = f.share(best)
	if g.Share == 0 {
		return g, fmt.Errorf("an interruption every %v, and %v to restart and save: the run never ends", f.Between,
			f.Restart+f.Save+f.Write)
	}
	m, c, r, w := float64(f.Between), float64(f.Save), float64(f.Restart), float64(f.Write)
	all := float64(f.Interval) / g.Share
	g.PerCommit = unit.Span(all)
	// interruptions from one checkpoint to the next, of training and saving
	lost := math.Exp(w/m) * math.Expm1((float64(f.Interval)+c)/m)
	g.Saving = c / all
	g.Restarts = lost * m * math.Expm1(r/m) / all
	g.Redoing = max(0, 1-g.Share-g.Saving-g.Restarts)
	return g, nil
}

// share is the part of the time that an interval leaves.
func (f Failures) share(interval unit.Span) float64 {
	m := float64(f.Between)
	x, c, r, w := float64(interval)/m, float64(f.Save)/m, float64(f.Restart)/m, float64(f.Write)/m
	return min(1, x/math.Expm1(x+c)*math.Exp(-r-w))
}

// Young is the first approximation of the best interval (Young 1974).
func Young(save, between unit.Span) unit.Span {
	return unit.Span(math.Sqrt(2 * float64(save) * float64(between)))
}

// Best is the interval of training that loses least, exactly: with x = τ/M and c = C/M the expected
// time for a second of training is least where 1 − x = e^−(x+c), which is x = 1 + W(−e^(−1−c)) with
// Lambert's W. How long a restart takes does not matter. Newton's steps from Young's value stay on one
// side, as the function is concave.
func Best(save, between unit.Span) unit.Span {
	m, c := float64(between), float64(save/between)
	if c <= 0 || m <= 0 {
		return 0
	}
	x := min(math.Sqrt(2*c), 1)
	for range 100 {
		e := math.Exp(-(x + c))
		f := x + math.Expm1(-(x + c)) // 0 at the best
		next := x - f/(1-e)
		if math.Abs(next-x) <= 1e-15*x {
			x = next
			break
		}
		x = next
	}
	return unit.Span(x * m)
}
