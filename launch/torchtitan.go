package launch

import (
	"fmt"
	"strings"

	"busbar.dev/workload/pipeline"
)

// TitanFlavor is the flavor of llama3 under which torchtitan has the model: those of Llama 3.1, which it also trains
// Llama 3 by. "" where it has none.
func (w *writer) TitanFlavor() string {
	d, y := w.Dims, w.Details
	if y.Type != "llama" || d.Vocab != 128256 || y.Scaling != "" && y.Scaling != "llama3:8:8192" {
		return ""
	}
	return map[[3]int64]string{
		{32, 4096, 14336}: "8B", {80, 8192, 28672}: "70B", {126, 16384, 53248}: "405B",
	}[[3]int64{d.Layers, d.Hidden, d.FFN}]
}

// titanReason is why torchtitan 0.1 and 0.2, which are configured by TOML, do not run the plan.
func (w *writer) titanReason() string {
	if w.TitanFlavor() != "" {
		return ""
	}
	return w.beyondSwiGLU("torchtitan")
}

// TitanSchedule is PyTorch's name of the pipeline's schedule.
func (w *writer) TitanSchedule() string {
	return map[pipeline.Schedule]string{
		pipeline.GPipe: "GPipe", pipeline.Alternate: "1F1B", pipeline.Interleaved: "Interleaved1F1B",
		pipeline.ZeroBubbleV: "ZBVZeroBubble",
	}[w.Job.Pipeline().Schedule]
}

// LocalBatch is the sequences of a data-parallel rank at once; with a pipeline those of a step.
func (w *writer) LocalBatch() int64 {
	if w.Split.PP > 1 {
		return w.Job.GlobalBatch / int64(w.Split.DP)
	}
	return w.Job.MicroBatch
}

// Replicas is how many groups of ranks hold the same parameters, and how many ranks of each divide them.
func (w *writer) Replicas() [2]int {
	s := w.Split
	if s.ZeRO == 0 {
		return [2]int{s.DP, 1}
	}
	shard := max(1, s.Shard/max(1, s.CP))
	return [2]int{s.DP / shard, shard}
}

// TitanStages are the modules of every place of the pipeline, in their order.
func (w *writer) TitanStages() (list []string) {
	stages := w.stageLayers()
	at := 0
	for place, n := range stages {
		var names []string
		if place == 0 {
			names = append(names, `"tok_embeddings"`)
		}
		for range n {
			names = append(names, fmt.Sprintf(`"layers.%d"`, at))
			at++
		}
		if place == len(stages)-1 {
			names = append(names, `"norm"`, `"output"`)
		}
		list = append(list, strings.Join(names, ", "))
	}
	return list
}

// SharedExperts is how many experts the MLP beside them is wide.
func (w *writer) SharedExperts() int64 { return w.Arch.SharedFFN / max(1, w.Dims.ExpertFFN) }

// TitanRelease is the tag of the release.
func (w *writer) TitanRelease() string {
	if f := w.Framework; strings.Count(f.Release, ".") > 1 {
		return f.Release
	} else if f.Has("0.2") {
		return "0.2.2"
	}
	return "0.1.0"
}
