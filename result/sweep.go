package result

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Source is where the times of a sweep come from.
type Source string

// Sources.
const (
	Measured  Source = "measured"
	Predicted Source = "predicted"
)

// NCCL is the transport of a sweep that NCCL itself ran, on GPUs; the others are those of
// our engine, on CPUs.
const NCCL = "nccl"

// RDMA is the transport of what perftest measured between two ports.
const RDMA = "rdma"

// Sweep is one collective over sizes, measured by one tool on the same ranks with the same
// settings. What nobody states is empty, never guessed.
type Sweep struct {
	Source Source
	Op     coll.Kind // coll.None where nothing says it
	Redop  string    // "" where nothing is reduced
	Root   int
	Dtype  string

	Ranks int
	// Nodes and PerNode are the layout, 0 where it is unknown or uneven.
	Nodes, PerNode int
	Hosts          string // as a hostlist: node[01-04]
	Cluster        string // what -c named

	Transport string // tcp, shm, mem, auto, or nccl
	Compress  string

	When    time.Time
	Session string            // what one run of a tool measured shares it
	Tool    string            // busbar devel, nccl-tests 2.17.1
	Library string            // the release of NCCL: 2.28.9
	Env     map[string]string // settings that were given
	Machine *Machine          // nil unknown

	Points []Point

	// What follows is about where the sweep was read; no file of results holds it.

	ID    string // as messages call it: the publication's id, or FILE:LINE
	File  string
	Line  int
	Class string // of hardware, in the source's words
	// Devices are the GPUs of every node that took part, by their numbers; nil where nobody says that they are not the
	// first.
	Devices []int
	// OpFrom and LayoutFrom are who says the collective and the layout: "its header", "-l".
	OpFrom, LayoutFrom string
	// Published is what a publication says about its own figures, nil for all others.
	Published *Published
	// Problem says why the source cannot be used although it was read: an unknown collective, say.
	Problem string
}

// Point is one size of a sweep.
type Point struct {
	Size     unit.Bytes // nccl-tests' size column
	Algo     string     // "auto" where the library chose and did not say
	Proto    string
	Channels int
	// Out is out of place and In in place; nil where it was not measured.
	Out, In *Timing

	Line      int        // in the file that it was read from
	WireBytes unit.Bytes // what all ranks together send in a run, without headers; 0 unknown
}

// Timing is how long the runs of one size took, of the slowest rank.
type Timing struct {
	Time Times
	// Runs is how many there were, 0 unknown. Samples are their times, sorted. A file keeps at
	// most MaxSamples of them, which lie evenly among all.
	Runs    int
	Samples []unit.Time
	Wrong   *int64 // elements; nil where results were not checked
	// Slowest is the rank whose runs took longest, nil unknown; Spread its distance to the
	// fastest, per run.
	Slowest *int
	Spread  unit.Time
	Margin  float64 // of a prediction, as a factor

	// PrintedAlg and PrintedBus are the bandwidths as the tool printed them, rounded; 0 for none.
	PrintedAlg, PrintedBus unit.Rate
}

// Times summarise the runs. What is unknown is 0.
type Times struct {
	Min    unit.Time `json:"min,omitempty"`
	Median unit.Time `json:"median,omitempty"`
	P99    unit.Time `json:"p99,omitempty"`
	Mean   unit.Time `json:"mean"`
}

// Machine is what ran, as far as rank 0 or the source can tell.
type Machine struct {
	OS     string `json:"os,omitempty"` // linux/amd64
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	CPUs   int    `json:"cpus,omitempty"`
	GPU    string `json:"gpu,omitempty"`

	// What publications say about a node: how its GPUs are joined, its NICs (nil: not stated),
	// the rate of a port in Gb/s, the network.
	Joined string   `json:"-"`
	NICs   *float64 `json:"-"`
	Gbps   *float64 `json:"-"`
	Fabric string   `json:"-"`
}

// Published is what a publication says about its own figures.
type Published struct {
	Grade     string // A to C; C is partly unknown or noisy
	Anomalous bool   // slow because something was wrong
	Surplus   int    // times of which nothing says the size
	Rounded   int    // points whose bandwidth has too few digits to say a time
	Fault     string // a value that cannot be, or too few of them: the line is not what its writer meant
	Launch    string // how the program was started, in the source's words
	Year      int    // when it was measured, 0 unknown
	Notes     string
}

// Time is a timing of which only the mean is known, in µs.
func Time(micros float64) *Timing { return &Timing{Time: Times{Mean: unit.Micros(micros)}} }

// Sample fills Runs, Samples and Time from the times of all runs, which it sorts and keeps, to the nanosecond.
func (t *Timing) Sample(list []unit.Time) {
	slices.Sort(list)
	t.Runs, t.Samples, t.Time = len(list), list, Times{}
	if len(list) == 0 {
		return
	}
	var sum float64
	for i, v := range list {
		sum += float64(v)
		list[i] = nanos(float64(v))
	}
	t.Time = Times{
		Min: t.Quantile(0), Median: t.Quantile(0.5), P99: t.Quantile(0.99), Mean: nanos(sum / float64(len(list))),
	}
}

// Quantile is the time that a share of the samples did not exceed, one of them; 0 without samples.
func (t *Timing) Quantile(q float64) unit.Time { return stats.Nearest(t.Samples, q) }

// nanos is a time rounded to a nanosecond, which is what clocks tell.
func nanos(took float64) unit.Time {
	return unit.Time(math.Round(took/float64(unit.Nanosecond))) * unit.Nanosecond
}

// thin is at most MaxSamples of a sorted list, which lie evenly in it.
func thin(list []unit.Time) []unit.Time {
	if len(list) <= MaxSamples {
		return list
	}
	out := make([]unit.Time, MaxSamples)
	for i := range out {
		out[i] = list[(2*i+1)*len(list)/(2*MaxSamples)]
	}
	return out
}

// Middle is the median of the runs, or the mean where no more is known.
func (t *Timing) Middle() unit.Time {
	if t.Time.Median > 0 {
		return t.Time.Median
	}
	return t.Time.Mean
}

// OnGPUs tells whether NCCL ran it.
func (s *Sweep) OnGPUs() bool { return s.Transport == NCCL }

// GPU is the model of the GPUs, "" unknown.
func (s *Sweep) GPU() string {
	if s.Machine == nil {
		return ""
	}
	return s.Machine.GPU
}

// Operation is the call of one size.
func (s *Sweep) Operation(size unit.Bytes) (coll.Op, error) {
	op, err := operation(s.Op, s.Dtype, s.Redop)
	op.Bytes, op.Root = size, s.Root
	return op, err
}

func operation(kind coll.Kind, dtype, redop string) (coll.Op, error) {
	t, err := coll.ParseDtype(dtype)
	if err != nil {
		return coll.Op{}, err
	}
	op := coll.Op{Kind: kind, Type: t}
	if redop != "" {
		op.Reduce, err = coll.ParseRedop(redop)
	}
	return op, err
}

// Check reports the first thing that no sweep can say.
func (s *Sweep) Check() error {
	if s.Problem != "" {
		return errors.New(s.Problem)
	}
	for _, r := range s.Rows() {
		if err := r.record().check(); err != nil {
			return err
		}
	}
	return nil
}

// Row is one time of a sweep: a size, out of place or in place.
type Row struct {
	*Sweep
	*Point
	*Timing
	InPlace bool
}

// Rows are the times of a sweep, size by size, out of place first.
func (s *Sweep) Rows() []Row {
	list := make([]Row, 0, 2*len(s.Points))
	for i := range s.Points {
		p := &s.Points[i]
		for form, t := range []*Timing{p.Out, p.In} {
			if t != nil {
				list = append(list, Row{s, p, t, form == 1})
			}
		}
	}
	return list
}

// AlgBW is nccl-tests' algbw of the mean time, 0 where the collective or its type is unknown.
func (r Row) AlgBW() unit.Rate {
	op, err := r.Operation(r.Size)
	if err != nil {
		return 0
	}
	return op.AlgBW(r.Ranks, r.Time.Mean)
}

// BusBW is nccl-tests' busbw of the mean time, 0 where the collective or its type is unknown.
func (r Row) BusBW() unit.Rate {
	op, err := r.Operation(r.Size)
	if err != nil {
		return 0
	}
	return op.BusBW(r.Ranks, r.Time.Mean)
}

// Sweeps are several of them. As JSON they are a list of the rows of a file of results.
type Sweeps []*Sweep

// Rows are those of all sweeps, in their order.
func (l Sweeps) Rows() []Row {
	var list []Row
	for _, s := range l {
		list = append(list, s.Rows()...)
	}
	return list
}

// Append adds sweeps at the end. Points of a sweep that goes on where the last one ended are
// added to it, so that sweeps can be handed over point by point.
func (l *Sweeps) Append(more ...*Sweep) {
	for _, s := range more {
		if n := len(*l); n > 0 && (*l)[n-1].continues(s) {
			(*l)[n-1].add(s.Points)
			continue
		}
		*l = append(*l, s)
	}
}

// continues reports whether a sweep says the same as another about all but its points.
func (s *Sweep) continues(other *Sweep) bool {
	if s.Session != other.Session || s.Op != other.Op || s.Ranks != other.Ranks || s.Dtype != other.Dtype {
		return false
	}
	a, b := *s, *other
	a.Points, b.Points, a.Line, b.Line = nil, nil, 0, 0
	return reflect.DeepEqual(&a, &b)
}

// add adds points. One in place belongs to the last one if that is the same out of place.
func (s *Sweep) add(more []Point) {
	for _, p := range more {
		if n := len(s.Points); n > 0 && p.Out == nil {
			last := &s.Points[n-1]
			if last.In == nil && last.Size == p.Size && last.Algo == p.Algo && last.Proto == p.Proto &&
				last.Channels == p.Channels {
				last.In = p.In
				continue
			}
		}
		s.Points = append(s.Points, p)
	}
}

// Describe fills in who measured a sweep, where and when, as another one says it.
func (s *Sweep) Describe(like *Sweep) {
	s.Source, s.Transport, s.Nodes, s.PerNode, s.Hosts, s.Cluster = like.Source, like.Transport, like.Nodes, like.PerNode,
		like.Hosts, like.Cluster
	s.When, s.Session, s.Tool, s.Library, s.Env, s.Machine = like.When, like.Session, like.Tool, like.Library, like.Env,
		like.Machine
}

// Evenly is the layout of ranks on hosts, given how many each has; zeros where hosts have
// different numbers of them, or not all ranks are known.
func Evenly(per map[string]int, ranks int) (nodes, each int) {
	for _, n := range per {
		if n*len(per) != ranks {
			return 0, 0
		}
		each = n
	}
	return len(per), each
}

// Layout is the layout in words: 2x8, or "unknown".
func (s *Sweep) Layout() string {
	if s.Nodes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%dx%d", s.Nodes, s.PerNode)
}
