package main

import (
	"fmt"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
)

// benchChange is a change of membership, in the document.
type benchChange struct {
	Epoch  uint32        `json:"epoch"`
	Left   []benchMember `json:"left"`
	Joined []benchMember `json:"joined"`
}

type benchMember struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
	Pid  int    `json:"pid"`
	Why  string `json:"why,omitempty"`
}

// measureElastic runs the plan on whoever is there. All members keep all rows, since any of
// them may have to print them; whoever is rank 0 when a row is done prints it.
func (c *benchRunCmd) measureElastic(e *env, x *engine.Elastic, p bench.Plan, newcomer bool) error {
	us := &crew{x, x.View()}
	out := newBenchOutput(c, e, us, p)
	out.like, out.head = measuredHere(us), newcomer
	last, err := bench.RunElastic(e.ctx, x, p, newcomer, func(v engine.View, s *result.Sweep) error {
		out.mute = v.Rank != 0
		if v.Epoch != us.v.Epoch {
			us.v = v
			like := measuredHere(us)
			like.Session, like.When = out.like.Session, out.like.When
			out.like = like
		}
		out.changed(x, v)
		if err := out.add(s); err != nil {
			return err
		}
		out.head = true // whoever printed it
		out.doc.Rows[len(out.doc.Rows)-1].Ranks = s.Ranks
		return nil
	})
	if err != nil {
		out.clear()
		return failure.Cannot(err)
	}
	us.v, out.mute = last, last.Rank != 0
	out.changed(x, last)
	if last.Rank == 0 {
		if n := len(p.Sizes) - len(out.doc.Rows); n > 0 && c.JSON && !c.Quiet {
			fmt.Fprintf(e.stderr, "busbar: note: %d of %d sizes were measured before this rank came, and are not in its document\n", n, len(p.Sizes))
		}
		err = out.end()
	} else {
		out.clear()
	}
	if fin := x.Finish(e.ctx); fin != nil && err == nil {
		return failure.Cannot(fin)
	}
	return err
}

// changed notes the changes up to a view that have not been noted yet, and prints them as
// comments.
func (o *benchOutput) changed(x *engine.Elastic, v engine.View) {
	for _, c := range x.Changes()[len(o.doc.Changes):] {
		if c.Epoch > v.Epoch {
			return
		}
		y := benchChange{Epoch: c.Epoch, Left: []benchMember{}, Joined: []benchMember{}}
		for _, l := range c.Left {
			y.Left = append(y.Left, benchMember{l.Rank, l.Host, l.Pid, l.Why})
		}
		for _, m := range c.Joined {
			y.Joined = append(y.Joined, benchMember{m.Rank, m.Host, m.Pid, ""})
		}
		o.doc.Changes = append(o.doc.Changes, y)
		if !o.mute && !o.c.JSON && !o.c.toStdout() {
			o.clear()
			fmt.Fprintln(o.e.stdout, changeLine(c))
		}
	}
}
