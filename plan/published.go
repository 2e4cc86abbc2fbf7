package plan

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/workload"
)

//go:embed data/published.csv
var publishedCSV string

// Published is the fastest published training of a model on a GPU.
type Published struct {
	Run      string  `csv:"run"`    // MODEL/GPU/BITS, those that products take
	Tokens   float64 `csv:"tokens"` // a second and GPU
	GPUs     int     `csv:"gpus"`
	Seq      int64   `csv:"seq"`
	Software string  `csv:"software,optional"`
	Source   string  `csv:"source"`
}

// published are the runs by GPU/BITS; of each the model is found.
var published = sync.OnceValue(func() map[string][]publishedRun {
	by := map[string][]publishedRun{}
	for _, p := range csvtable.Must[Published]("plan/data/published.csv", publishedCSV) {
		name, kind, _ := strings.Cut(p.Run, "/")
		m, err := workload.Find(name)
		if err != nil {
			panic("plan/data/published.csv: " + err.Error())
		}
		by[kind] = append(by[kind], publishedRun{p, m.Dims})
	}
	return by
})

type publishedRun struct {
	Published
	dims workload.Dims
}

// Beyond is how many times as fast as every published run of a plan's kind may be without being marked.
const Beyond = 1.15

// PublishedOf is the fastest published run of a job's kind: a model of its dimensions, its GPU, as many bits, sequences
// of half to twice as many tokens; nil where none is known.
func PublishedOf(j *workload.Job, gpu string) *Published {
	if j.LoRA.Frozen() || j.Reference {
		return nil
	}
	var best *Published
	d := j.Model.Dims
	runs := published()[fmt.Sprintf("%s/%g", gpu, 8*j.Precision.Operand())]
	for i := range runs {
		p := &runs[i]
		alike := p.dims.Layers == d.Layers && p.dims.Hidden == d.Hidden && p.dims.Experts == d.Experts &&
			p.Seq <= 2*j.Seq && j.Seq <= 2*p.Seq
		if alike && (best == nil || p.Tokens > best.Tokens) {
			best = &p.Published
		}
	}
	return best
}
