package main

import (
	"fmt"
	"slices"

	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// mechanisms are the parts of how training runs are read and priced that can be left out, to see what each is worth.
// Others had switches that moved no error of left-out clusters by more than half a point (docs/accuracy.md): they are
// facts of frameworks and models which other tests hold.
var mechanisms = []struct{ name, meaning string }{
	{"software", "kernels, overlap and sharding by framework and year; without: as Megatron-LM of 2020"},
	{"precision", "kinds of 8 and 4 bits; without: fp8 for all of them"},
	{"frozen", "frozen weights of LoRA; without: all are trained"},
	{"host", "what the host takes to start kernels; without: nothing"},
	{"graphs", "kernels started as graphs; without: one by one"},
	{"dispatch", "tokens by kernels that send one once to a node; without: all-to-all, once to each expert"},
	{"hidden", "tokens travel beside other micro-batches' computing; without: products wait"},
	{"capacity", "experts with a fixed number of tokens; without: the host waits for their numbers"},
	{"power", "clocks by the power of a GPU; without: as the usual one of its generation"},
	{"attention", "kernels of attention by year; without: the newest"},
	{"buckets", "buckets of gradients by framework; without: 25 MiB"},
	{"fitting", "recomputation where a run does not fit; without: none that is not stated"},
}

// leaveOut takes a mechanism out of a run that was read, or out of what is known of its GPU.
func leaveOut(name string, t *training, j *workload.Job, m *hardware.GPUModel) {
	switch name {
	case "software": // as a run was priced whose software nobody knew
		j.Kernels, j.Unfused, j.Sync, j.Graphs = workload.Fused, true, true, false
		if t.Parallel.SeqParallel == nil {
			j.Split.SeqParallel = false
		}
		if t.Parallel.ZeRO == nil && t.Parallel.FSDP == nil {
			j.Split.ZeRO = 0
		}
	case "precision":
		if j.Precision.Low() {
			j.Precision = workload.FP8
		}
	case "frozen":
		j.LoRA = workload.LoRA{}
	case "host", "graphs":
		j.Graphs = name == "host"
	case "dispatch":
		j.Recipe.Dispatcher = workload.AllToAll
	case "hidden":
		j.Recipe.Overlap = false
	case "capacity":
		j.Capacity = false
	case "power":
		m.TDP = 0
	case "attention":
		j.Early, j.Second, j.Unfused = false, false, false
	case "buckets":
		j.Bucket = 0
	case "fitting":
		if t.Parallel.Recompute == "" {
			j.Recompute = workload.None
		}
	}
}

// runsWithout are runs that are read without a mechanism.
func runsWithout(runs []*training, name string) ([]*training, error) {
	var known []string
	for _, m := range mechanisms {
		known = append(known, m.name)
		if m.name != name {
			continue
		}
		list := make([]*training, len(runs))
		for i, t := range runs {
			c := *t
			c.Assumed = nil
			c.Change = func(t *training, j *workload.Job, m *hardware.GPUModel) { leaveOut(name, t, j, m) }
			list[i] = &c
		}
		return list, nil
	}
	return nil, fmt.Errorf("%q: training steps have no such mechanism; expected one of %v", name, known)
}

// ablateSteps prints how far off runs of the last file are, each cluster left out, with everything and without each
// mechanism; figures are fitted anew each time.
func (q *question) ablateSteps(runs []*training) error {
	last := map[string]bool{}
	for _, t := range q.files[len(q.files)-1].runs {
		last[t.ID] = true
	}
	var list [][]string
	score := func(name, meaning string, runs []*training) error {
		rows, _ := predictRuns(runs, step.Guess())
		fit, err := fitSteps(rows, step.Guess())
		if err == nil {
			err = fit.cross(ofCluster)
		}
		if err != nil {
			return err
		}
		scored := slices.DeleteFunc(rows, func(r *runRow) bool { return !last[r.ID] })
		list = append(list, append(append([]string{name}, stepScore(scored)...), meaning))
		return nil
	}
	if err := score(nothing, "the model as it is", runs); err != nil {
		return err
	}
	for _, m := range mechanisms {
		changed, err := runsWithout(runs, m.name)
		if err == nil {
			err = score(m.name, m.meaning, changed)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprint(q.out, "Every run is predicted by parameters fitted without any run of its cluster.\n\n")
	q.table([]string{"without", "median", "90%", "averaged over clusters", "in the bar", "averaged", ""}, list)
	return nil
}
