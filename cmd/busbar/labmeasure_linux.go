package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// labChecker measures in one lab.
type labChecker struct {
	e    *env
	c    *labCheckCmd
	s    scenario
	l    *lab.Lab
	slow map[int]float64
	d    *labCheckDoc
	here *lab.Machine
}

// run lets ranks on seats do their work and returns what rank 0 reports.
func (x *labChecker) run(seats []lab.Seat, w labWork) ([]labRow, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	dir, err := os.MkdirTemp("", "busbar-lab-")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer os.RemoveAll(dir)
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "work")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, failure.Cannot(err)
	}
	os.Chmod(dir, 0o755)
	port, err := x.l.Port()
	if err != nil {
		return nil, labError(err)
	}
	r, out, err := os.Pipe()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer r.Close()
	crowd := &crowd{e: x.e, l: x.l, ranks: seats, port: port, stdout: out}
	var rows []labRow
	read := make(chan error, 1)
	go func() {
		dec := json.NewDecoder(bufio.NewReader(r))
		for {
			var row labRow
			if err := dec.Decode(&row); err != nil {
				read <- nil
				return
			}
			rows = append(rows, row)
		}
	}()
	code, err := crowd.run(lab.Program{Path: self, Args: []string{"busbar", "lab", "rank", file}, Dir: "/"})
	out.Close()
	<-read
	if err == nil && code != 0 {
		err = fmt.Errorf("ranks ended with exit code %d", code)
	}
	if err != nil {
		return nil, labError(err)
	}
	return rows, nil
}

// typical is the time of a row, of the quicker of its two forms, and how far its runs are
// apart. In shared memory the lowest tenth counts, since what else the machine does only
// ever adds to a run; over links the median, since what a rank gets ahead in one run is
// missing in the next.
func (r *labRow) typical(links bool) (t unit.Time, noise float64) {
	best, worst := time.Duration(-1), time.Duration(0)
	for _, times := range r.Times {
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		m := times[len(times)/10]
		if links {
			m = times[len(times)/2]
		}
		worst = max(worst, m)
		if best < 0 || m < best {
			best = m
			low, high := times[0], times[(len(times)-1)/2]
			noise = float64(high-low) / max(float64(low), 1)
		}
	}
	if links { // the two forms take equally long there
		noise = max(noise, float64(worst-best)/max(float64(best), 1))
	}
	return unit.Time(best.Nanoseconds()) * unit.Nanosecond, noise
}

// labPairs is what pairs took, for the document.
type labPairs struct {
	Call unit.Time  `json:"call_us"`
	Near labCarrier `json:"shared_memory"`
	Net  labCarrier `json:"sockets"`
}

type labCarrier struct {
	Latency unit.Time `json:"latency_us"`
	Send    float64   `json:"send_ns_per_byte"`
	Copy    float64   `json:"copy_ns_per_byte"`
	Reduce  float64   `json:"reduce_ns_per_byte"`
}

// calibrate measures pairs of ranks: in shared memory, over sockets inside a node, and
// between two nodes.
func (x *labChecker) calibrate() error {
	defer x.e.progress(x.c.common, "measuring pairs of ranks")()
	p := x.l.State.Plan
	m := &lab.Machine{Cores: runtime.NumCPU()}
	x.here = m
	var err error
	bare := p.Seats(1, 2)
	for i := range bare {
		bare[i].Bare = true
	}
	if m.Near, err = x.pair(bare, engine.Auto, true); err != nil {
		return err
	}
	if m.Local, err = x.pair(bare, engine.TCP, true); err != nil {
		return err
	}
	if len(p.Nodes) > 1 {
		if m.Net, err = x.pair(p.Seats(2, 1), engine.Auto, false); err != nil {
			return err
		}
		m.HasNet = true
	}
	carrier := func(c sim.Carrier) labCarrier {
		return labCarrier{c.Latency, c.Send * 1e9, c.Copy * 1e9, c.Reduce * 1e9}
	}
	s := m.Model(16 * unit.MiB)
	x.d.Pairs = labPairs{Call: s.Call, Near: carrier(s.Near), Net: carrier(s.Net)}
	return nil
}

// pair measures one pair, twice; the quicker times count.
func (x *labChecker) pair(seats []lab.Seat, t engine.Transport, large bool) (lab.Pair, error) {
	n := len(lab.PairSizes())
	out := lab.Pair{Stored: make([]unit.Time, n), Summed: make([]unit.Time, n)}
	w := labWork{Transport: t}
	small, volume, least, times := 2000, 512*unit.MiB, unit.Bytes(8), 3
	if x.c.Quick {
		small, volume, least, times = 100, 32*unit.MiB, 3, 1
	}
	for _, tr := range lab.Pairs(len(seats), 1) {
		task := labTask{Trial: tr, Sizes: []unit.Bytes{lab.PairSmall}, Iters: []int{small}, Warm: 5}
		if large && tr.Kind != coll.AllReduce {
			for _, size := range lab.PairSizes() {
				task.Sizes, task.Iters = append(task.Sizes, size), append(task.Iters, int(min(max(volume/size, least), 2000)))
			}
		}
		w.Tasks = append(w.Tasks, task)
	}
	keep := func(at *unit.Time, t unit.Time) {
		if *at == 0 || t < *at {
			*at = t
		}
	}
	for range times {
		rows, err := x.run(seats, w)
		if err != nil {
			return out, err
		}
		for i := range rows {
			t, _ := rows[i].typical(false)
			k := slices.Index(lab.PairSizes(), rows[i].Size)
			switch {
			case rows[i].Task == 0 && k < 0:
				keep(&out.One, t)
			case rows[i].Task == 1 && k < 0:
				keep(&out.Two, t)
			case rows[i].Task == 0:
				keep(&out.Stored[k], t)
			case rows[i].Task == 2 && k >= 0:
				keep(&out.Summed[k], t)
			}
		}
	}
	if out.One == 0 || out.Two == 0 {
		return out, failure.Cannot(errors.New("the pair of ranks reported nothing"))
	}
	return out, nil
}

// trial measures an algorithm over all sizes and predicts it.
func (x *labChecker) trial(t lab.Trial) error {
	defer x.e.progress(x.c.common, fmt.Sprintf("%s %s by %s", x.s.name, t.Layout, t.Word))()
	p := x.l.State.Plan
	var jobs [][]lab.Seat
	all := p.Seats(t.Nodes*x.s.jobs, t.Each)
	for j := range x.s.jobs {
		var seats []lab.Seat
		for _, s := range all {
			if s.Node%x.s.jobs == j {
				seats = append(seats, s)
			}
		}
		jobs = append(jobs, seats)
	}
	_, err := x.on(t, jobs)
	return err
}

// on measures and predicts an algorithm among ranks that sit so.
func (x *labChecker) on(t lab.Trial, jobs [][]lab.Seat) ([]lab.Point, error) {
	predicted, limits, err := x.predict(&t, jobs)
	if err != nil {
		return nil, err
	}
	measured, noise, err := x.measure(&t, jobs, predicted)
	if err != nil {
		return nil, err
	}
	from := len(x.d.Points)
	for i, size := range x.s.sizes {
		pt := lab.Point{
			Scenario: x.s.name, Layout: t.Layout, Op: t.Kind.String(), Algo: t.Word, Size: size,
			Measured: measured[i], Predicted: predicted[i], Noise: noise[i], Limit: limits[i], TooNoisy: noise[i] > x.c.Noise,
		}
		pt.Error = (float64(pt.Predicted) - float64(pt.Measured)) / float64(pt.Measured)
		x.d.Points = append(x.d.Points, pt)
		if !x.c.JSON && x.c.Verbose {
			fmt.Fprintf(x.e.stderr, "%s %s %s %v: measured %v, predicted %v, %+.1f%% (noise %.0f%%)\n", pt.Scenario, pt.Layout, pt.Algo, pt.Size, pt.Measured, pt.Predicted, pt.Error*100, pt.Noise*100)
		}
	}
	return x.d.Points[from:], nil
}

// predict prices a trial at all sizes.
func (x *labChecker) predict(t *lab.Trial, jobs [][]lab.Seat) ([]unit.Time, []string, error) {
	s, err := t.Schedule()
	if err != nil {
		return nil, nil, err
	}
	var seats []lab.Seat
	var places [][]int
	for _, j := range jobs {
		var list []int
		for _, seat := range j {
			list = append(list, len(seats))
			seats = append(seats, seat)
		}
		places = append(places, list)
	}
	w := x.l.State.Plan.Wire(seats)
	w.TCP, w.Slow = w.TCP || x.s.transport == engine.TCP, x.slow
	var times []unit.Time
	var limits []string
	for _, size := range x.s.sizes {
		var list []sim.Job
		for _, at := range places {
			list = append(list, sim.Job{Schedule: s, Op: t.Op(size), Ranks: at})
		}
		// In place: every rank has one buffer.
		model := x.here.Model(size * unit.Bytes(len(seats)))
		if len(list) > 1 { // they do not begin at the same moment
			alone, _, err := model.Play(x.e.ctx, w, list[:1])
			if err != nil {
				return nil, nil, err
			}
			for j := range list {
				list[j].Start = alone[0] * unit.Time(j) / unit.Time(len(list))
			}
		}
		out, busy, err := model.Play(x.e.ctx, w, list)
		if err != nil {
			return nil, nil, err
		}
		times = append(times, out[0])
		limits = append(limits, w.Name(busy))
	}
	return times, limits, nil
}

// quiet is the noise above which a measurement is made again, a few times at most.
const (
	quiet = 0.15
	tries = 3
)

// measure runs a trial at all sizes; a noisy one again, and the quickest counts.
func (x *labChecker) measure(t *lab.Trial, jobs [][]lab.Seat, predicted []unit.Time) ([]unit.Time, []float64, error) {
	best, noise := make([]unit.Time, len(x.s.sizes)), make([]float64, len(x.s.sizes))
	again := x.s.sizes
	for try := 0; try < tries && len(again) > 0; try++ {
		task := labTask{Trial: *t, Warm: 2}
		for _, size := range again {
			task.Sizes = append(task.Sizes, size)
			task.Iters = append(task.Iters, x.iters(predicted[slices.Index(x.s.sizes, size)]))
		}
		rows, err := x.together(jobs, labWork{Transport: x.s.transport, Tasks: []labTask{task}})
		if err != nil {
			return nil, nil, err
		}
		again = nil
		for i := range rows {
			k := slices.Index(x.s.sizes, rows[i].Size)
			m, n := rows[i].typical(t.Nodes > 1 || x.l.State.Plan.Inside == lab.Links)
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
func (x *labChecker) iters(expected unit.Time) int {
	if x.s.iters > 0 {
		return x.s.iters
	}
	if x.s.jobs > 1 { // that they begin and end at different moments should not count
		return 24
	}
	return min(max(int(0.3/max(expected.Seconds(), 1e-6)), 4), 400)
}

// together runs all jobs at once and returns the rows of the first.
func (x *labChecker) together(jobs [][]lab.Seat, w labWork) ([]labRow, error) {
	rows := make([][]labRow, len(jobs))
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for j := range jobs {
		wg.Go(func() { rows[j], errs[j] = x.run(jobs[j], w) })
	}
	wg.Wait()
	return rows[0], errors.Join(errs...)
}
