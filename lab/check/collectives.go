package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// orderMatters is the difference between two times from which on their order must be predicted.
const orderMatters = 0.15

// collectives measures and predicts the collectives of all scenarios.
func (c *Check) collectives(ctx context.Context, env Env) (*Collectives, error) {
	list, err := c.scenarios(&env)
	if err != nil {
		return nil, err
	}
	d := &Collectives{Verdict: c.verdict(), Points: []Point{}, Skipped: []string{}, scenarios: list}
	var m *Machine
	for _, s := range list {
		trials, skipped, err := s.trials()
		if err != nil {
			return nil, err
		}
		d.Skipped = append(d.Skipped, skipped...)
		err = c.inLab(ctx, &env, s, m, func(x *session) error {
			m = x.machine
			for _, t := range trials {
				if err := x.trial(t); err != nil {
					return err
				}
			}
			d.Points = append(d.Points, x.points...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(d.Points) == 0 {
		return nil, fmt.Errorf("nothing to measure: %s", strings.Join(d.Skipped, "; "))
	}
	d.Calibration = m.calibration()
	if d.Score = rate(d.Points, orderMatters); d.Score.Points == 0 {
		return nil, failure.Cannot(fmt.Errorf("all %d measurements differ from run to run by more than %.0f%%; the machine is too busy for a check", d.Score.Noisy, c.Noise*100))
	}
	return d, nil
}

// trials are all combinations of layouts and algorithms that make sense.
func (s *scenario) trials() (list []Trial, skipped []string, err error) {
	for _, l := range s.layouts {
		for _, w := range s.algos {
			t, err := newTrial(s.kind, strings.TrimSpace(w), l[0], l[1])
			var no *schedule.Refusal
			switch {
			case errors.As(err, &no):
				skipped = append(skipped, fmt.Sprintf("%s %s: %s", t.Layout, w, no.Reason))
			case err != nil:
				return nil, nil, err
			default:
				list = append(list, t)
			}
		}
	}
	return list, skipped, nil
}

// trial measures an algorithm over all sizes and predicts it.
func (x *session) trial(t Trial) error {
	defer x.env.Progress(fmt.Sprintf("%s %s by %s", x.s.name, t.Layout, t.Word))()
	jobs := make([][]lab.Slot, x.s.jobs)
	for _, s := range x.lab.State.Plan.Slots(t.Nodes*x.s.jobs, t.Each) {
		jobs[s.Node%x.s.jobs] = append(jobs[s.Node%x.s.jobs], s)
	}
	points, err := x.compare(t, jobs, x.s.sizes)
	x.points = append(x.points, points...)
	return err
}

// compare measures and predicts an algorithm among ranks that are placed so.
func (x *session) compare(t Trial, jobs [][]lab.Slot, sizes []unit.Bytes) ([]Point, error) {
	predicted, limits, err := x.predict(&t, jobs, sizes)
	if err != nil {
		return nil, err
	}
	measured, noise, err := x.measure(&t, jobs, sizes, predicted)
	if err != nil {
		return nil, err
	}
	var points []Point
	for i, size := range sizes {
		p := Point{
			Scenario: x.s.name, Layout: t.Layout, Op: t.Kind.String(), Algo: t.Word, Size: size,
			Measured: measured[i], Predicted: predicted[i], Noise: noise[i], Limit: limits[i], TooNoisy: noise[i] > x.check.Noise,
		}
		p.Error = (float64(p.Predicted) - float64(p.Measured)) / float64(p.Measured)
		points = append(points, p)
		if w := x.env.Verbose; w != nil {
			fmt.Fprintf(w, "%s %s %s %v: measured %v, predicted %v, %+.1f%% (noise %.0f%%)\n", p.Scenario, p.Layout, p.Algo, p.Size, p.Measured, p.Predicted, p.Error*100, p.Noise*100)
		}
	}
	return points, nil
}

// predict prices a trial at all sizes, and names what limits it.
func (x *session) predict(t *Trial, jobs [][]lab.Slot, sizes []unit.Bytes) (times []unit.Time, limits []string, err error) {
	s, err := t.Schedule()
	if err != nil {
		return nil, nil, err
	}
	var slots []lab.Slot
	var ranks [][]int // of each job, as numbers of slots
	for _, j := range jobs {
		var list []int
		for _, slot := range j {
			list = append(list, len(slots))
			slots = append(slots, slot)
		}
		ranks = append(ranks, list)
	}
	w := x.wiring(slots)
	for _, size := range sizes {
		var list []sim.Job
		for _, at := range ranks {
			list = append(list, sim.Job{Schedule: s, Op: t.Op(size), Ranks: at})
		}
		// In place: every rank has one buffer.
		model := x.machine.Model(size * unit.Bytes(len(slots)))
		if len(list) > 1 { // they do not begin at the same moment
			alone, _, err := model.Simulate(x.ctx, w, list[:1])
			if err != nil {
				return nil, nil, err
			}
			for j := range list {
				list[j].Start = alone[0] * unit.Time(j) / unit.Time(len(list))
			}
		}
		out, busy, err := model.Simulate(x.ctx, w, list)
		if err != nil {
			return nil, nil, err
		}
		times = append(times, out[0])
		limits = append(limits, w.Name(busy))
	}
	return times, limits, nil
}

// wiring is the network under ranks that are placed so, with its slow links.
func (x *session) wiring(slots []lab.Slot) *lab.Wiring {
	w := x.lab.State.Plan.Wire(slots)
	w.TCP, w.Slow = w.TCP || x.s.transport == engine.TCP, x.slow
	return w
}

// quiet is the noise above which a measurement is made again, a few times at most.
const (
	quiet = 0.15
	tries = 3
)

// measure runs a trial at all sizes; a noisy one again, and the quickest counts.
func (x *session) measure(t *Trial, jobs [][]lab.Slot, sizes []unit.Bytes, predicted []unit.Time) ([]unit.Time, []float64, error) {
	best, noise := make([]unit.Time, len(sizes)), make([]float64, len(sizes))
	again := sizes
	for try := 0; try < tries && len(again) > 0; try++ {
		w := task{Trial: *t, Warm: 2}
		for _, size := range again {
			w.Sizes = append(w.Sizes, size)
			w.Iters = append(w.Iters, x.iters(predicted[slices.Index(sizes, size)]))
		}
		rows, err := x.runJobs(jobs, work{Transport: x.s.transport, Tasks: []task{w}})
		if err != nil {
			return nil, nil, err
		}
		again = nil
		for i := range rows {
			k := slices.Index(sizes, rows[i].Size)
			m, n := rows[i].typical(t.Nodes > 1 || x.lab.State.Plan.Inside == lab.Links)
			if best[k] == 0 || m < best[k] {
				best[k], noise[k] = m, n
			}
			if n > quiet {
				again = append(again, rows[i].Size)
			}
		}
	}
	return best, noise, nil
}

// iters is how many runs fill a good part of a second, by what one is expected to take.
func (x *session) iters(expected unit.Time) int {
	if x.s.iters > 0 {
		return x.s.iters
	}
	if x.s.jobs > 1 { // that they begin and end at different moments should not count
		return 24
	}
	return min(max(int(0.3/max(expected.Seconds(), 1e-6)), 4), 400)
}
