package doctor

import (
	"fmt"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Bounds above which the steps of a training are said to differ.
const (
	driftShare  = 0.1  // longer at the end than at the beginning
	unevenShare = 0.02 // of steps that take half as long again as the median
	skippedPart = 10   // one of so many is skipped; a scale of the loss that is sought skips the first ones alone
)

// trained says how fast a training went, and how evenly.
func trained(t *evidence.Training) []finding.Finding {
	if t == nil {
		return nil
	}
	say := func(id string, level finding.Severity, title, cause, fix string) finding.Finding {
		return finding.Finding{
			ID: "training-" + id, Severity: level, Confidence: 1, Where: t.File, Title: title, Cause: cause, Fix: fix,
			Evidence: []finding.Quote{},
		}
	}
	f := say("rate", finding.Note, "Training at "+rate(t), fmt.Sprintf("Medians of steps %d to %d.", t.First, t.Last),
		"busbar doctor "+t.File+" -c CLUSTER -m MODEL compares it with the prediction")
	if t.Lines == 1 {
		f.Cause = "Means of the whole run, as its last line says them."
	}
	if t.Again > 0 {
		f.Cause = fmt.Sprintf("Medians of steps up to %d, whose numbers begin again %s: of all these runs or epochs.",
			t.Last, words.Plural(t.Again, "time"))
	}
	if t.Bar {
		f.Title = "A progress bar at " + rate(t)
		f.Cause += " No line names a loss or a trainer, so it may be the bar of something else."
		f.Fix = "A log with the lines that name the loss or tokens/s tells how fast the training goes"
	}
	if t.LeftOut > 0 {
		f.Cause += " Without " + words.Plural(t.LeftOut, "line") + " at the beginning, which took longer."
	}
	switch {
	case t.Step == nil:
	case span(t.Step.P10) == span(t.Step.Worst):
		f.Cause += " They are means over many steps, or all alike: how far single steps differ is not known."
	case span(t.Step.P90) == span(t.Step.Worst) && t.Lines-t.LeftOut < 10:
		f.Cause += fmt.Sprintf(" %s: %v to %v.", words.Plural(t.Lines-t.LeftOut, "step"), span(t.Step.P10),
			span(t.Step.Worst))
	default:
		f.Cause += fmt.Sprintf(" 8 of 10 steps took %v to %v, the longest %v.", span(t.Step.P10), span(t.Step.P90),
			span(t.Step.Worst))
	}
	if t.MFU > 0 {
		f.Cause += fmt.Sprintf(" MFU is %.1f%% by the log.", 100*t.MFU)
	} else if t.TFLOPS > 0 {
		f.Cause += fmt.Sprintf(" %.4g TFLOPS per GPU by the log.", t.TFLOPS)
	}
	if t.Drift >= driftShare {
		f.Cause += fmt.Sprintf(" The last fifth of the steps took %.0f%% longer than the first.", 100*t.Drift)
	}
	if t.Slow >= unevenShare {
		f.Cause += fmt.Sprintf(" %.0f%% of the steps took half as long again as the median, or longer.", 100*t.Slow)
	}
	list := []finding.Finding{f}
	if t.NaN != "" {
		g := say("nan", finding.Error, fmt.Sprintf("The %s to the end of the log, in %s",
			map[string]string{"loss": "loss is nan", "norm": "norm of the gradients is nan", "zero": "loss is exactly 0"}[t.NaN],
			words.Plural(t.NaNs, "line")),
			"The training is broken: no step after it learns. A loss of 0.0 beside it is no good fit.",
			"Go back to a checkpoint from before; look for a learning rate that is too high, fp16, bad data or a GPU that "+
				"computes wrongly")
		if t.NaNFrom >= 0 {
			g.Title += fmt.Sprintf(", from step %d", t.NaNFrom)
		}
		list = append([]finding.Finding{g}, list...)
	}
	if t.Retries > 0 {
		g := say("memory", finding.Warn,
			fmt.Sprintf("Memory is short: a GPU's allocator had to try again, %.0f times so far", t.Retries),
			"Each time it gives back what it kept and waits for the GPU, which slows steps down; no room is next.",
			"A smaller micro-batch, more recomputation or sharding; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
		if t.Memory > 0 {
			g.Cause += fmt.Sprintf(" Up to %.1f%% of the memory is taken.", 100*t.Memory)
		}
		list = append([]finding.Finding{g}, list...)
	}
	if t.Lines == 0 {
		list[len(list)-1].Title, list[len(list)-1].Cause = "A training's log", "No line names how fast it goes."
	}
	if skips := t.SkippedOf >= skippedPart && skippedPart*t.Skipped >= t.SkippedOf; skips || t.ScaleFell {
		g := say("overflow", finding.Warn, "The gradients overflow: the scale of the loss fell to 1",
			"The training diverges, or needs a wider range than fp16. A skipped step takes its time and trains nothing.",
			"Train in bf16, or lower the learning rate.")
		if skips {
			g.Title = fmt.Sprintf("The gradients overflow: %d of %d steps were skipped", t.Skipped, t.SkippedOf)
		}
		list = append(list, g)
	}
	return list
}

// rate is how fast a training went, in what its log says most of.
func rate(t *evidence.Training) string {
	switch {
	case t.Step != nil && t.Tokens > 0:
		return fmt.Sprintf("%v a step, %.0f tokens/s", span(t.Step.Median), t.Tokens)
	case t.Step != nil:
		return fmt.Sprintf("%v a step", span(t.Step.Median))
	case t.Tokens > 0:
		return fmt.Sprintf("%.0f tokens/s", t.Tokens)
	case t.PerGPU > 0:
		return fmt.Sprintf("%.0f tokens/s per GPU", t.PerGPU)
	case t.Samples > 0:
		return fmt.Sprintf("%.4g samples/s", t.Samples)
	case t.TFLOPS > 0:
		return fmt.Sprintf("%.4g TFLOPS per GPU", t.TFLOPS)
	}
	return fmt.Sprintf("%.1f%% MFU", 100*t.MFU)
}

func span(seconds float64) unit.Span { return unit.Span(seconds) }
