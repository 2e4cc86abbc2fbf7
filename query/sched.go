package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
	"busbar.dev/schedule/msccl"
	"busbar.dev/unit"
)

// Sched asks for the program of a collective, every op of every rank and lane, or for the proof that it is right. It is
// built, or read from an MSCCL algorithm file.
type Sched struct {
	File     string `arg:"" optional:"" names:"file" help:"MSCCL algorithm file, - for standard input (default: the schedule of --op by --algo)."`
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
	Runtime  string `enum:"msccl,rccl" default:"msccl" help:"FILE: the library that runs it: msccl is Microsoft's, rccl AMD's up to ROCm 7.12 (later ones read no such files) (default msccl)."`
	Proto    Proto  `enum:"auto,simple,ll,ll128" default:"auto" help:"msccl: protocol: simple, ll or ll128 (auto is simple) (default auto)."`
	Min      Size   `name:"min-size" placeholder:"SIZE" help:"msccl: smallest call that uses the file, in bytes over all ranks."`
	Max      Size   `name:"max-size" placeholder:"SIZE" help:"msccl: largest call; beyond it the runtime sends larger messages."`
	InPlace  bool   `help:"msccl: in-place calls only, without the copy of a rank's own block."`
	Rooted   bool   `help:"msccl: allow broadcast and reduce; the runtime uses such a file for calls with any root."`
}

// maxProven bounds the ops of a proof, which takes a minute for so many.
const maxProven = 1 << 23

// Run builds or reads a schedule, and proves it where that is asked for.
func (q Sched) Run(_ context.Context, env Env) (doc *SchedDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if q.File != "" {
		return q.read(&env)
	}
	s, err := q.build()
	if err != nil {
		return nil, err
	}
	d := &SchedDoc{Program: s, question: q}
	if q.Check {
		err = d.prove(&env)
	}
	return d, err
}

// prove proves a built schedule.
func (d *SchedDoc) prove(env *Env) error {
	if d.Program.MoreOps(maxProven) {
		return failure.Cannot(fmt.Errorf("more than %d ops take too long to prove; check fewer ranks, channels or pieces: the programs are alike", maxProven))
	}
	done := env.working("proving")
	d.Fault = d.Program.Check()
	done()
	if undecided(d.Fault) {
		return failure.Cannot(d.Fault)
	}
	d.Schedule, d.Check = schedHead(d.Program), schedCheck(d.Fault, nil)
	return nil
}

// read shows or proves an algorithm file.
func (q *Sched) read(env *Env) (*SchedDoc, error) {
	a, err := env.algorithm(q.File)
	if err != nil {
		return nil, err
	}
	a.Runtime = msccl.Runtime(q.Runtime)
	d := &SchedDoc{Algorithm: a, question: *q}
	if q.Check {
		d.Calls, d.Fault = a.Prove()
		if undecided(d.Fault) {
			return nil, failure.Cannot(fmt.Errorf("%s: %w", q.File, d.Fault))
		}
		d.File, d.Check = schedFile(q.File, a), schedCheck(d.Fault, d.Calls)
		return d, nil
	}
	if d.Program, err = firstCall(a); err != nil {
		if err = fmt.Errorf("%s: %w", q.File, err); undecided(err) {
			return nil, failure.Cannot(err)
		}
		return nil, failure.Wrong(err)
	}
	return d, nil
}

// algorithm reads an algorithm file.
func (e *Env) algorithm(name string) (*msccl.Algo, error) {
	if name == "-" {
		return msccl.Read("standard input", e.stdin())
	}
	f, err := e.files().Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing{fmt.Errorf("%s: no such file; expected an MSCCL algorithm file, or --op and --algo", name)}
	case err != nil:
		return nil, failure.Cannot(err)
	}
	defer f.Close()
	return msccl.Read(name, f)
}

// firstCall is a file as a schedule: as the first call that is proven, else as the first of all.
func firstCall(a *msccl.Algo) (*schedule.Schedule, error) {
	views, err := a.Views()
	if err != nil {
		return nil, err
	}
	if proven, _ := a.Prove(); len(proven) > 0 {
		views = proven
	}
	return a.Schedule(views[0])
}

// undecided reports whether a proof could not be tried, which says nothing about its subject.
func undecided(err error) bool {
	var fault *schedule.Fault
	var other *msccl.Undecided
	return errors.As(err, &fault) && fault.Class == schedule.TooBig || errors.As(err, &other)
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
	p := schedule.Params{Ranks: *q.Ranks, Root: q.Root, Channels: *q.Channels, Pieces: *q.Pieces, Inner: q.Inner, Outer: q.Outer}
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
		return nil, fmt.Errorf("%d ranks are not a whole number of groups of %d; name uneven groups: 0-%d/%d-%d", ranks, size, size-1, size, ranks-1)
	}
	groups := make([][]int, ranks/size)
	for r := range ranks {
		groups[r/size] = append(groups[r/size], r)
	}
	return groups, nil
}

// MSCCL is a built schedule as an algorithm file, or the reason why the reader of such files would not take it.
func (d *SchedDoc) MSCCL() (*msccl.Algo, error) {
	q, s := &d.question, d.Program
	if s.Kind.Rooted() && !q.Rooted {
		return nil, fmt.Errorf("-o msccl: the reader does not look at a call's root: a %s written for root %d would also run for other roots, and go wrong; --rooted allows it where there are none", s.Kind, s.Root)
	}
	set := msccl.Settings{Proto: map[Proto]string{"ll": "LL", "ll128": "LL128"}[q.Proto], InPlace: q.InPlace, Rooted: q.Rooted}
	for _, x := range []struct {
		name, text string
		to         *int64
	}{{"--min-size", string(q.Min), &set.MinBytes}, {"--max-size", string(q.Max), &set.MaxBytes}} {
		if x.text == "" {
			continue
		}
		n, err := unit.ParseBytes(x.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
		*x.to = int64(n)
	}
	if set.MaxBytes > 0 && set.MinBytes > set.MaxBytes {
		return nil, fmt.Errorf("--min-size %s is more than --max-size %s", q.Min, q.Max)
	}
	a, err := msccl.Lower(s, set)
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("-o msccl: %w", err))
	}
	return a, nil
}
