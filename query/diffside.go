package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/traffic"
	"busbar.dev/input"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/result/diff"
	"busbar.dev/result/trace"
)

// diffSide is what one side tells.
type diffSide struct {
	kind    string // in words
	sweeps  result.Sweeps
	untimed int
	parts   []diff.Part // of a step
	facts   []diff.Fact
	odd     []string // worth a word where both sides have it
}

func (s *diffSide) say(what, value string) { s.figure(what, value, 0) }

func (s *diffSide) figure(what, value string, figure float64) {
	if value != "" && !slices.ContainsFunc(s.facts, func(f diff.Fact) bool { return f.What == what }) {
		s.facts = append(s.facts, diff.Fact{What: what, Value: value, Figure: figure})
	}
}

func (s *diffSide) count(what string, n int) {
	if n > 0 {
		s.figure(what, fmt.Sprint(n), float64(n))
	}
}

// diffReader reads sides.
type diffReader struct {
	env   *Env
	ctx   context.Context
	racks *cluster.Cluster // nil without -c
}

// side recognises what one side is: a table, a log, both in one, traces, a prediction or a map.
func (r *diffReader) side(name string) (*diffSide, error) {
	s := &diffSide{}
	info, err := fs.Stat(r.env.files(), name)
	if err == nil && info.IsDir() {
		return s, r.folder(s, name)
	}
	data, err := r.env.readWhole(name, measuredPoints)
	if err != nil {
		if name != "-" && info == nil {
			if cl, bad := r.env.load(r.ctx, []string{name}); bad == nil { // a preset
				s.mapped(cl)
				return s, nil
			}
		}
		return nil, err
	}
	if len(input.Find(data[:min(len(data), 1<<16)], input.Trace)) > 0 {
		return s, r.traced(s, name)
	}
	if p := new(prediction); json.Unmarshal(data, p) == nil && p.Kind == "predict" {
		return s, s.predicted(inputName(name), p)
	}
	table := len(input.Find(data, input.Table)) > 0
	if nccllog.Match(data) {
		log := nccllog.NewReader()
		if err := log.Add(inputName(name), bytes.NewReader(data)); err != nil {
			return nil, err
		}
		s.kind = "a log of NCCL"
		s.logged(log.Log(), inputName(name), data)
	}
	if table || s.kind == "" && len(input.Find(data, input.Part)) == 0 {
		s.kind = "a table of measured collectives"
		if s.sweeps, s.untimed, err = results(name, data); err != nil {
			return nil, err
		}
		r.measured(s)
	}
	if s.kind == "" {
		cl, err := r.env.load(r.ctx, []string{name})
		if err != nil {
			return nil, err
		}
		s.mapped(cl)
	}
	return s, nil
}

// folder is logs of the ranks of a job, their traces, or the files of a site.
func (r *diffReader) folder(s *diffSide, name string) error {
	err := r.traced(s, name)
	if err == nil || r.ctx.Err() != nil {
		return err
	}
	if log, err := r.env.ncclLogs(r.ctx, []string{name}); err == nil {
		s.kind = "logs of NCCL"
		s.logged(log, "", nil)
		return nil
	}
	cl, err := r.env.load(r.ctx, []string{name})
	if err != nil {
		return fmt.Errorf("%s: neither traces, logs of NCCL nor a map in this folder: %w", name, err)
	}
	s.mapped(cl)
	return nil
}

// measured takes what the sweeps of a table say of how they were made.
func (r *diffReader) measured(s *diffSide) {
	values := map[string][]string{}
	say := func(what, value string) {
		if value != "" && !slices.Contains(values[what], value) {
			values[what] = append(values[what], value)
		}
	}
	hosts, nodes, ranks := map[string]bool{}, 0, 0
	for _, x := range s.sweeps {
		say(diff.GPU, x.GPU())
		say(diff.Release, x.Library)
		say(diff.Tool, x.Tool)
		say(diff.Transport, x.Transport)
		say(diff.Hosts, x.Hosts)
		say(diff.Compression, strings.TrimPrefix(x.Compress, "none"))
		if x.Machine != nil {
			say(diff.CPU, x.Machine.CPU)
		}
		if x.Nodes > 0 {
			say(diff.Layout, x.Layout())
		}
		for name, value := range x.Env {
			say(diff.Setting+name, value)
		}
		for i := range x.Points {
			say(diff.Algorithm, strings.TrimSpace(x.Points[i].Algo+" "+x.Points[i].Proto))
		}
		nodes, ranks = max(nodes, x.Nodes), max(ranks, x.Ranks)
		if names, err := cluster.ParseHosts(x.Hosts); err == nil {
			for _, h := range names {
				hosts[h] = true
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(values)) {
		s.say(what, strings.Join(values[what], ", "))
	}
	s.count(diff.Nodes, nodes)
	s.count(diff.Ranks, ranks)
	if n := r.leaves(hosts); n > 0 {
		s.count(diff.Racks, n)
		s.odd = append(s.odd, "the hosts are in "+words.Plural(n, "rack"))
	}
}

// leaves is how many parts of the network hosts are in that only uplinks join; 0 where that is not known.
func (r *diffReader) leaves(hosts map[string]bool) int {
	if r.racks == nil || len(hosts) == 0 {
		return 0
	}
	at := map[int][]int{} // leaves of each host
	r.racks.EachHostLink(func(_ *cluster.NetLink, sw, h int) { at[h] = append(at[h], sw) })
	seen := map[int]bool{}
	parts := 0
	for _, h := range slices.Sorted(maps.Keys(hosts)) {
		i := r.racks.HostIndex(h)
		if i < 0 || len(at[i]) == 0 {
			return 0
		}
		if !slices.ContainsFunc(at[i], func(sw int) bool { return seen[sw] }) {
			parts++
		}
		for _, sw := range at[i] {
			seen[sw] = true
		}
	}
	return parts
}

// logged takes what NCCL set up: its release and settings, and how the bytes of its largest communicator go.
func (s *diffSide) logged(l *nccllog.Log, name string, data []byte) {
	if len(l.Versions) > 0 {
		s.say(diff.Release, l.Versions[0].Text)
	}
	_ = nccllog.Scan(name, bytes.NewReader(data), func(line *nccllog.Line) { // of memory: there is no error
		for i := range line.Records {
			if set, ok := line.Records[i].Message.(*nccllog.Setting); ok {
				s.say(diff.Setting+strings.Clone(set.Name), strings.Clone(set.Value))
			}
		}
	})
	run, err := traffic.From(l, "")
	if err != nil {
		return // what was set up is not in the log
	}
	s.count(diff.Ranks, run.NRanks)
	s.count(diff.Nodes, len(run.Hosts))
	s.count(diff.Channels, len(run.Channels))
	s.hops(run)
	used, sharing, load, rate := 0, 0, 0.0, 0.0
	for i := range run.NICs {
		n := &run.NICs[i]
		if n.Hops == 0 {
			continue
		}
		used, sharing = used+1, max(sharing, len(n.Ranks))
		load, rate = max(load, n.Load()), max(rate, n.Rate.GBps())
	}
	s.count(diff.NICs, used)
	s.count(diff.Sharing, sharing)
	if load > 0 {
		s.figure(diff.NICLoad, fmt.Sprintf("%.2f bytes a byte", load), load)
	}
	if rate > 0 {
		s.figure(diff.NICRate, fmt.Sprintf("%.4g GB/s", rate), rate)
	}
	for _, o := range run.Odd {
		if o.ID == "gdr-none" || o.ID == "sockets" || strings.HasPrefix(o.ID, "pair-") || o.ID == "ring-crosses" {
			s.odd = append(s.odd, o.Text)
		}
	}
}

// hops takes the transports of a communicator.
func (s *diffSide) hops(run *traffic.Run) {
	direct, staged := 0, 0
	within := ""
	order := []string{"P2P", "SHM", "NET"} // the slowest that is used decides
	for i := range run.Hops {
		h := &run.Hops[i]
		from, to := run.HostOf[h.From], run.HostOf[h.To]
		switch {
		case from >= 0 && from == to:
			if slices.Index(order, h.Transport) > slices.Index(order, within) {
				within = h.Transport
			}
		case h.Transport != "NET":
		case h.GDR:
			direct++
		default:
			staged++
		}
	}
	s.say(diff.WithinNode, within)
	if direct+staged == 0 {
		return
	}
	way := "RDMA"
	for i := range run.NICs {
		if n := &run.NICs[i]; n.Net == "Socket" && n.Hops > 0 {
			way = "TCP sockets"
		}
	}
	s.say(diff.BetweenNodes, way)
	switch {
	case staged == 0:
		s.say(diff.GPUDirect, "used")
	case direct == 0:
		s.say(diff.GPUDirect, "not used")
	default:
		s.say(diff.GPUDirect, "used in part")
	}
}

// mapped takes the nodes of a cluster.
func (s *diffSide) mapped(cl *cluster.Cluster) {
	s.kind = "a map"
	s.count(diff.Nodes, len(cl.Hosts))
	if len(cl.Types) == 0 {
		return
	}
	t := cl.Types[0]
	s.say("GPUs of a node", fmt.Sprint(t.Count(cluster.GPU)))
	s.count(diff.NICs, t.Count(cluster.NIC))
	for i := range t.Devices {
		switch d := &t.Devices[i]; d.Kind {
		case cluster.GPU:
			s.say(diff.GPU, d.Model.Value)
		case cluster.NIC:
			s.say("NIC", d.Model.Value)
		}
	}
	var gpus []int
	m := t.Matrix()
	for i, name := range m.Names {
		if d := t.ByName(name); d >= 0 && t.Devices[d].Kind == cluster.GPU {
			gpus = append(gpus, i)
		}
	}
	var far, toNIC cluster.Class
	for i, a := range gpus {
		for _, b := range gpus[:i] {
			c, _ := cluster.ParseClass(m.Class[a][b])
			far = farther(far, c)
		}
	}
	for _, n := range t.Nearest() {
		toNIC = farther(toNIC, n.Class)
	}
	s.path(diff.PathOfGPUs, far)
	s.path(diff.PathToNIC, toNIC)
}

// farther is the worse of two paths, as far as they are known.
func farther(a, b cluster.Class) cluster.Class {
	if a.Type == cluster.Apart || b.Type != cluster.Apart && a.Nearer(b) {
		return b
	}
	return a
}

// path takes how far two devices are from each other, in the order of classes.
func (s *diffSide) path(what string, c cluster.Class) {
	if c.Type != cluster.Apart {
		s.figure(what, c.String(), float64(c.Type)-float64(c.Links)/1024) // of more links the path is nearer
	}
}

// traced takes where the time of traced steps went, of the mean rank.
func (r *diffReader) traced(s *diffSide, name string) error {
	list, err := r.env.traces(r.ctx, name)
	if err != nil {
		return err
	}
	s.kind = "a trace"
	trace.Align(list)
	for _, t := range list {
		x, _ := t.Summarize()
		s.parts = diff.AddParts(s.parts, x, float64(len(list)))
		s.say(diff.GPU, t.GPU)
		s.say(diff.Release, t.NCCL)
		s.say(diff.Tool, t.Tool)
		s.count(diff.Ranks, t.World)
	}
	return nil
}

// prediction is a document of predict.
type prediction struct {
	Kind    string        `json:"kind"`
	Cluster string        `json:"cluster"`
	Op      coll.Kind     `json:"op"`
	NCCL    string        `json:"nccl"`
	Rows    []predict.Row `json:"rows"`
}

// predicted takes the rows of predict --json: of each size the one that NCCL chooses.
func (s *diffSide) predicted(name string, p *prediction) error {
	limits := map[string]bool{}
	for i := range p.Rows {
		r := &p.Rows[i]
		if !r.Chosen {
			continue
		}
		x := &result.Sweep{Source: result.Predicted, Op: p.Op, Dtype: r.Dtype, Ranks: r.Ranks, Library: p.NCCL}
		_, _ = fmt.Sscanf(r.Layout, "%dx%d", &x.Nodes, &x.PerNode) // other layouts stay unknown
		x.Points = []result.Point{{Size: r.Size, Algo: r.Algo, Proto: r.Proto, Channels: r.Channels, Out: &result.Timing{
			Time: result.Times{Mean: r.Time},
		}}}
		s.sweeps = append(s.sweeps, x)
		if r.Limit.Text != "" {
			limits[r.Limit.Text] = true
		}
	}
	if len(s.sweeps) == 0 {
		return failure.In("path", errors.New(name+": no row that NCCL would choose; expected predict --json"))
	}
	(&diffReader{}).measured(s)
	s.say("cluster", p.Cluster)
	s.say("bottleneck", strings.Join(slices.Sorted(maps.Keys(limits)), "; "))
	s.kind = "a prediction of " + words.Plural(len(s.sweeps), "size")
	return nil
}
