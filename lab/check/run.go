package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// run lets ranks on slots do their work and returns what rank 0 reports.
func (x *session) run(slots []lab.Slot, w work) ([]row, error) {
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
	r, out, err := os.Pipe()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer r.Close()
	var rows []row
	read := make(chan struct{})
	go func() {
		defer close(read)
		for dec := json.NewDecoder(bufio.NewReader(r)); ; {
			var line row
			if dec.Decode(&line) != nil {
				return
			}
			rows = append(rows, line)
		}
	}()
	job := &lab.Job{Lab: x.lab, Slots: slots, Stdout: x.env.Stdout, Stderr: x.env.Stderr, First: out}
	code, err := job.Run(x.ctx, lab.Program{Path: x.env.Program, Args: []string{"busbar", "lab", "rank", file}, Env: os.Environ(), Dir: "/"})
	out.Close()
	<-read
	if err == nil && code != 0 {
		err = failure.Cannot(fmt.Errorf("ranks ended with exit code %d", code))
	}
	return rows, err
}

// runJobs runs all jobs at once and returns the rows of the first.
func (x *session) runJobs(jobs [][]lab.Slot, w work) ([]row, error) {
	rows := make([][]row, len(jobs))
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for j := range jobs {
		wg.Go(func() { rows[j], errs[j] = x.run(jobs[j], w) })
	}
	wg.Wait()
	return rows[0], errors.Join(errs...)
}

// typical is the time of a row, of the quicker of its two forms, and how far its runs are
// apart. In shared memory the lowest tenth counts, since what else the machine does only
// ever adds to a run; over links the median, since what a rank gets ahead in one run is
// missing in the next.
func (r *row) typical(links bool) (t unit.Time, noise float64) {
	best, worst := time.Duration(-1), time.Duration(0)
	for _, times := range r.Times {
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		m := stats.Nearest(times, 0.1)
		if links {
			m = stats.Nearest(times, 0.5)
		}
		worst = max(worst, m)
		if best < 0 || m < best {
			best = m
			low, high := times[0], stats.MedianLow(times)
			noise = float64(high-low) / max(float64(low), 1)
		}
	}
	if links { // the two forms take equally long there
		noise = max(noise, float64(worst-best)/max(float64(best), 1))
	}
	return unit.Time(best.Nanoseconds()) * unit.Nanosecond, noise
}
