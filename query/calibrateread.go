package query

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/input/nccltests"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
)

// measurements reads files of measured collectives, with what a question gives where they do not say it themselves.
type measurements struct {
	env              *Env
	op, layout, nccl string
}

// sweeps reads one file, of any kind.
func (m *measurements) sweeps(name string) (result.Sweeps, error) {
	data, err := m.env.readWhole(name)
	if err != nil {
		return nil, err
	}
	if nccltests.Match(data) {
		return m.tables(name, data)
	}
	if result.Match(data) {
		return m.stored(name, data)
	}
	if err := notCollective(name, data); err != nil {
		return nil, err
	}
	all, left, err := truth.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w (and it is no output of nccl-tests)", err)
	}
	if len(all) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: %s", left[0].ID, left[0].Reason)
	}
	var list result.Sweeps
	for _, s := range all {
		if s.Published.Anomalous {
			m.env.note(fmt.Sprintf("%s is anomalous, slow because something was wrong; not fitted", s.ID))
			continue
		}
		where := fmt.Sprintf("%s:%d", name, s.Line)
		if s.Published.Fault != "" {
			return nil, fmt.Errorf("%s: %s", where, s.Published.Fault)
		}
		if err := m.agrees(where, s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// stored are the sweeps of a file of kept results.
func (m *measurements) stored(name string, data []byte) (result.Sweeps, error) {
	all, err := result.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	list, left, err := truth.Kept(all, m.layout)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, l := range left {
		reasons = append(reasons, fmt.Sprintf("%d records %s", l.Points, l.Reason))
	}
	if len(list) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: nothing to calibrate with: %s", name, strings.Join(reasons, "; "))
	}
	for _, r := range reasons {
		m.env.note(fmt.Sprintf("%s: left out: %s", name, r))
	}
	for _, s := range list {
		if err := m.agrees(fmt.Sprintf("%s:%d", name, s.Line), s); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// tables are the sweeps of nccl-tests' tables.
func (m *measurements) tables(name string, data []byte) (result.Sweeps, error) {
	out, err := nccltests.ReadOutput(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var list result.Sweeps
	for i := range out.Tables {
		if len(out.Tables[i].Sweeps) == 0 {
			continue
		}
		sweeps, err := m.table(name, &out.Tables[i])
		if err != nil {
			return nil, err
		}
		list = append(list, sweeps...)
	}
	return list, nil
}

// table are the sweeps of one table.
func (m *measurements) table(name string, t *nccltests.Table) (result.Sweeps, error) {
	where := fmt.Sprintf("%s:%d", name, t.Line)
	opFrom, layoutFrom := "", "its ranks"
	if t.Op == coll.None {
		if m.op == "" {
			return nil, fmt.Errorf("%s: nothing says which collective this table is of; give it with --op", where)
		}
		op, err := coll.ParseKind(m.op)
		if err != nil {
			return nil, fmt.Errorf("--op: %w", err)
		}
		t.Name(op)
		opFrom = "--op"
	}
	nodes, gpus, listed := t.Layout()
	if !listed {
		var err error
		if nodes, gpus, err = m.givenShape(t); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		layoutFrom = "-l"
	}
	for _, s := range t.Sweeps {
		s.ID = fmt.Sprintf("%s:%d", filepath.Base(name), t.Line)
		s.OpFrom, s.LayoutFrom = cmp.Or(opFrom, s.OpFrom), layoutFrom
		s.Nodes, s.PerNode, s.Ranks = nodes, gpus, nodes*gpus
		if err := m.dropWrong(where, s); err != nil {
			return nil, err
		}
		if err := m.agrees(where, s); err != nil {
			return nil, err
		}
		for _, r := range t.Ranks {
			if s.Machine = (&result.Machine{GPU: r.Model}); r.Model != t.Ranks[0].Model {
				return nil, fmt.Errorf("%s: ranks have %q and %q; a calibration is of nodes with one kind of GPU", where,
					t.Ranks[0].Model, r.Model)
			}
		}
	}
	return t.Sweeps, nil
}

// dropWrong leaves the points of a table that have a size and no wrong results, for what did not do its
// work says nothing about how long that takes.
func (m *measurements) dropWrong(where string, s *result.Sweep) error {
	wrong := 0
	s.Points = slices.DeleteFunc(s.Points, func(p result.Point) bool {
		if p.Out != nil && p.Size > 0 && p.Out.Wrong != nil && *p.Out.Wrong > 0 {
			wrong++
			return true
		}
		return p.Out == nil || p.Size <= 0
	})
	switch {
	case wrong > 0 && len(s.Points) == 0:
		return fmt.Errorf("%s: all %d rows have wrong results (#wrong); such a run says nothing about the cluster's speed",
			where, wrong)
	case wrong > 0:
		m.env.note(fmt.Sprintf("%s: %d rows with wrong results (#wrong) are left out", where, wrong))
	}
	return nil
}

// agrees refuses a sweep that says something else than the question does.
func (m *measurements) agrees(where string, s *result.Sweep) error {
	if m.op != "" {
		given, err := coll.ParseKind(m.op)
		if err != nil {
			return fmt.Errorf("--op: %w", err)
		}
		if s.Op != coll.None && s.Op != given {
			return fmt.Errorf("%s is of %s, and --op says %s; leave --op out, or give the right file", where, s.Op, given)
		}
	}
	if m.layout != "" {
		nodes, gpus, err := predict.ParseLayout(m.layout)
		if err != nil {
			return err
		}
		if nodes != s.Nodes || gpus != s.PerNode {
			return fmt.Errorf("%s ran on %dx%d, and -l says %dx%d; leave -l out, or give the right file", where, s.Nodes,
				s.PerNode, nodes, gpus)
		}
	}
	if own, ok := truth.Release(s); ok && m.nccl != "" {
		given, err := nccl.ParseVersion(m.nccl)
		if err == nil && (own.Major != given.Major || own.Minor != given.Minor) {
			return fmt.Errorf("%s ran NCCL %s, and --nccl says %s; leave --nccl out, or give the right file", where, own, given)
		}
	}
	return nil
}

// givenShape is the shape that the question gives for a table that does not
// list its ranks, or not all; those that it lists must fit in.
func (m *measurements) givenShape(t *nccltests.Table) (nodes, gpus int, err error) {
	if m.layout == "" {
		return 0, 0, fmt.Errorf("the output lists no ranks, or not all; say which took part with -l, e.g. -l 2x8")
	}
	if nodes, gpus, err = predict.ParseLayout(m.layout); err != nil {
		return 0, 0, err
	}
	if hosts, most, _ := t.Layout(); hosts > nodes || most > gpus || t.NRanks() > nodes*gpus {
		return 0, 0, fmt.Errorf("the output lists %d ranks on %d hosts, up to %d on one, and -l says %dx%d; give the "+
			"layout that ran", t.NRanks(), hosts, most, nodes, gpus)
	}
	return nodes, gpus, nil
}
