package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// excess is a part of a traced step that takes longer than predicted.
type excess struct {
	what             string
	traced, expected unit.Span
	why              string
}

func (x *excess) over() unit.Span { return x.traced - x.expected }

// judge says in one sentence how the traced step compares with its prediction. Above the range it is a finding, with the parts that
// take longer; products in 32 bits are a note, because a program may want them.
func (d *TraceDoc) judge() {
	r, p := &d.Ranks[0], d.Step
	if r.FP32 > r.Compute/2 {
		d.Findings = append(d.Findings, finding.Finding{
			ID: "fp32-matmul", Kind: "fp32-matmul", Severity: finding.Note, Confidence: 1,
			Text: fmt.Sprintf("Matrix products in 32 bits without tensor cores take %s of the %s of computing.", r.FP32.Short(), r.Compute.Short()),
			Fix:  "torch.set_float32_matmul_precision('high') computes them in TF32; bf16 (torch.autocast) is faster still",
		})
	}
	took := fmt.Sprintf("The step takes %s", r.Step.Short())
	switch {
	case r.Steps == 0:
		d.Verdict = "No steps are marked, so there is no step time to judge: call prof.step() after every step, or mark NVTX ranges named step N."
	case p == nil:
		d.Verdict = took + ". To compare it with its prediction, give the cluster and the model."
	case r.Step < p.Low:
		d.Verdict = fmt.Sprintf("%s, predicted %s to %s: it is faster than predicted. Check that model, batch and precision are those of the traced job.", took, p.Low.Short(), p.High.Short())
	case r.Step <= p.High:
		d.Verdict = fmt.Sprintf("%s, predicted %s to %s: it is within the range.", took, p.Low.Short(), p.High.Short())
	default:
		d.over(took)
	}
}

// over is the verdict on a step that takes longer than the range of its prediction.
func (d *TraceDoc) over(took string) {
	r, p := &d.Ranks[0], d.Step
	parts := []excess{
		{"computing", r.Compute, p.Compute + p.Optimizer, ""},
		{"exposed communication", r.Exposed, p.Exposed, d.slowCall()},
		{"idle time and copies", r.Idle + r.Copy, p.Bubble + p.Host, "the host is too slow or waits for data"},
	}
	if r.FP32 > r.Compute/2 {
		parts[0].why = fmt.Sprintf("%s of it are matrix products in 32 bits without tensor cores", r.FP32.Short())
	}
	slices.SortStableFunc(parts, func(a, b excess) int { return cmp.Compare(b.over(), a.over()) })
	var because []string
	for _, x := range parts {
		if x.over() < (r.Step-p.Step)/5 && len(because) > 0 {
			continue
		}
		text := fmt.Sprintf("%s takes %s instead of %s", x.what, x.traced.Short(), x.expected.Short())
		if x.why != "" {
			text += " (" + x.why + ")"
		}
		because = append(because, text)
	}
	d.Verdict = fmt.Sprintf("%s, predicted %s to %s: over by %s because %s.", took, p.Low.Short(), p.High.Short(), (r.Step - p.High).Short(), strings.Join(because, ", and "))
	d.Findings = append(d.Findings, finding.Finding{
		ID: "slow-step", Kind: "slow-step", Severity: finding.Warn, Text: d.Verdict, Factor: float64(p.Step / r.Step), Figure: "step",
		Fix: "check first that model, batch, precision and layout are those of the traced job; busbar doctor on the job's log names settings",
	})
	slices.SortStableFunc(d.Findings, finding.BySeverity)
}

// slowCall is the collective with the most exposed time that takes longer than its prediction allows. The kernel's time has the waiting for other
// ranks in it, which only the traces of several separate.
func (d *TraceDoc) slowCall() string {
	for i := range d.Calls {
		c := &d.Calls[i]
		t, note := c.Transfer, ""
		if t == 0 {
			t, note = c.Median, ", waiting for other ranks included; traces of all ranks separate the two"
		}
		if c.High > 0 && t > c.High {
			return fmt.Sprintf("%s of %s takes %s, expected %s to %s%s", c.Op, c.Bytes, t, c.Low, c.High, note)
		}
	}
	return ""
}
