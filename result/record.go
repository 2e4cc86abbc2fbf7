package result

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Format is the number of the written form; fields are only ever added to one. Times of the first were in microseconds.
const Format = 2

// record is a row as a file keeps it, a line of JSON. It stands by itself: files may be cut,
// sorted and joined. docs/format/result.md says what its fields mean.
type record struct {
	Format    int               `json:"busbar_result"`
	Source    Source            `json:"source"`
	Op        coll.Kind         `json:"op"`
	Redop     string            `json:"redop,omitempty"`
	Root      int               `json:"root,omitempty"`
	Size      unit.Bytes        `json:"size_bytes"`
	Dtype     string            `json:"dtype"`
	Ranks     int               `json:"ranks"`
	Nodes     int               `json:"nodes,omitempty"`
	PerNode   int               `json:"ranks_per_node,omitempty"`
	Hosts     string            `json:"hosts,omitempty"`
	Cluster   string            `json:"cluster,omitempty"`
	Algo      string            `json:"algo,omitempty"`
	Proto     string            `json:"proto,omitempty"`
	Channels  int               `json:"channels,omitempty"`
	Transport string            `json:"transport"`
	Compress  string            `json:"compress,omitempty"`
	InPlace   bool              `json:"in_place,omitempty"`
	Time      Times             `json:"time_s"`
	Runs      int               `json:"runs,omitempty"`
	Samples   []unit.Time       `json:"samples_s,omitempty"`
	Wrong     *int64            `json:"wrong,omitempty"`
	Slowest   *int              `json:"slowest_rank,omitempty"`
	Spread    unit.Time         `json:"spread_s,omitempty"`
	Margin    float64           `json:"margin,omitempty"`
	When      time.Time         `json:"when,omitzero"`
	Session   string            `json:"session,omitempty"`
	Tool      string            `json:"tool,omitempty"`
	Library   string            `json:"library,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Machine   *Machine          `json:"machine,omitempty"`
}

// Bounds of a record. They hold for files of the largest clusters and keep a reader from
// being made to take memory by a few bytes.
const (
	MaxSamples = 1000
	maxText    = 4096
	maxHosts   = 1 << 18
	maxEnv     = 256
	maxRanks   = 1 << 24
	maxMargin  = 1e12
	maxTime    = 1e6 * unit.Second // eleven days
)

// record is the row as it is written.
func (r Row) record() *record {
	s, p, t := r.Sweep, r.Point, r.Timing
	return &record{
		Format: Format, Source: s.Source, Op: s.Op, Redop: s.Redop, Root: s.Root, Size: p.Size, Dtype: s.Dtype,
		Ranks: s.Ranks, Nodes: s.Nodes, PerNode: s.PerNode, Hosts: s.Hosts, Cluster: s.Cluster,
		Algo: p.Algo, Proto: p.Proto, Channels: p.Channels, Transport: s.Transport, Compress: s.Compress, InPlace: r.InPlace,
		Time: t.Time, Runs: t.Runs, Samples: thin(t.Samples), Wrong: t.Wrong, Slowest: t.Slowest, Spread: t.Spread,
		Margin: t.Margin,
		When:   s.When, Session: s.Session, Tool: s.Tool, Library: s.Library, Env: s.Env, Machine: s.Machine,
	}
}

// sweep is the record as a sweep of one time.
func (r *record) sweep(line int) *Sweep {
	t := &Timing{
		Time: r.Time, Runs: r.Runs, Samples: r.Samples, Wrong: r.Wrong, Slowest: r.Slowest, Spread: r.Spread,
		Margin: r.Margin,
	}
	p := Point{Size: r.Size, Algo: r.Algo, Proto: r.Proto, Channels: r.Channels, Out: t, Line: line}
	if r.InPlace {
		p.Out, p.In = nil, t
	}
	return &Sweep{
		Source: r.Source, Op: r.Op, Redop: r.Redop, Root: r.Root, Dtype: r.Dtype,
		Ranks: r.Ranks, Nodes: r.Nodes, PerNode: r.PerNode, Hosts: r.Hosts, Cluster: r.Cluster, Transport: r.Transport,
		Compress: r.Compress,
		When:     r.When, Session: r.Session, Tool: r.Tool, Library: r.Library, Env: r.Env, Machine: r.Machine,
		Points: []Point{p}, Line: line,
	}
}

// check reports the first thing that no record can say.
func (r *record) check() error {
	switch {
	case r.Format < 1:
		return errors.New("busbar_result is missing; expected the number of the format, 1")
	case r.Format > Format:
		return fmt.Errorf("busbar_result is %d; this release reads up to %d", r.Format, Format)
	case r.Source != Measured && r.Source != Predicted:
		return fmt.Errorf("source is %q; expected measured or predicted", r.Source)
	case r.Op == coll.None:
		return errors.New("op is missing; expected a collective, e.g. all_reduce")
	case r.Ranks < 1 || r.Ranks > maxRanks:
		return fmt.Errorf("ranks is %d; expected 1 to %d", r.Ranks, maxRanks)
	case r.Nodes < 0 || r.PerNode < 0 || (r.Nodes == 0) != (r.PerNode == 0):
		return fmt.Errorf("nodes is %d and ranks_per_node %d; expected both or none", r.Nodes, r.PerNode)
	case r.Nodes > r.Ranks || r.PerNode > r.Ranks || r.Nodes > 0 && r.Nodes*r.PerNode != r.Ranks:
		return fmt.Errorf("%d nodes with %d ranks each are not %d ranks", r.Nodes, r.PerNode, r.Ranks)
	case r.Size < 0 || r.Size > 1<<50:
		return fmt.Errorf("size_bytes is %d; expected 0 to %d", int64(r.Size), int64(1)<<50)
	case r.Channels < 0 || r.Channels > 1<<16:
		return fmt.Errorf("channels is %d; expected up to %d", r.Channels, 1<<16)
	case r.Transport == "":
		return errors.New("transport is missing; expected tcp, shm, mem, auto, nccl or rdma")
	case r.Root < 0 || r.Root >= r.Ranks:
		return fmt.Errorf("root is %d of %d ranks", r.Root, r.Ranks)
	case r.Slowest != nil && (*r.Slowest < 0 || *r.Slowest >= r.Ranks):
		return fmt.Errorf("slowest_rank is %d of %d ranks", *r.Slowest, r.Ranks)
	case r.Wrong != nil && *r.Wrong < 0:
		return fmt.Errorf("wrong is %d; expected a count, or nothing where results were not checked", *r.Wrong)
	}
	if _, err := operation(r.Op, r.Dtype, r.Redop); err != nil {
		return err
	}
	if err := r.checkTimes(); err != nil {
		return err
	}
	return r.checkTexts()
}

func (r *record) checkTimes() error {
	if r.Time.Mean <= 0 && r.Op != coll.Barrier && r.Size > 0 && r.Ranks > 1 {
		return fmt.Errorf("time_s.mean is %g; expected a time in seconds", r.Time.Mean.Seconds())
	}
	for _, x := range []struct {
		name string
		v    unit.Time
	}{
		{"min", r.Time.Min},
		{"median", r.Time.Median},
		{"p99", r.Time.P99},
		{"mean", r.Time.Mean},
		{"spread_s", r.Spread},
	} {
		if x.v < 0 || x.v > maxTime {
			return fmt.Errorf("%s is %g; expected 0 to %g seconds", x.name, x.v.Seconds(), maxTime.Seconds())
		}
	}
	if !(r.Margin >= 0 && r.Margin <= maxMargin) {
		return fmt.Errorf("margin is %g; expected 0 to %g", r.Margin, float64(maxMargin))
	}
	if len(r.Samples) > MaxSamples || r.Runs < 0 || len(r.Samples) > r.Runs {
		return fmt.Errorf("%d samples of %d runs; expected as many as runs, and at most %d", len(r.Samples), r.Runs,
			MaxSamples)
	}
	for i, t := range r.Samples {
		if t < 0 || t > maxTime || i > 0 && t < r.Samples[i-1] {
			return fmt.Errorf("samples_s[%d] is %g; expected times in seconds from the shortest to the longest", i, t.Seconds())
		}
	}
	return nil
}

func (r *record) checkTexts() error {
	texts := []string{r.Dtype, r.Redop, r.Cluster, r.Algo, r.Proto, r.Transport, r.Compress, r.Session, r.Tool, r.Library}
	if m := r.Machine; m != nil {
		texts = append(texts, m.OS, m.Kernel, m.CPU, m.GPU)
		if m.CPUs < 0 {
			return fmt.Errorf("machine.cpus is %d", m.CPUs)
		}
	}
	if len(r.Env) > maxEnv {
		return fmt.Errorf("%d settings in env; at most %d", len(r.Env), maxEnv)
	}
	for k, v := range r.Env {
		texts = append(texts, k, v)
	}
	if len(r.Hosts) > maxHosts {
		return fmt.Errorf("hosts has %d bytes; at most %d, as a hostlist", len(r.Hosts), maxHosts)
	}
	for _, s := range append(texts, r.Hosts) {
		switch {
		case len(s) > maxText && s != r.Hosts:
			return fmt.Errorf("a text of %d bytes (%.20q…); at most %d", len(s), s, maxText)
		case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
			return fmt.Errorf("%.40q has control characters", s)
		}
	}
	return nil
}
