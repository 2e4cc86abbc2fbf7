package query

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"busbar.dev/calibrate"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// CalibrateSteps are training steps of reference models that were measured on one GPU, and what their parts say of the
// figures.
type CalibrateSteps struct {
	Software string            `json:"software"`
	Steps    []CalibrateStep   `json:"steps"`
	Figures  []CalibrateFigure `json:"figures"` // that moved
	// Before, After and LeftOut are mean errors of steps: by the figures of before, the fitted ones, and those that were
	// fitted without the step.
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	LeftOut float64 `json:"left_out"`
}

// CalibrateStep is one of them.
type CalibrateStep struct {
	Name    string  `json:"name"`
	Micros  float64 `json:"measured_us"`
	Before  float64 `json:"before_us"`
	After   float64 `json:"after_us"`
	LeftOut float64 `json:"left_out_us"`
}

//go:embed calibratesteps.py
var stepsScript string

const (
	stepsLimit  = 10 * time.Minute // PyTorch may come over a slow file system
	stepsOutput = 1 << 20
	stepsMost   = 64
)

// steps measures reference models with PyTorch and fits the figures of steps to their parts.
func (q *CalibrateLive) steps(ctx context.Context, env Env, with Programs, model hardware.GPUModel,
	start *step.Figures,
) (*CalibrateSteps, *calibrate.PartsFit, error) {
	if q.Hosts != "" {
		return nil, nil, errors.New("--torch measures on this machine; leave --hosts out")
	}
	if with.Run == nil {
		return nil, nil, errors.New("no programs can be run here")
	}
	env.progress("steps of reference models, with PyTorch")
	var out bounded
	err := with.Run(ctx, stepsLimit, []string{q.Torch, "-c", stepsScript}, &out)
	env.progress("")
	if err != nil {
		return nil, nil, failure.Cannot(fmt.Errorf("--torch %s: %w%s", q.Torch, err, lastLine(out.Bytes())))
	}
	d, list, err := readSteps(out.Bytes())
	if err != nil {
		return nil, nil, failure.Cannot(fmt.Errorf("--torch %s: %w", q.Torch, err))
	}
	fit, err := calibrate.Parts(model, list, start)
	if err != nil {
		return nil, nil, failure.Cannot(err)
	}
	d.Before, d.After, d.LeftOut, d.Figures = fit.Before, fit.After, fit.LeftOut, movedFigures(fit.Moved)
	for _, s := range fit.Steps {
		d.Steps = append(d.Steps, CalibrateStep{
			s.Name, float64(s.Step) * 1e6, float64(s.Before) * 1e6, float64(s.After) * 1e6, float64(s.LeftOut) * 1e6,
		})
	}
	return d, fit, nil
}

// bounded keeps the beginning of what a program prints.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, stepsOutput-b.Len()))])
	return len(p), nil
}

// lastLine is the last that a program said, as part of a message.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Sprintf(": %.200q", last)
	}
	return ""
}

// stepLine is what the script prints of a model; the last line has the software alone.
type stepLine struct {
	Software string  `json:"software"`
	Family   string  `json:"family"`
	Layers   int64   `json:"layers"`
	Hidden   int64   `json:"hidden"`
	Heads    int64   `json:"heads"`
	KVHeads  int64   `json:"kv_heads"`
	FFN      int64   `json:"ffn"`
	Vocab    int64   `json:"vocab"`
	Batch    int64   `json:"batch"`
	Seq      int64   `json:"seq"`
	Step     float64 `json:"step_us"`
	Products float64 `json:"products_us"`
	Forward  float64 `json:"forward_us"`
	Backward float64 `json:"backward_us"`
	Streams  float64 `json:"streams_us"`
	Update   float64 `json:"update_us"`
}

// readSteps reads what the script printed; what libraries say between is left out.
func readSteps(out []byte) (*CalibrateSteps, []calibrate.MeasuredStep, error) {
	d := &CalibrateSteps{Steps: []CalibrateStep{}, Figures: []CalibrateFigure{}}
	var list []calibrate.MeasuredStep
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var l stepLine
		if !bytes.HasPrefix(scan.Bytes(), []byte("{")) || json.Unmarshal(scan.Bytes(), &l) != nil {
			continue
		}
		if l.Software != "" {
			d.Software = l.Software
			continue
		}
		s, err := l.measured()
		if err != nil {
			return nil, nil, err
		}
		if list = append(list, *s); len(list) > stepsMost {
			return nil, nil, fmt.Errorf("more than %d steps", stepsMost)
		}
	}
	if d.Software == "" {
		return nil, nil, errors.New("the measurement of steps did not come to its end" + lastLine(out))
	}
	return d, list, nil
}

// measured is the step of a line.
func (l *stepLine) measured() (*calibrate.MeasuredStep, error) {
	const most = 1 << 20
	for _, n := range []int64{l.Layers, l.Hidden, l.Heads, l.KVHeads, l.FFN, l.Vocab, l.Batch, l.Seq} {
		if n < 1 || n > most {
			return nil, fmt.Errorf("a model with a dimension of %d; expected 1 to %d", n, most)
		}
	}
	kernels := l.Products + l.Forward + l.Backward + l.Streams + l.Update
	if !(min(l.Products, l.Forward, l.Backward, l.Streams, l.Update) >= 0 && kernels > 0 && l.Step > 0 && l.Step < 1e9 &&
		kernels < 1e9) {
		return nil, fmt.Errorf("a step of %g µs with kernels of %g µs; expected times above 0", l.Step, kernels)
	}
	d := workload.Dims{
		Layers: l.Layers, Hidden: l.Hidden, Heads: l.Heads, KVHeads: l.KVHeads, FFN: l.FFN, Vocab: l.Vocab, Context: l.Seq,
	}
	m := &workload.Model{Name: l.Family, Dims: d, Seq: l.Seq}
	switch l.Family {
	case "llama":
		m.Blocks = workload.Llama(d)
	case "gpt2":
		m.Blocks = workload.GPT2(d)
	default:
		return nil, fmt.Errorf("a model of the family %.40q; expected llama or gpt2", l.Family)
	}
	j := &workload.Job{
		Model: m, Seq: l.Seq, MicroBatch: l.Batch, GlobalBatch: l.Batch, Precision: workload.BF16, Recompute: workload.None,
		Kernels: workload.Eager,
	}
	var err error
	if j.Split, err = j.Split.On(1); err != nil {
		return nil, err
	}
	us := func(x float64) unit.Span { return unit.Span(x * 1e-6) }
	return &calibrate.MeasuredStep{
		Name: fmt.Sprintf("%s %dx%d, %dx%d tokens", l.Family, l.Layers, l.Hidden, l.Batch, l.Seq), Job: j, Step: us(l.Step),
		Parts: step.Parts{
			Products: us(l.Products), Forward: us(l.Forward), Backward: us(l.Backward), Streams: us(l.Streams),
			Update: us(l.Update), Idle: us(max(0, l.Step-kernels)),
		},
	}, nil
}
