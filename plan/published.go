package plan

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/workload"
)

//go:embed data/published.csv
var publishedCSV string

// Published is the fastest published training of a model on a GPU.
type Published struct {
	Run      string  `csv:"run"`    // MODEL/GPU/BITS, those that products take, and perhaps /FRAMEWORK
	Tokens   float64 `csv:"tokens"` // a second and GPU
	GPUs     int     `csv:"gpus"`
	Seq      int64   `csv:"seq"`
	Software string  `csv:"software,optional"`
	Source   string  `csv:"source"`
	// Parallel, Micro and Recompute are how it was run, where that is stated.
	Parallel  string             `csv:"parallel,optional"`
	Micro     int64              `csv:"micro,optional"`
	Recompute workload.Recompute `csv:"recompute,optional"`
}

// of reports whether a run is stated to be by a framework, or by another form of it.
func (p *Published) of(f *workload.Framework) bool {
	name := ""
	if f != nil {
		name = strings.ReplaceAll(f.Name, "nemo", "megatron") // whose core both are
	}
	return name != "" && strings.HasSuffix(p.Run, "/"+name)
}

// published are the runs by GPU/BITS; of each the model is found.
var published = sync.OnceValue(func() map[string][]publishedRun {
	by := map[string][]publishedRun{}
	for _, p := range csvtable.Must[Published]("plan/data/published.csv", publishedCSV) {
		of := append(strings.Split(p.Run, "/"), "", "")
		kind := of[1] + "/" + of[2]
		m, err := workload.Find(of[0])
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
// of half to twice as many tokens, and its framework where a run by that is known; nil where none is known.
func PublishedOf(j *workload.Job, gpu string) *Published {
	return fastestRun(j, gpu, func(*Published) bool { return true })
}

// fastestRun is the one of those that are wanted, by the job's framework before others.
func fastestRun(j *workload.Job, gpu string, wanted func(p *Published) bool) *Published {
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
		if !alike || !wanted(&p.Published) {
			continue
		}
		own := p.of(j.Framework)
		if best == nil || own && !best.of(j.Framework) || own == best.of(j.Framework) && p.Tokens > best.Tokens {
			best = &p.Published
		}
	}
	return best
}

// Published is the plan that runs the job as the fastest published run of its kind was run, by its framework and on
// half to twice as many GPUs, and that run. Both are nil where none is known, or where the space does not have it.
func (q *Query) Published(ctx context.Context) (*Plan, *Published, error) {
	x := *q.Spaces[0]
	run := fastestRun(&x.Base, q.GPU.Model.Name, func(p *Published) bool {
		return p.Parallel != "" && p.of(x.Base.Framework) && p.GPUs <= 2*x.Ranks && x.Ranks <= 2*p.GPUs
	})
	if run == nil {
		return nil, nil, nil
	}
	s, err := workload.ParseSplit(run.Parallel)
	if err != nil {
		return nil, nil, err
	}
	has := narrow(&x.TP, max(s.TP, 1)) && narrow(&x.PP, max(s.PP, 1)) && narrow(&x.CP, max(s.CP, 1)) &&
		narrow(&x.EP, max(s.EP, 1)) && narrow(&x.Chunks, max(s.Chunks, 1)) && narrow(&x.ZeRO, max(s.ZeRO, 1)) &&
		narrow(&x.Micro, run.Micro) && (run.Recompute == "" || narrow(&x.Recompute, run.Recompute)) && narrow(&x.Offload, "")
	if !has {
		return nil, nil, nil
	}
	x.Order, x.Shard = x.Order[:1], x.Shard[:1] // nobody says that they were others
	own := *q
	own.Spaces, own.Top, own.Watch, own.Reserve = []*Space{&x}, 1, nil, 0
	a, err := Search(ctx, &own)
	switch {
	case errors.Is(err, ErrNone) || err == nil && len(a.Plans) == 0:
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return &a.Plans[0], run, nil
}

// narrow leaves one value of those to try, where it is among them.
func narrow[T comparable](list *[]T, value T) bool {
	has := slices.Contains(*list, value)
	*list = []T{value}
	return has
}
