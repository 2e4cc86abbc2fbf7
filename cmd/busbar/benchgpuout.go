package main

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// gpuSweep collects what settings gave.
type gpuSweep struct {
	c       *benchGPUCmd
	kind    coll.Kind
	all     result.Sweeps
	order   []gpuSetting
	times   map[gpuSetting]map[unit.Bytes][]float64 // µs out of place, of every run
	refused []gpuRefusal
	wrong   int64
	untimed int // rows without a time
}

// gpuRefusal is a setting that gave nothing.
type gpuRefusal struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

func (s *gpuSweep) refuse(x gpuSetting, err error) {
	r := gpuRefusal{x.String(), texttab.Clean(err.Error())}
	if !slices.Contains(s.refused, r) {
		s.refused = append(s.refused, r)
	}
}

func (s *gpuSweep) add(x gpuSetting, list result.Sweeps) {
	s.all = append(s.all, list...)
	for _, r := range list.Rows() {
		if r.Wrong != nil {
			s.wrong += *r.Wrong
		}
		if r.InPlace || r.Wrong != nil && *r.Wrong > 0 {
			continue
		}
		if s.times == nil {
			s.times = map[gpuSetting]map[unit.Bytes][]float64{}
		}
		if s.times[x] == nil {
			s.times[x] = map[unit.Bytes][]float64{}
			s.order = append(s.order, x)
		}
		s.times[x][r.Size] = append(s.times[x][r.Size], r.Time.Mean)
	}
}

// gpuBest is the best setting of a size.
type gpuBest struct {
	size       unit.Bytes
	auto, best float64 // µs
	setting    gpuSetting
}

// lost is how much longer NCCL's own choice takes, as a share.
func (b gpuBest) lost() float64 {
	if b.best <= 0 || b.auto <= 0 {
		return 0
	}
	return b.auto/b.best - 1
}

// best finds the fastest setting of every size, by the median of its runs.
func (s *gpuSweep) best() []gpuBest {
	var list []gpuBest
	at := map[unit.Bytes]int{}
	for _, x := range s.order {
		for size, runs := range s.times[x] {
			t := stats.Nearest(runs, 0.5)
			i, ok := at[size]
			if !ok {
				i = len(list)
				at[size] = i
				list = append(list, gpuBest{size: size, best: t, setting: x})
			}
			b := &list[i]
			if x.auto() {
				b.auto = t
			}
			if t < b.best {
				b.best, b.setting = t, x
			}
		}
	}
	slices.SortFunc(list, func(a, b gpuBest) int { return cmp.Compare(a.size, b.size) })
	return list
}

// end prints and keeps.
func (s *gpuSweep) end(e *env) error {
	if len(s.all) == 0 {
		return failure.Cannot(fmt.Errorf("%s printed no rows", s.kind.Binary()))
	}
	var err error
	switch {
	case s.c.JSON:
		err = writeIndented(e.stdout, s.document())
	case !s.c.toStdout():
		err = s.print(e)
	}
	if err == nil {
		err = s.c.keep(e, s.all)
	}
	if err == nil && s.wrong > 0 {
		return errWrong
	}
	return err
}

func (s *gpuSweep) print(e *env) error {
	w, r := e.stdout, s.all[0]
	gpu := ""
	if r.Machine != nil && r.Machine.GPU != "" {
		gpu = " of " + texttab.Clean(r.Machine.GPU)
	}
	fmt.Fprintf(w, "%s, %s, %s%s, %s", s.kind, r.Dtype, counted(r.Ranks, "rank"), gpu, r.Tool)
	if r.Library != "" {
		fmt.Fprintf(w, ", NCCL %s", r.Library)
	}
	fmt.Fprintf(w, "; %s\n\n", counted(len(s.order), "setting"))
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "size", Align: right}, {Head: "NCCL's choice", Align: right}, {Head: "best", Align: right}, {Head: "setting"}, {Head: "lost", Align: right}, {Head: "busbw", Align: right}}}
	op := coll.Op{Kind: s.kind}
	for _, b := range s.best() {
		op.Bytes = b.size
		op.Type, _ = coll.ParseDtype(r.Dtype)
		t.Row(b.size.String(), microText(b.auto), microText(b.best), b.setting.String(), fmt.Sprintf("%.1f%%", 100*b.lost()), op.BusBW(r.Ranks, unit.Micros(b.best)).String())
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nlost: how much longer NCCL's own choice takes than the best setting. Differences of a few percent are noise: --repeat 4 and bench diff tell")
	if s.wrong > 0 {
		fmt.Fprintf(w, "%d wrong elements; such rows are not compared\n", s.wrong)
	}
	if s.untimed > 0 {
		fmt.Fprintf(w, "left out: %s without a time that is a number above 0\n", counted(s.untimed, "row"))
	}
	for _, x := range s.refused {
		fmt.Fprintf(w, "refused: %s: %s\n", x.Setting, x.Why)
	}
	return nil
}

// document is what --json prints.
func (s *gpuSweep) document() any {
	type row struct {
		Size     int64             `json:"size_bytes"`
		Auto     float64           `json:"auto_us"`
		Best     float64           `json:"best_us"`
		Algo     string            `json:"algo"`
		Proto    string            `json:"proto"`
		Channels int               `json:"channels,omitempty"`
		Env      map[string]string `json:"env"`
		Lost     float64           `json:"lost"`
	}
	rows := []row{}
	for _, b := range s.best() {
		rows = append(rows, row{int64(b.size), b.auto, b.best, b.setting.algo, b.setting.proto, b.setting.channels, b.setting.env(), b.lost()})
	}
	r := s.all[0]
	return map[string]any{
		"op": s.kind, "ranks": r.Ranks, "dtype": r.Dtype, "tool": r.Tool, "library": r.Library, "rows": rows,
		"refused": append([]gpuRefusal{}, s.refused...), "wrong": s.wrong, "untimed_rows": s.untimed, "results": s.all,
	}
}

func microText(us float64) string { return unit.Time(us * 1e6).String() }
