package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
)

// Sched asks for the program of a collective, every op of every rank and lane, or for the proof that it is right.
type Sched struct {
	Op       Op     `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, … (default all_reduce)"`
	Algo     string `default:"ring" help:"Algorithm (see --list) (default ring)."`
	Ranks    *int   `short:"n" name:"ranks" default:"8" help:"Number of ranks (default 8)."`
	Root     int    `help:"Root rank of broadcast, reduce, gather, scatter."`
	Channels *int   `default:"1" help:"Number of channels (default 1)."`
	Pieces   *int   `default:"4" help:"Chunks per channel in a chain or tree (default 4)."`
	Groups   string `placeholder:"SIZE|LIST" help:"Groups of nearby ranks: 4 is groups of four, 0-3/4-7 names them."`
	Inner    string `placeholder:"ALGO" help:"hierarchical, inside a group: ring, direct, nvls."`
	Outer    string `placeholder:"ALGO" help:"hierarchical, across groups: ring, tree, halving_doubling, rabenseifner, collnet."`
	Check    bool   `help:"Verify the schedule without printing it; exit 1 when it is wrong."`
}

// maxProven bounds the ops of a proof, which takes a minute for so many.
const maxProven = 1 << 23

// Run builds a schedule, and proves it where that is asked for.
func (q Sched) Run(_ context.Context, env Env) (doc *SchedDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	s, err := q.build()
	if err != nil {
		return nil, err
	}
	d := &SchedDoc{Program: s}
	if q.Check {
		err = d.prove(&env)
	}
	return d, err
}

// prove proves a built schedule.
func (d *SchedDoc) prove(env *Env) error {
	if d.Program.MoreOps(maxProven) {
		return failure.Cannot(fmt.Errorf("more than %d ops take too long to prove; check fewer ranks, channels or pieces: "+
			"the programs are alike", maxProven))
	}
	done := env.working("proving")
	d.Fault = d.Program.Check()
	done()
	var fault *schedule.Fault
	if errors.As(d.Fault, &fault) && fault.Class == schedule.TooBig { // not tried, which says nothing about the schedule
		return failure.Cannot(d.Fault)
	}
	d.Schedule, d.Check = schedHead(d.Program), schedCheck(d.Fault)
	return nil
}

// build makes the schedule that the question describes.
func (q *Sched) build() (*schedule.Schedule, error) {
	kind, err := q.Op.kind()
	if err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	b, err := schedule.Find(q.Algo)
	if err != nil {
		return nil, fmt.Errorf("--algo: %w", err)
	}
	switch { // 0 would be the builder's own number
	case *q.Channels < 1:
		return nil, fmt.Errorf("--channels %d; expected at least 1", *q.Channels)
	case *q.Pieces < 1:
		return nil, fmt.Errorf("--pieces %d; expected at least 1", *q.Pieces)
	}
	p := schedule.Params{
		Ranks: *q.Ranks, Root: q.Root, Channels: *q.Channels, Pieces: *q.Pieces, Inner: q.Inner, Outer: q.Outer,
	}
	if q.Groups != "" {
		if p.Groups, err = parseGroups(q.Groups, *q.Ranks); err != nil {
			return nil, fmt.Errorf("--groups %s: %w", q.Groups, err)
		}
	} else if b.Needs == "groups" {
		return nil, fmt.Errorf("%s needs --groups: 4 for groups of four ranks, 0-3/4-7 to name them", b.Name)
	}
	return b.Build(kind, p)
}

// parseGroups reads 4, or 0-3/4-7, or 0,2/1,3.
func parseGroups(text string, ranks int) ([][]int, error) {
	if size, err := strconv.Atoi(text); err == nil {
		return equalGroups(size, ranks)
	}
	var groups [][]int
	for _, part := range strings.Split(text, "/") {
		var g []int
		for _, span := range strings.Split(part, ",") {
			first, last, ok := strings.Cut(span, "-")
			if !ok {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from < 0 || to < from || to >= ranks {
				return nil, fmt.Errorf("%q; expected ranks from 0 to %d, as 0-3/4-7", span, ranks-1)
			}
			for r := from; r <= to; r++ {
				g = append(g, r)
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func equalGroups(size, ranks int) ([][]int, error) {
	const most = 1 << 24
	switch {
	case ranks < 1 || ranks > most:
		return nil, fmt.Errorf("%d ranks to put into groups; 1 to %d are possible", ranks, most)
	case size < 1 || size > ranks:
		return nil, fmt.Errorf("groups of %d ranks; expected 1 to %d, as many as there are", size, ranks)
	case ranks%size != 0:
		return nil, fmt.Errorf("%d ranks are not a whole number of groups of %d; name uneven groups: 0-%d/%d-%d", ranks, size,
			size-1, size, ranks-1)
	}
	groups := make([][]int, ranks/size)
	for r := range ranks {
		groups[r/size] = append(groups[r/size], r)
	}
	return groups, nil
}

// SchedDoc is the answer to Sched: a schedule with its programs, or the outcome of a proof.
type SchedDoc struct {
	Schedule *SchedHead     `json:"schedule,omitempty"`
	Check    *SchedCheck    `json:"check,omitempty"`
	Programs []SchedProgram `json:"programs,omitempty"` // AddPrograms fills them

	Program *schedule.Schedule `json:"-"`
	Fault   error              `json:"-"` // why it is not proven
	Noted
}

// SchedHead is a schedule without its ops.
type SchedHead struct {
	Name     string    `json:"name"`
	Op       coll.Kind `json:"op"`
	Ranks    int       `json:"ranks"`
	Root     int       `json:"root"`
	Lanes    int       `json:"lanes"`
	Channels int       `json:"channels"`
	Depth    int       `json:"depth"` // messages that a lane may hold unread
	Chunks   int       `json:"chunks"`
	Scratch  int       `json:"scratch_chunks"`
	Switches int       `json:"switches"` // that compute
	Rounds   int       `json:"rounds"`   // messages one after the other on the longest chain
}

// SchedCheck is the outcome of a proof.
type SchedCheck struct {
	Proven bool        `json:"proven"`
	Fault  *SchedFault `json:"fault,omitempty"`
}

// SchedFault is what is wrong with a schedule, and where.
type SchedFault struct {
	Class string `json:"class,omitempty"`
	Rank  *int   `json:"rank,omitempty"`
	Lane  *int   `json:"lane,omitempty"`
	Op    *int   `json:"op,omitempty"`
	Text  string `json:"text"`
}

// SchedProgram is what one lane of one rank does.
type SchedProgram struct {
	Rank int       `json:"rank"`
	Lane int       `json:"lane"`
	Ops  []SchedOp `json:"ops"`
}

// SchedOp is an op; what has no meaning for its verb is left out.
type SchedOp struct {
	Verb  string     `json:"verb"`
	Buf   string     `json:"buf,omitempty"`
	From  int32      `json:"from"`
	To    int32      `json:"to"`
	Peer  *int32     `json:"peer,omitempty"`
	Dst   string     `json:"dst,omitempty"`
	At    *int32     `json:"at,omitempty"`
	Class int32      `json:"class,omitempty"`
	After *SchedWait `json:"after,omitempty"`
}

// SchedWait is the op of another lane that an op waits for.
type SchedWait struct {
	Lane int32 `json:"lane"`
	Op   int32 `json:"op"`
}

// Wrong reports a schedule that is not proven.
func (d *SchedDoc) Wrong() bool { return d.Check != nil && !d.Check.Proven }

// MaxSchedText bounds the ops of a schedule's text, which nobody reads beyond some gigabytes; maxPrograms those of a
// document, which is made in memory.
const (
	MaxSchedText = 1 << 26
	maxPrograms  = 1 << 20
)

// AddPrograms fills in the ops of all ranks, where the document is not about a proof. Texts need only Program.
func (d *SchedDoc) AddPrograms() error {
	s := d.Program
	if d.Check != nil || d.Programs != nil {
		return nil
	}
	if s.MoreOps(maxPrograms) {
		return failure.Cannot(fmt.Errorf("more than %d ops; ask for fewer ranks, or -o text, which takes %d", maxPrograms,
			MaxSchedText))
	}
	for r := range s.Nodes() {
		for l := range s.Lanes {
			if s.Len(r, l) == 0 {
				continue
			}
			p := SchedProgram{Rank: r, Lane: l}
			for _, o := range s.Ops(r, l) {
				p.Ops = append(p.Ops, schedOp(o))
			}
			d.Programs = append(d.Programs, p)
		}
	}
	d.Schedule = schedHead(s)
	return nil
}

func schedHead(s *schedule.Schedule) *SchedHead {
	return &SchedHead{
		s.Name, s.Kind, s.Ranks, s.Root, s.Lanes, s.Channels, s.Depth, s.Layout.Chunks, s.Temp, len(s.Switches), s.Rounds(),
	}
}

func schedOp(o schedule.Op) SchedOp {
	j := SchedOp{Verb: o.Verb.String(), Class: o.Class}
	if o.Verb != schedule.Nop {
		j.Buf, j.From, j.To = o.Buf.String(), o.From, o.To
	}
	switch {
	case o.Verb.Local():
		j.Dst, j.At = o.Dst.String(), &o.At
	case o.Verb != schedule.Nop:
		j.Peer = &o.Peer
	}
	if o.After.Count > 0 {
		j.After = &SchedWait{o.After.Lane, o.After.Count - 1}
	}
	return j
}

func schedCheck(err error) *SchedCheck {
	v := &SchedCheck{Proven: err == nil}
	if err == nil {
		return v
	}
	v.Fault = &SchedFault{Text: err.Error()}
	var f *schedule.Fault
	if errors.As(err, &f) {
		v.Fault.Class = string(f.Class)
		for _, x := range []struct {
			n  int
			to **int
		}{{f.Rank, &v.Fault.Rank}, {f.Lane, &v.Fault.Lane}, {f.Op, &v.Fault.Op}} {
			if x.n >= 0 {
				*x.to = &x.n
			}
		}
	}
	return v
}

// Algorithms asks which algorithms schedules can be built by.
type Algorithms struct{}

// AlgorithmsDoc is the answer to Algorithms.
type AlgorithmsDoc struct {
	Algorithms []Algorithm `json:"algorithms"`
}

// Algorithm is one by which collectives can run.
type Algorithm struct {
	Name  string      `json:"name"`
	Does  string      `json:"does"` // in a few words
	Ops   []coll.Kind `json:"ops"`
	Needs string      `json:"needs,omitempty"` // what else it asks for
}

// Run lists them.
func (Algorithms) Run(context.Context, Env) (*AlgorithmsDoc, error) {
	d := &AlgorithmsDoc{Algorithms: []Algorithm{}}
	for _, b := range schedule.Builders() {
		x := Algorithm{b.Name, b.Does, b.Kinds, b.Needs}
		// Those that compute in a switch need one.
		s, err := b.Build(b.Kinds[0], schedule.Params{Ranks: 4, Groups: [][]int{{0, 1}, {2, 3}}})
		if err == nil && len(s.Switches) > 0 {
			if x.Needs != "" {
				x.Needs += ", "
			}
			x.Needs += "a switch that computes (" + s.Switches[0].Kind.String() + ")"
		}
		d.Algorithms = append(d.Algorithms, x)
	}
	return d, nil
}
