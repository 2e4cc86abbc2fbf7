package main

import (
	"errors"
	"fmt"
	"io"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
	"busbar.dev/schedule/msccl"
)

// maxPrinted limits the ops of a JSON document, which is made in memory; maxText those of a
// text, which nobody reads beyond some gigabytes; maxProven those of a proof, which takes a minute.
const (
	maxPrinted = 1 << 20
	maxText    = 1 << 26
	maxProven  = 1 << 23
)

// file shows or proves an algorithm file.
func (c *schedCmd) file(e *env) error {
	format, file, err := c.format()
	if err != nil {
		return err
	}
	if format == "msccl" {
		return fmt.Errorf("-o msccl: %s is such a file already; expected text or json", c.File)
	}
	a, err := e.openAlgo(c.File)
	if err != nil {
		return err
	}
	if c.Check {
		return c.checkFile(e, format, file, a)
	}
	s, err := shown(a)
	if undecided(err) {
		return failure.Cannot(fmt.Errorf("%s: %w", c.File, err))
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "busbar: %s: %v\n", c.File, err)
		return errWrong
	}
	return c.write(e, format, file, func(w io.Writer, format string) error {
		if format == "json" {
			return printSchedule(w, s)
		}
		return printText(w, s)
	})
}

// shown is a file as a schedule: as the first call that is proven, else as the first of all.
func shown(a *msccl.Algo) (*schedule.Schedule, error) {
	views, err := a.Views()
	if err != nil {
		return nil, err
	}
	if proven, _ := a.Prove(); len(proven) > 0 {
		views = proven
	}
	return a.Schedule(views[0])
}

// fileJSON is an algorithm file in figures.
type fileJSON struct {
	Name     string `json:"name"`
	Coll     string `json:"coll"`
	Proto    string `json:"proto"`
	Ranks    int    `json:"ranks"`
	Blocks   int    `json:"thread_blocks"`
	Steps    int    `json:"steps"`
	MinBytes int64  `json:"min_bytes"`
	MaxBytes int64  `json:"max_bytes"`
}

// checkFile proves a file.
func (c *schedCmd) checkFile(e *env, format, file string, a *msccl.Algo) error {
	views, err := a.Prove()
	if undecided(err) {
		return failure.Cannot(fmt.Errorf("%s: %w", c.File, err))
	}
	head := fileJSON{Name: a.Name, Coll: a.Coll, Proto: a.Proto, Ranks: a.NGPUs, MinBytes: a.MinBytes, MaxBytes: a.MaxBytes}
	for i := range a.GPUs {
		for j := range a.GPUs[i].Blocks {
			head.Blocks++
			head.Steps += len(a.GPUs[i].Blocks[j].Steps)
		}
	}
	werr := c.write(e, format, file, func(w io.Writer, format string) error {
		if format == "json" {
			return writeIndented(w, schedJSON{File: &head, Check: verdict(err, views)})
		}
		text := fmt.Sprintf("%s: %s, %s over %d GPUs, %d thread blocks, %d steps, %s\n", c.File, a.Name, a.Coll, a.NGPUs, head.Blocks, head.Steps, a.Proto)
		for _, v := range views {
			text += fmt.Sprintf("proven: %s\n", v)
		}
		if err != nil {
			text += fmt.Sprintf("wrong: %v\n", err)
		}
		_, werr := io.WriteString(w, text)
		return werr
	})
	if werr == nil && err != nil {
		return errWrong
	}
	return werr
}

// schedJSON is the document of busbar sched --json.
type schedJSON struct {
	Schedule *headJSON     `json:"schedule,omitempty"`
	File     *fileJSON     `json:"file,omitempty"`
	Check    *verdictJSON  `json:"check,omitempty"`
	Programs []programJSON `json:"programs,omitempty"`
}

type programJSON struct {
	Rank int      `json:"rank"`
	Lane int      `json:"lane"`
	Ops  []opJSON `json:"ops"`
}

// verdictJSON is the outcome of a proof.
type verdictJSON struct {
	Proven bool       `json:"proven"`
	Calls  []callJSON `json:"calls,omitempty"` // of a file
	Fault  *faultJSON `json:"fault,omitempty"`
}

type callJSON struct {
	Op      coll.Kind `json:"op"`
	InPlace bool      `json:"in_place"`
	Root    *int      `json:"root,omitempty"`
}

type faultJSON struct {
	Class string `json:"class,omitempty"`
	Rank  *int   `json:"rank,omitempty"`
	Lane  *int   `json:"lane,omitempty"`
	Op    *int   `json:"op,omitempty"`
	Text  string `json:"text"`
}

func verdict(err error, views []msccl.View) *verdictJSON {
	v := &verdictJSON{Proven: err == nil}
	for _, x := range views {
		call := callJSON{Op: x.Kind, InPlace: x.InPlace}
		if x.Kind.Rooted() {
			call.Root = &x.Root
		}
		v.Calls = append(v.Calls, call)
	}
	if err == nil {
		return v
	}
	v.Fault = &faultJSON{Text: err.Error()}
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

// headJSON is a schedule without its ops.
type headJSON struct {
	Name     string    `json:"name"`
	Op       coll.Kind `json:"op"`
	Ranks    int       `json:"ranks"`
	Root     int       `json:"root"`
	Lanes    int       `json:"lanes"`
	Channels int       `json:"channels"`
	Depth    int       `json:"depth"`
	Chunks   int       `json:"chunks"`
	Scratch  int       `json:"scratch_chunks"`
	Switches int       `json:"switches"`
	Rounds   int       `json:"rounds"`
}

func headOf(s *schedule.Schedule) *headJSON {
	return &headJSON{s.Name, s.Kind, s.Ranks, s.Root, s.Lanes, s.Channels, s.Depth, s.Layout.Chunks, s.Temp, len(s.Switches), s.Rounds()}
}

// opJSON is an op; what has no meaning for its verb is left out.
type opJSON struct {
	Verb  string    `json:"verb"`
	Buf   string    `json:"buf,omitempty"`
	From  int32     `json:"from"`
	To    int32     `json:"to"`
	Peer  *int32    `json:"peer,omitempty"`
	Dst   string    `json:"dst,omitempty"`
	At    *int32    `json:"at,omitempty"`
	Class int32     `json:"class,omitempty"`
	After *waitJSON `json:"after,omitempty"`
}

type waitJSON struct {
	Lane int32 `json:"lane"`
	Op   int32 `json:"op"`
}

func opOf(o schedule.Op) opJSON {
	j := opJSON{Verb: o.Verb.String(), Class: o.Class}
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
		j.After = &waitJSON{o.After.Lane, o.After.Count - 1}
	}
	return j
}

// printText writes a schedule's programs, unless they would fill the disk.
func printText(w io.Writer, s *schedule.Schedule) error {
	if opsBeyond(s, maxText) {
		return failure.Cannot(fmt.Errorf("more than %d ops; ask for fewer ranks, channels or pieces: the programs are alike", maxText))
	}
	return schedule.Print(w, s)
}

// opsBeyond tells whether a schedule has more than so many ops, without counting the rest.
func opsBeyond(s *schedule.Schedule, most int) bool {
	total := 0
	for r := range s.Nodes() {
		for l := range s.Lanes {
			if total += s.Len(r, l); total > most {
				return true
			}
		}
	}
	return false
}

// printSchedule writes a schedule with all its ops.
func printSchedule(w io.Writer, s *schedule.Schedule) error {
	var programs []programJSON
	total := 0
	for r := range s.Nodes() {
		for l := range s.Lanes {
			n := s.Len(r, l)
			if n == 0 {
				continue
			}
			if total += n; total > maxPrinted {
				return failure.Cannot(fmt.Errorf("more than %d ops; ask for fewer ranks, or -o text, which takes %d", maxPrinted, maxText))
			}
			p := programJSON{Rank: r, Lane: l}
			for _, o := range s.Ops(r, l) {
				p.Ops = append(p.Ops, opOf(o))
			}
			programs = append(programs, p)
		}
	}
	return writeIndented(w, schedJSON{Schedule: headOf(s), Programs: programs})
}
