package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/doctor"
	"busbar.dev/finding"
	"busbar.dev/input/nccltests"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// benchRun is a measured sweep before anybody judged it.
type benchRun struct {
	source        string
	op            coll.Kind
	dtype         string
	nodes, per    int
	gpu, release  string
	transport     string
	times         [2]map[float64][]float64 // by size: out of place, in place
	sizes, micros []float64
	inPlace       map[float64]float64
	quotes        map[float64]finding.Quote
	wrong         int64
	unsure        string
}

// fill puts into a judged sweep what the prediction does not need.
func (r *benchRun) fill(s *doctor.Sweep) {
	s.Wrong, s.Unsure = r.wrong, r.unsure
	for i := range s.Points {
		size := float64(s.Points[i].Size)
		s.Points[i].InPlace = unit.Micros(r.inPlace[size])
		s.Points[i].Quote = r.quotes[size]
	}
	s.Fill()
}

// runs reads the file and puts rows that belong together into sweeps.
func (c *doctorBenchCmd) runs(e *env) ([]*benchRun, error) {
	data, err := e.measuredText(c.Result)
	if err != nil {
		return nil, err
	}
	name := inputName(c.Result)
	list, err := c.records(name, data)
	if err != nil {
		return nil, err
	}
	quotes, why := tableQuotes(name, c.Op, data)
	index := map[string]*benchRun{}
	var runs []*benchRun
	rivals := severalWays(list)
	for _, r := range list {
		nodes, per, err := c.shape(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		key := fmt.Sprint(r.Op, r.Dtype, nodes, per, r.Transport, r.Library)
		if rivals {
			key += r.Algo + r.Proto
		}
		b := index[key]
		if b == nil {
			b = &benchRun{source: name, op: r.Op, dtype: cmp.Or(r.Dtype, "float"), nodes: nodes, per: per, release: r.Library, transport: r.Transport, quotes: quotes[r.Op.String()], unsure: why}
			b.times[0], b.times[1] = map[float64][]float64{}, map[float64][]float64{}
			if r.Machine != nil {
				b.gpu = r.Machine.GPU
			}
			index[key] = b
			runs = append(runs, b)
		}
		b.add(r)
	}
	for _, b := range runs {
		b.finish()
	}
	runs = slices.DeleteFunc(runs, func(b *benchRun) bool { return len(b.sizes) == 0 || b.nodes*b.per < 2 })
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: no row of two ranks and more with a size and a time above 0", name)
	}
	return runs, nil
}

// severalWays reports whether one size was run by several algorithms on purpose; else
// the library chose by size, and all sizes are one sweep.
func severalWays(list []*result.Record) bool {
	algo := map[string]string{}
	for _, r := range list {
		key := fmt.Sprint(r.Op, r.Dtype, r.Ranks, r.Nodes, r.Transport, r.Library, r.Size)
		how := r.Algo + " " + r.Proto
		if old, ok := algo[key]; ok && old != how {
			return true
		}
		algo[key] = how
	}
	return false
}

// add takes one row.
func (b *benchRun) add(r *result.Record) {
	to := b.times[0]
	if r.InPlace {
		to = b.times[1]
	}
	micros := r.Time.Mean
	if r.Time.Median > 0 {
		micros = r.Time.Median
	}
	to[float64(r.Size)] = append(to[float64(r.Size)], micros)
	if r.Wrong != nil {
		b.wrong += *r.Wrong
	}
}

// finish takes the median of repeated sizes, out of place where that was measured.
func (b *benchRun) finish() {
	b.inPlace = map[float64]float64{}
	for size, list := range b.times[1] {
		b.inPlace[size] = middleOf(list)
	}
	times := b.times[0]
	if len(times) == 0 {
		times = b.times[1]
	}
	for size, list := range times {
		if size > 0 && middleOf(list) > 0 {
			b.sizes = append(b.sizes, size)
		}
	}
	slices.Sort(b.sizes)
	for _, size := range b.sizes {
		b.micros = append(b.micros, middleOf(times[size]))
	}
}

func middleOf(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// shape is the layout of a record, from its ranks or from -l.
func (c *doctorBenchCmd) shape(r *result.Record) (nodes, per int, err error) {
	if c.Layout != "" {
		if nodes, per, err = predict.ParseLayout(c.Layout); err != nil {
			return 0, 0, err
		}
		if nodes*per != r.Ranks && r.Ranks > 1 {
			return 0, 0, fmt.Errorf("-l %s is %d ranks; the output has %d", c.Layout, nodes*per, r.Ranks)
		}
		return nodes, per, nil
	}
	if r.Nodes > 0 && r.PerNode > 0 {
		return r.Nodes, r.PerNode, nil
	}
	if r.Ranks < 2 {
		return 0, 0, fmt.Errorf("the output does not list its ranks; give them with -l NODESxGPUS")
	}
	return 1, r.Ranks, nil
}

// records reads any of the formats.
func (c *doctorBenchCmd) records(name string, data []byte) ([]*result.Record, error) {
	text := bytes.TrimSpace(data)
	switch {
	case result.Match(data):
		return result.Read(name, bytes.NewReader(data))
	case len(text) > 0 && text[0] == '{':
		return c.document(name, text)
	case nccltests.Match(data):
		res, err := nccltests.ReadResult(name, bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		for i := range res.Tables {
			if t := &res.Tables[i]; t.Op == "" {
				t.Op = cmp.Or(c.Op, opInName(name))
			}
		}
		list, _, err := tableRecords(name, res)
		if err != nil && c.Op == "" {
			err = fmt.Errorf("%w; give it with --op", err)
		}
		return list, err
	}
	return nil, fmt.Errorf("%s: neither an output of nccl-tests (text or JSON) nor results of busbar bench", name)
}

// measuredDoc is what nccl-tests' -J and our own --json have of what is used here.
type measuredDoc struct {
	// busbar bench
	Op        string   `json:"op"`
	Ranks     int      `json:"ranks"`
	Transport string   `json:"transport"`
	Dtype     string   `json:"dtype"`
	Hosts     []string `json:"hosts"`
	Rows      []struct {
		Size    int64       `json:"size_bytes"`
		Algo    string      `json:"algo"`
		Time    docTimes    `json:"time_us"`
		Wrong   *int64      `json:"wrong"`
		InPlace *docInPlace `json:"in_place"`
	} `json:"rows"`
	// nccl-tests
	Args   json.RawMessage `json:"args"`
	NCCL   json.Number     `json:"nccl_version"` // 22907
	Config struct {
		Devices []struct {
			Rank int    `json:"rank"`
			Host string `json:"hostname"`
			Name string `json:"device_info"`
		} `json:"devices"`
	} `json:"config"`
	Results []struct {
		Size int64    `json:"size"`
		Type string   `json:"type"`
		Out  *docHalf `json:"out_of_place"`
		In   *docHalf `json:"in_place"`
	} `json:"results"`
}

type docTimes struct {
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
}

type docInPlace struct {
	Time docTimes `json:"time_us"`
}

type docHalf struct {
	Time  float64 `json:"time"`
	Wrong float64 `json:"nwrong"`
}

// document reads either JSON.
func (c *doctorBenchCmd) document(name string, data []byte) ([]*result.Record, error) {
	var d measuredDoc
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%s: %w; expected the JSON of busbar bench or of nccl-tests", name, err)
	}
	like := result.Record{Format: result.Format, Source: result.Measured}
	var list []*result.Record
	add := func(size int64, dtype string, micros docTimes, wrong *int64, in bool) {
		x := like
		x.Size, x.Dtype, x.InPlace, x.Wrong = unit.Bytes(size), dtype, in, wrong
		x.Time.Mean, x.Time.Median = micros.Mean, micros.Median
		list = append(list, &x)
	}
	op := cmp.Or(d.Op, c.Op)
	switch {
	case len(d.Rows) > 0:
		like.Ranks, like.Transport = d.Ranks, d.Transport
		if n := len(d.Hosts); n > 0 && d.Ranks%n == 0 {
			like.Nodes, like.PerNode = n, d.Ranks/n
		}
	case len(d.Results) > 0:
		like.Transport, like.Ranks, like.Algo = result.NCCL, len(d.Config.Devices), "auto"
		like.Library = libraryVersion(d.NCCL.String())
		hosts := map[string]bool{}
		for _, v := range d.Config.Devices {
			hosts[v.Host] = true
			like.Machine = &result.Machine{GPU: v.Name}
		}
		if n := len(hosts); n > 0 && like.Ranks%n == 0 {
			like.Nodes, like.PerNode = n, like.Ranks/n
		}
		if op == "" {
			op = opInArgs(string(d.Args))
		}
	default:
		return nil, fmt.Errorf("%s: neither rows of busbar bench nor results of nccl-tests in this JSON", name)
	}
	var err error
	if like.Op, err = coll.ParseKind(op); err != nil {
		return nil, fmt.Errorf("%s: nothing says which collective this is; give it with --op", name)
	}
	for _, r := range d.Rows {
		add(r.Size, d.Dtype, r.Time, r.Wrong, false)
		if r.InPlace != nil {
			add(r.Size, d.Dtype, r.InPlace.Time, nil, true)
		}
	}
	for _, r := range d.Results {
		for in, h := range []*docHalf{r.Out, r.In} {
			if h != nil {
				wrong := int64(h.Wrong)
				add(r.Size, r.Type, docTimes{Mean: h.Time}, &wrong, in == 1)
			}
		}
	}
	for _, x := range list {
		if err := x.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return list, nil
}

// opInArgs finds the program's name in a command line.
func opInArgs(args string) string {
	for _, k := range coll.Kinds() {
		if strings.Contains(args, k.String()+"_perf") {
			return k.String()
		}
	}
	if strings.Contains(args, "alltoall_perf") {
		return coll.AllToAll.String()
	}
	return ""
}

// opInName finds a collective in the name of a file, for outputs that name none.
func opInName(name string) string {
	low := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(filepath.Base(name)))
	for _, k := range []coll.Kind{coll.AllReduce, coll.ReduceScatter, coll.AllGather, coll.AllToAll, coll.Broadcast, coll.SendRecv, coll.Reduce} {
		if strings.Contains(low, strings.ReplaceAll(k.String(), "_", "")) {
			return k.String()
		}
	}
	return ""
}

// unsure says why the times of small messages of a table are less sure than those
// that the model was fitted on; "" where they are not.
func unsure(t *nccltests.Table) string {
	switch {
	case t.Params.GPUs > 1 && t.Params.Threads*t.Params.GPUs > 1:
		return fmt.Sprintf("one thread drives %d GPUs, so the host's launches, one after the other, are part of every small time; one process a GPU is what predictions are of", t.Params.GPUs)
	case t.Params.Iters > 0 && t.Params.Iters < 10:
		return fmt.Sprintf("%d iterations are few for small messages", t.Params.Iters)
	case t.Library == "":
		return "the output does not name the release of NCCL, on which latency depends"
	}
	return ""
}

// tableQuotes are the rows of nccl-tests' text by collective and size.
func tableQuotes(name, op string, data []byte) (map[string]map[float64]finding.Quote, string) {
	if !nccltests.Match(data) {
		return nil, ""
	}
	res, err := nccltests.ReadResult(name, bytes.NewReader(data))
	if err != nil {
		return nil, ""
	}
	why := ""
	lines := strings.Split(string(data), "\n")
	out := map[string]map[float64]finding.Quote{}
	for i := range res.Tables {
		t := &res.Tables[i]
		if t.Op == "" {
			t.Op = cmp.Or(op, opInName(name))
		}
		why = cmp.Or(why, unsure(t))
		if out[t.Op] == nil {
			out[t.Op] = map[float64]finding.Quote{}
		}
		for _, r := range t.Rows {
			if r.Line > 0 && r.Line <= len(lines) {
				out[t.Op][float64(r.Size)] = finding.Quote{File: name, Line: r.Line, Text: strings.TrimSpace(lines[r.Line-1])}
			}
		}
	}
	return out, why
}
