package query

import (
	"context"
	"errors"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
)

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

// MaxSchedText bounds the ops of a schedule's text, which nobody reads beyond some gigabytes; maxPrograms those of a document,
// which is made in memory.
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
		return failure.Cannot(fmt.Errorf("more than %d ops; ask for fewer ranks, or -o text, which takes %d", maxPrograms, MaxSchedText))
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
	return &SchedHead{s.Name, s.Kind, s.Ranks, s.Root, s.Lanes, s.Channels, s.Depth, s.Layout.Chunks, s.Temp, len(s.Switches), s.Rounds()}
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
