package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// work is what the ranks of a job measure, one task after the other.
type work struct {
	Transport engine.Transport `json:"transport"`
	Tasks     []task           `json:"tasks"`
	Step      *stepTask        `json:"step,omitempty"`
}

// task is a collective at several sizes.
type task struct {
	Trial Trial        `json:"trial"`
	Sizes []unit.Bytes `json:"sizes"`
	Iters []int        `json:"iters"` // by size
	Warm  int          `json:"warm"`
}

// stepTask is steps of training, without overlap, with it, or one after the other.
type stepTask struct {
	Plan    bench.StepPlan `json:"plan"`
	Overlap []bool         `json:"overlap"`
}

// row is what rank 0 reports: the times of one size, of both forms where there are two.
type row struct {
	Task  int               `json:"task"`
	Size  unit.Bytes        `json:"size"`
	Times [][]time.Duration `json:"times_ns"`
	Step  *stepTimes        `json:"step,omitempty"` // of steps instead
}

type stepTimes struct {
	Overlap  bool            `json:"overlap"`
	Steps    []time.Duration `json:"steps_ns"`
	Exposed  time.Duration   `json:"exposed_ns"`
	Computed time.Duration   `json:"computed_ns"`
}

// Rank is the life of a rank: it joins the others, does what a file says, and reports on w where it is rank 0.
func Rank(ctx context.Context, file string, w io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return failure.Cannot(err)
	}
	var do work
	if err := json.Unmarshal(text, &do); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	cfg, launcher, err := ranks.ConfigFromEnv(ranks.ThisProcess())
	if err != nil || launcher == "" {
		return errors.Join(errors.New("lab rank is started by lab check, not manually"), err)
	}
	cfg.Transport, cfg.Timeout = do.Transport, 20*time.Second
	g, err := engine.Join(ctx, cfg)
	if err != nil {
		return failure.Cannot(err)
	}
	defer g.Close()
	return failure.Cannot(do.run(ctx, g, json.NewEncoder(w)))
}

func (w *work) run(ctx context.Context, g *engine.Group, enc *json.Encoder) error {
	for i := range w.Tasks {
		if err := w.Tasks[i].run(ctx, g, w.Transport, func(r row) error {
			r.Task = i
			return enc.Encode(r)
		}); err != nil {
			return err
		}
	}
	if w.Step == nil {
		return nil
	}
	return w.Step.run(ctx, g, enc)
}

func (t *task) run(ctx context.Context, g *engine.Group, over engine.Transport, report func(row) error) error {
	for k, size := range t.Sizes {
		p := bench.Plan{
			Op: coll.Op{Kind: t.Trial.Kind, Type: coll.Float}, Sizes: []unit.Bytes{size}, Algo: t.Trial.Algo, Params: t.Trial.Params,
			Transport: over, Warm: t.Warm, Iters: t.Iters[k],
		}
		err := bench.Run(ctx, g, p, func(s *result.Sweep) error {
			out := row{Size: size}
			for _, r := range s.Rows() {
				out.Times = append(out.Times, r.Durations())
			}
			return report(out)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *stepTask) run(ctx context.Context, g *engine.Group, enc *json.Encoder) error {
	s, err := bench.NewStepper(g, t.Plan)
	if err != nil {
		return err
	}
	for _, overlap := range t.Overlap {
		x, err := s.Run(ctx, overlap, nil)
		if err != nil {
			return err
		}
		if x == nil { // another rank's
			continue
		}
		if err := enc.Encode(row{Step: &stepTimes{Overlap: overlap, Steps: x.Steps, Exposed: x.Exposed, Computed: x.Computed}}); err != nil {
			return err
		}
	}
	return nil
}
