// Train scores what is predicted of runs of one framework whose memory was published, and of settings that failed: the
// error of memory and of steps on few nodes, and how many of each are said to fit. Nothing is fitted here. Half of the
// runs, by a hash of their names, is for development; the other half is scored once.
//
//	go run . -runs ultrascale.jsonl -failed ultrascale-failed.jsonl [-half dev|kept|all] [-rows]
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"maps"
	"math"
	"os"
	"slices"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// run is one that was measured, or a setting that failed.
type run struct {
	ID    string `json:"id"`
	Model struct {
		Params                                           float64
		Layers, Hidden, FFN, Heads, Seq, Vocab, KV_heads int64
		Tied                                             bool
	} `json:"model"`
	Hardware struct {
		Nodes int `json:"nodes"`
	} `json:"hardware"`
	Parallel struct {
		DP          int   `json:"dp"`
		TP          int   `json:"tp"`
		PP          int   `json:"pp"`
		ZeRO        int   `json:"zero"`
		MicroBatch  int64 `json:"micro_batch"`
		GlobalBatch int64 `json:"global_batch"`
	} `json:"parallel"`
	Measured struct {
		Step   float64 `json:"step_time_s"`
		Memory float64 `json:"peak_memory_GB"` // GiB of the first stage as PyTorch reserved them
	} `json:"measured"`
	Framework string `json:"framework"`
}

// failed is a setting that did not run.
type failed struct {
	Billions float64 `json:"model_b"`
	Nodes    int     `json:"nodes"`
	Micro    int64   `json:"micro_batch"`
	Accum    int64   `json:"grad_accum"`
	DP       int     `json:"dp"`
	PP       int     `json:"pp"`
	TP       int     `json:"tp"`
	ZeRO     int     `json:"zero"`
}

// What all of them ran on.
const (
	machine = "aws-p5"
	perNode = 8
)

func main() {
	log.SetFlags(0)
	runs := flag.String("runs", "", "measured runs, one JSON object a line")
	fails := flag.String("failed", "", "settings that failed")
	half := flag.String("half", "dev", "which runs: dev, kept or all")
	rows := flag.Bool("rows", false, "every run")
	few := flag.Int("nodes", 2, "steps are scored on so many nodes at most")
	flag.Parse()
	all, err := lines[run](*runs)
	if err != nil {
		log.Fatal(err)
	}
	list := slices.DeleteFunc(slices.Clone(all),
		func(r run) bool { return *half != "all" && inKept(r.ID) != (*half == "kept") })
	if err := score(list, *few, *rows); err != nil {
		log.Fatal(err)
	}
	if *fails == "" {
		return
	}
	lost, err := lines[failed](*fails)
	if err != nil {
		log.Fatal(err)
	}
	scoreFailed(lost, all, *half, *rows)
}

// inKept says which half a name is in.
func inKept(id string) bool {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32()&0x10000 != 0
}

func lines[T any](name string) ([]T, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var list []T
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var x T
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, x)
	}
	return list, nil
}

// job is the run as a job of its framework.
func (r *run) job() (*workload.Job, error) {
	m := r.Model
	d := workload.Dims{
		Layers: m.Layers, Hidden: m.Hidden, FFN: m.FFN, Heads: m.Heads, KVHeads: m.KV_heads, Vocab: m.Vocab, Context: m.Seq,
	}
	design := "decoder gated"
	if m.Tied {
		design += " tied"
	}
	model := &workload.Model{Name: "llama", Dims: d, Seq: m.Seq, Blocks: workload.Blocks(design, d)}
	f, err := workload.FrameworkAt(r.Framework, "2025-01")
	if err != nil {
		return nil, err
	}
	p := r.Parallel
	j := &workload.Job{
		Model: model, Seq: m.Seq, MicroBatch: p.MicroBatch, GlobalBatch: p.GlobalBatch, Recompute: workload.None,
		Split: workload.Split{DP: p.DP, TP: p.TP, PP: p.PP, ZeRO: p.ZeRO, SeqParallel: p.TP > 1},
	}
	if j.Split, err = j.Split.On(p.DP * p.TP * p.PP); err != nil {
		return nil, err
	}
	f.Adopt(j, "h200", 90)
	return j, j.Check()
}

// place is the GPU and the fabric of a job.
func place(j *workload.Job) (*step.GPU, *step.Fabric, error) {
	nodes := max(1, j.Split.Ranks()/perNode)
	c, err := hardware.Preset(machine, nodes)
	if err != nil {
		return nil, nil, err
	}
	l, err := nccl.Block(c, nodes, perNode)
	if err != nil {
		return nil, nil, err
	}
	m, err := step.GPUOf(c, l)
	if err != nil {
		return nil, nil, err
	}
	g, err := step.NewGPU(m, step.Default())
	return g, step.NewFabric(c, l, j.Split, nccl.Newest), err
}

// fits is what a user is told.
func fits(j *workload.Job) bool {
	g, _, err := place(j)
	if err != nil {
		log.Fatal(err)
	}
	m := step.NewBounds(j.Model, g).Family(j).Memory(j)
	return m.Total() <= step.Room(g.Model.Memory, step.Reserve)
}

// errors are of predictions, over what was measured.
type errors struct{ ratios []float64 }

func (e *errors) add(ratio float64) { e.ratios = append(e.ratios, ratio) }

func (e *errors) String() string {
	if len(e.ratios) == 0 {
		return "none"
	}
	off := make([]float64, len(e.ratios))
	for i, r := range e.ratios {
		off[i] = math.Abs(r - 1)
	}
	slices.Sort(off)
	at := slices.Sorted(slices.Values(e.ratios))
	return fmt.Sprintf("%4d runs: median %4.1f%%, p90 %4.1f%%; predicted/measured %.2f (%.2f to %.2f)", len(off),
		100*off[len(off)/2], 100*off[len(off)*9/10], at[len(at)/2], at[len(at)/10], at[len(at)*9/10])
}

// by are errors of several kinds.
type by map[string]*errors

func (b by) add(kind string, ratio float64) {
	if b[kind] == nil {
		b[kind] = &errors{}
	}
	b[kind].add(ratio)
}

func (b by) print(title string) {
	fmt.Println(title)
	var kinds []string
	for k := range b {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
	for _, k := range kinds {
		fmt.Printf("  %-24s %v\n", k, b[k])
	}
}

// score is the error of memory, of all, and of steps on few nodes; and how many are said not to fit.
func score(list []run, few int, rows bool) error {
	memory, steps := by{}, by{}
	refused := 0
	for i := range list {
		r := &list[i]
		j, err := r.job()
		if err != nil {
			return fmt.Errorf("%s: %w", r.ID, err)
		}
		first := j.StageMemory(0)
		have := first.Total().GiB()
		memory.add("all", have/r.Measured.Memory)
		memory.add(fmt.Sprintf("pp=%d", r.Parallel.PP), have/r.Measured.Memory)
		memory.add(fmt.Sprintf("%.2fB", r.Model.Params/1e9), have/r.Measured.Memory)
		if !fits(j) {
			refused++
		}
		if rows {
			fmt.Printf("%-48s %6.1f GiB, measured %6.1f (%.2f)", r.ID, have, r.Measured.Memory, have/r.Measured.Memory)
			for _, x := range []unit.Volume{first.Params, first.Grads, first.Optimizer, first.Activations, first.Other} {
				fmt.Printf(" %.1f", x.GiB())
			}
		}
		if r.Hardware.Nodes <= few {
			g, f, err := place(j)
			if err != nil {
				return err
			}
			x, err := step.Step(j, g, f)
			if err != nil {
				return fmt.Errorf("%s: %w", r.ID, err)
			}
			ratio := x.Step.Seconds() / r.Measured.Step
			steps.add("all", ratio)
			steps.add(fmt.Sprintf("%.2fB", r.Model.Params/1e9), ratio)
			steps.add(fmt.Sprintf("tp=%d", r.Parallel.TP), ratio)
			steps.add(fmt.Sprintf("pp=%d", r.Parallel.PP), ratio)
			if rows {
				fmt.Printf("; %6.2f s, measured %6.2f (%.2f): compute %.2f, bubble %.2f, exposed %.2f, update %.2f",
					x.Step.Seconds(),
					r.Measured.Step, ratio, x.Compute.Seconds(), x.Bubble.Seconds(), x.Exposed.Seconds(), x.Optimizer.Seconds())
			}
		}
		if rows {
			fmt.Println()
		}
	}
	memory.print("memory of the first stage, as PyTorch reserves it:")
	steps.print(fmt.Sprintf("steps on at most %d nodes:", few))
	fmt.Printf("said not to fit: %d of %d that ran (%.1f%%)\n", refused, len(list),
		100*float64(refused)/float64(max(1, len(list))))
	return nil
}

// scoreFailed says how many failures that can be memory's are said not to fit.
func scoreFailed(lost []failed, runs []run, half string, rows bool) {
	counts := countFailed(lost, runs, half, rows)
	fmt.Println("settings that failed:")
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("  %-44s %d\n", k, counts[k])
	}
	not, fit := counts["said not to fit"], counts["said to fit"]
	fmt.Printf("said not to fit: %d of %d that can be memory's (%.1f%%)\n", not, not+fit,
		100*float64(not)/float64(max(1, not+fit)))
}

// countFailed counts failures by what is said of them: those with fewer micro-batches than the pipeline takes, and
// those that leave a rank without any block, are not memory's.
func countFailed(lost []failed, runs []run, half string, rows bool) map[string]int {
	counts := map[string]int{}
	for _, x := range lost {
		id := fmt.Sprintf("%g-%d-%d-%d-%d-%d-%d-%d", x.Billions, x.Nodes, x.Micro, x.Accum, x.DP, x.PP, x.TP, x.ZeRO)
		if half != "all" && inKept(id) != (half == "kept") {
			continue
		}
		r := runs[slices.IndexFunc(runs, func(r run) bool { return math.Abs(r.Model.Params/1e9-x.Billions) < 0.01 })]
		r.Parallel.DP, r.Parallel.TP, r.Parallel.PP, r.Parallel.ZeRO = x.DP, x.TP, x.PP, x.ZeRO
		r.Parallel.MicroBatch, r.Parallel.GlobalBatch = x.Micro, x.Micro*x.Accum*int64(x.DP)
		j, err := r.job()
		switch {
		case err != nil:
			counts["no job: "+err.Error()]++
		case x.Accum < int64(x.PP)-1:
			counts["fewer micro-batches than the pipeline takes"]++
		case empty(j):
			counts["a rank without a block"]++
		case fits(j):
			counts["said to fit"]++
			if rows {
				fmt.Println("fits:", id, j.Memory().Total().GiB())
			}
		default:
			counts["said not to fit"]++
		}
	}
	return counts
}

// empty reports a rank of the pipeline that has no block.
func empty(j *workload.Job) bool {
	places := j.Places(j.Model.Outline())
	for i := 1; i < len(places); i++ {
		if places[i] == places[i-1] {
			return true
		}
	}
	return false
}
