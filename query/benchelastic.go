package query

import (
	"context"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
)

// measureElastic runs the plan on whoever is there. All members keep all rows, since any of them may
// have to answer; whoever is rank 0 when a row is done tells of it.
func measureElastic(ctx context.Context, q *Bench, env *Env, on *Ranks[*BenchDoc], x *engine.Elastic, p bench.Plan, newcomer bool, keep func([]byte) error) (*BenchDoc, error) {
	members := &bench.Members{Elastic: x, At: x.View()}
	m := newBenchRun(q, env, on, members, p)
	m.like, m.doc.Late = bench.Here(members, env.Version), newcomer
	last, err := bench.RunElastic(ctx, x, p, newcomer, func(v engine.View, s *result.Sweep) error {
		m.mute = v.Rank != 0
		if v.Epoch != members.At.Epoch {
			members.At = v
			like := bench.Here(members, env.Version)
			like.Session, like.When = m.like.Session, m.like.When
			m.like = like
		}
		m.changed(x, v)
		if err := m.add(s); err != nil {
			return err
		}
		m.doc.Rows[len(m.doc.Rows)-1].Ranks = s.Ranks
		return nil
	})
	m.clear()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	members.At, m.mute = last, last.Rank != 0
	m.changed(x, last)
	var doc *BenchDoc
	if last.Rank == 0 {
		doc = m.doc
		doc.Missed = len(p.Sizes) - len(doc.Rows)
		m.end()
		err = on.answer(doc, keep)
	}
	if end := x.Finish(ctx); end != nil && err == nil {
		return doc, failure.Cannot(end)
	}
	return doc, err
}

// changed adds the changes up to a view that are not in the document yet.
func (m *benchRun) changed(x *engine.Elastic, v engine.View) {
	for _, c := range x.Changes()[len(m.doc.Changes):] {
		if c.Epoch > v.Epoch {
			return
		}
		y := BenchChange{Epoch: c.Epoch, Left: []BenchMember{}, Joined: []BenchMember{}}
		for _, l := range c.Left {
			y.Left = append(y.Left, BenchMember{l.Rank, l.Host, l.Pid, l.Why})
		}
		for _, j := range c.Joined {
			y.Joined = append(y.Joined, BenchMember{j.Rank, j.Host, j.Pid, ""})
		}
		m.doc.Changes = append(m.doc.Changes, y)
		if !m.mute && m.on.Change != nil {
			m.clear()
			m.on.Change(c)
		}
	}
}
