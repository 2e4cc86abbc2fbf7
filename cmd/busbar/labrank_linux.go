package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// labWork is what the ranks of lab check do, one after the other.
type labWork struct {
	Transport engine.Transport `json:"transport"`
	Tasks     []labTask        `json:"tasks"`
	Step      *labStepTask     `json:"step,omitempty"`
}

type labTask struct {
	Trial lab.Trial    `json:"trial"`
	Sizes []unit.Bytes `json:"sizes"`
	Iters []int        `json:"iters"` // by size
	Warm  int          `json:"warm"`
}

// labRow is what rank 0 reports: the times of one size, of both forms where there are two.
type labRow struct {
	Task  int               `json:"task"`
	Size  unit.Bytes        `json:"size"`
	Times [][]time.Duration `json:"times_ns"`
	Step  *labStepTimes     `json:"step,omitempty"` // of steps instead
}

// Run is the life of a rank.
func (c labRankCmd) Run(e *env) error {
	text, err := os.ReadFile(c.Work)
	if err != nil {
		return failure.Cannot(err)
	}
	var w labWork
	if err := json.Unmarshal(text, &w); err != nil {
		return fmt.Errorf("%s: %w", c.Work, err)
	}
	cfg, launcher, err := ranks.ConfigFromEnv(ranks.ThisProcess())
	if err != nil || launcher == "" {
		return errors.Join(errors.New("lab rank is started by lab check, not by hand"), err)
	}
	cfg.Transport, cfg.Timeout = w.Transport, 20*time.Second
	g, err := engine.Join(e.ctx, cfg)
	if err != nil {
		return failure.Cannot(err)
	}
	defer g.Close()
	enc := json.NewEncoder(os.Stdout)
	for i, t := range w.Tasks {
		for k, size := range t.Sizes {
			p := bench.Plan{Op: coll.Op{Kind: t.Trial.Kind, Type: coll.Float}, Sizes: []unit.Bytes{size}, Algo: t.Trial.Algo, Params: t.Trial.Params, Transport: w.Transport, Warm: t.Warm, Iters: t.Iters[k]}
			err := bench.Run(e.ctx, g, p, func(r bench.Row) error {
				row := labRow{Task: i, Size: size}
				for _, h := range []*bench.Half{r.Out, r.In} {
					if h != nil {
						row.Times = append(row.Times, h.Times)
					}
				}
				return enc.Encode(row)
			})
			if err != nil {
				return failure.Cannot(err)
			}
		}
	}
	if w.Step != nil {
		if err := w.Step.run(e, g, enc); err != nil {
			return failure.Cannot(err)
		}
	}
	return nil
}

// run takes steps; rank 0 reports.
func (t *labStepTask) run(e *env, g *engine.Group, enc *json.Encoder) error {
	s, err := bench.NewStepper(g, t.Plan)
	if err != nil {
		return err
	}
	for _, overlap := range t.Overlap {
		x, err := s.Run(e.ctx, overlap, nil)
		if err != nil {
			return err
		}
		if x == nil { // another rank's
			continue
		}
		if err := enc.Encode(labRow{Step: &labStepTimes{Overlap: overlap, Steps: x.Steps, Exposed: x.Exposed, Computed: x.Computed}}); err != nil {
			return err
		}
	}
	return nil
}
