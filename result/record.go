package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Format is the number of the written form; fields are only ever added to one.
const Format = 1

// Source is where a record's time comes from.
type Source string

// Sources.
const (
	Measured  Source = "measured"
	Predicted Source = "predicted"
)

// NCCL is the transport of a record that NCCL itself ran, on GPUs; the others are those of
// our engine, on CPUs.
const NCCL = "nccl"

// Record is one collective of one size as it is kept in a file, a line of JSON. It stands by
// itself: files may be cut, sorted and joined.
type Record struct {
	Format int       `json:"busbar_result"`
	Source Source    `json:"source"`
	Op     coll.Kind `json:"op"`
	Redop  string    `json:"redop,omitempty"` // "" where nothing is reduced
	Root   int       `json:"root,omitempty"`
	// Size is nccl-tests' size column.
	Size  unit.Bytes `json:"size_bytes"`
	Dtype string     `json:"dtype"`
	Ranks int        `json:"ranks"`
	// Nodes and PerNode are the layout, 0 where it is unknown or uneven.
	Nodes   int    `json:"nodes,omitempty"`
	PerNode int    `json:"ranks_per_node,omitempty"`
	Hosts   string `json:"hosts,omitempty"` // as a hostlist: node[01-04]
	Cluster string `json:"cluster,omitempty"`

	Algo      string `json:"algo,omitempty"` // "auto" where the library chose and did not say
	Proto     string `json:"proto,omitempty"`
	Channels  int    `json:"channels,omitempty"`
	Transport string `json:"transport"` // tcp, shm, mem, auto, or nccl
	Compress  string `json:"compress,omitempty"`
	InPlace   bool   `json:"in_place,omitempty"`

	// Time is per run, of the slowest rank.
	Time Times `json:"time_us"`
	// Runs is how many there were, 0 unknown. Samples are their times in µs, sorted; of
	// more than MaxSamples, as many that lie evenly among them.
	Runs    int       `json:"runs,omitempty"`
	Samples []float64 `json:"samples_us,omitempty"`
	// Wrong counts wrong elements, nil where nobody looked.
	Wrong *int64 `json:"wrong,omitempty"`
	// Slowest is the rank whose runs took longest, nil unknown; Spread its distance to the
	// fastest, per run.
	Slowest *int    `json:"slowest_rank,omitempty"`
	Spread  float64 `json:"spread_us,omitempty"`
	// Margin is that of a prediction, as a factor.
	Margin float64 `json:"margin,omitempty"`

	When    time.Time         `json:"when,omitzero"`
	Session string            `json:"session,omitempty"` // rows of one run of a tool share it
	Tool    string            `json:"tool,omitempty"`    // busbar devel, nccl-tests 2.17.1
	Library string            `json:"library,omitempty"` // the release of NCCL: 2.28.9
	Env     map[string]string `json:"env,omitempty"`     // settings that were given
	Machine *Machine          `json:"machine,omitempty"`

	Line int `json:"-"` // of the file that it was read from
}

// Times summarise the runs, in µs. What is unknown is 0.
type Times struct {
	Min    float64 `json:"min,omitempty"`
	Median float64 `json:"median,omitempty"`
	P99    float64 `json:"p99,omitempty"`
	Mean   float64 `json:"mean"`
}

// Machine is what ran, as far as rank 0 can tell.
type Machine struct {
	OS     string `json:"os,omitempty"` // linux/amd64
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	CPUs   int    `json:"cpus,omitempty"`
	GPU    string `json:"gpu,omitempty"`
}

// Bounds of a record. They hold for files of the largest clusters and keep a reader from
// being made to take memory by a few bytes.
const (
	MaxSamples = 1000
	maxText    = 4096
	maxHosts   = 1 << 18
	maxEnv     = 256
	maxRanks   = 1 << 24
	maxMicros  = 1e12 // eleven days
)

// Sample fills Runs, Samples and Time from the times of all runs in µs, which it sorts.
func (r *Record) Sample(micros []float64) {
	slices.Sort(micros)
	r.Runs, r.Samples, r.Time = len(micros), nil, Times{}
	if len(micros) == 0 {
		return
	}
	var sum float64
	for _, t := range micros {
		sum += t
	}
	at := func(q float64) float64 { return nanos(micros[min(int(q*float64(len(micros))), len(micros)-1)]) }
	r.Time = Times{Min: at(0), Median: at(0.5), P99: at(0.99), Mean: nanos(sum / float64(len(micros)))}
	keep := min(len(micros), MaxSamples)
	for i := range keep {
		r.Samples = append(r.Samples, nanos(micros[(2*i+1)*len(micros)/(2*keep)]))
	}
}

// nanos rounds µs to a nanosecond, which is what clocks tell.
func nanos(us float64) float64 { return math.Round(us*1e3) / 1e3 }

// Middle is the median of the runs in µs, or the mean where no more is known.
func (r *Record) Middle() float64 {
	if r.Time.Median > 0 {
		return r.Time.Median
	}
	return r.Time.Mean
}

// Operation is the call.
func (r *Record) Operation() (coll.Op, error) {
	t, err := coll.ParseDtype(r.Dtype)
	if err != nil {
		return coll.Op{}, err
	}
	op := coll.Op{Kind: r.Op, Bytes: r.Size, Type: t, Root: r.Root}
	if r.Redop != "" {
		op.Reduce, err = coll.ParseRedop(r.Redop)
	}
	return op, err
}

// BusBW is nccl-tests' busbw of the mean time.
func (r *Record) BusBW() unit.Rate {
	op, err := r.Operation()
	if err != nil {
		return 0
	}
	return op.BusBW(r.Ranks, unit.Time(math.Round(r.Time.Mean*1e6)))
}

// OnGPUs tells whether NCCL ran it.
func (r *Record) OnGPUs() bool { return r.Transport == NCCL }

// Check reports the first thing that no record can say.
func (r *Record) Check() error {
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
		return errors.New("transport is missing; expected tcp, shm, mem, auto or nccl")
	case r.Root < 0 || r.Root >= r.Ranks:
		return fmt.Errorf("root is %d of %d ranks", r.Root, r.Ranks)
	case r.Slowest != nil && (*r.Slowest < 0 || *r.Slowest >= r.Ranks):
		return fmt.Errorf("slowest_rank is %d of %d ranks", *r.Slowest, r.Ranks)
	case r.Wrong != nil && *r.Wrong < 0:
		return fmt.Errorf("wrong is %d; expected a count, or nothing where nobody looked", *r.Wrong)
	}
	if _, err := r.Operation(); err != nil {
		return err
	}
	if err := r.checkTimes(); err != nil {
		return err
	}
	return r.checkTexts()
}

func (r *Record) checkTimes() error {
	if !(r.Time.Mean > 0) && r.Op != coll.Barrier && r.Size > 0 && r.Ranks > 1 {
		return fmt.Errorf("time_us.mean is %g; expected a time in µs", r.Time.Mean)
	}
	for _, x := range []struct {
		name string
		v    float64
	}{{"min", r.Time.Min}, {"median", r.Time.Median}, {"p99", r.Time.P99}, {"mean", r.Time.Mean}, {"spread_us", r.Spread}, {"margin", r.Margin}} {
		if !(x.v >= 0 && x.v <= maxMicros) {
			return fmt.Errorf("%s is %g; expected 0 to %g", x.name, x.v, float64(maxMicros))
		}
	}
	if len(r.Samples) > MaxSamples || r.Runs < 0 || len(r.Samples) > r.Runs {
		return fmt.Errorf("%d samples of %d runs; expected as many as runs, and at most %d", len(r.Samples), r.Runs, MaxSamples)
	}
	for i, t := range r.Samples {
		if !(t >= 0 && t <= maxMicros) || i > 0 && t < r.Samples[i-1] {
			return fmt.Errorf("samples_us[%d] is %g; expected times in µs from the shortest to the longest", i, t)
		}
	}
	return nil
}

func (r *Record) checkTexts() error {
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
