package calibrate

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// StepsScript measures training steps of reference models with PyTorch, in Python.
//
//go:embed steps.py
var StepsScript string

// stepsMost bounds the steps that are read.
const stepsMost = 64

// Trained fits the figures of steps to what StepsScript printed.
func Trained(m hardware.GPUModel, out []byte, start *step.Figures) (*PartsFit, error) {
	software, list, err := readSteps(out)
	if err != nil {
		return nil, err
	}
	x, err := Parts(m, list, start)
	if err == nil {
		x.Software = software
	}
	return x, err
}

// LastLine is the last that a program said, as part of a message.
func LastLine(out []byte) string {
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
func readSteps(out []byte) (software string, list []MeasuredStep, err error) {
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var l stepLine
		if !bytes.HasPrefix(scan.Bytes(), []byte("{")) || json.Unmarshal(scan.Bytes(), &l) != nil {
			continue
		}
		if l.Software != "" {
			software = l.Software
			continue
		}
		s, err := l.measured()
		if err != nil {
			return "", nil, err
		}
		if list = append(list, *s); len(list) > stepsMost {
			return "", nil, fmt.Errorf("more than %d steps", stepsMost)
		}
	}
	if software == "" {
		return "", nil, errors.New("the measurement of steps did not come to its end" + LastLine(out))
	}
	return software, list, nil
}

// measured is the step of a line.
func (l *stepLine) measured() (*MeasuredStep, error) {
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
		m.Blocks = workload.Blocks("llama gated", d)
	case "gpt2":
		m.Blocks = workload.Blocks("gpt2", d)
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
	name := fmt.Sprintf("%s %dx%d, %dx%d tokens", l.Family, l.Layers, l.Hidden, l.Batch, l.Seq)
	return &MeasuredStep{
		Predicted: Predicted{Name: name, Took: us(l.Step)}, job: j, parts: step.Parts{
			Products: us(l.Products), Forward: us(l.Forward), Backward: us(l.Backward), Streams: us(l.Streams),
			Update: us(l.Update), Idle: us(max(0, l.Step-kernels)),
		},
	}, nil
}
