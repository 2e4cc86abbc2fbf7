package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
)

// maxMeasured bounds one file of measurements.
const maxMeasured = 256 << 20

// sweeps reads one file, of either kind.
func (c *calibrateCmd) sweeps(e *env, name string) (result.Sweeps, error) {
	data, err := e.readWhole(name)
	if err != nil {
		return nil, err
	}
	if nccltests.Match(data) {
		return c.tables(e, name, data)
	}
	if result.Match(data) {
		return c.stored(e, name, data)
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
			c.note(e, "%s is anomalous, slow because something was wrong; not fitted", s.ID)
			continue
		}
		if err := c.agrees(fmt.Sprintf("%s:%d", name, s.Line), s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// note is a word on standard error that changes nothing.
func (c *calibrateCmd) note(e *env, text string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(e.stderr, "note: "+text+"\n", args...)
	}
}

func (e *env) readWhole(name string) ([]byte, error) {
	in := e.stdin
	if name != "-" {
		f, err := os.Open(name)
		switch {
		case os.IsNotExist(err):
			return nil, fmt.Errorf("%s: no such file; expected what nccl-tests printed, or measured points as JSON lines", name)
		case err != nil:
			return nil, failure.Cannot(err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxMeasured+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxMeasured {
		return nil, fmt.Errorf("%s: more than %d MiB of measurements", name, maxMeasured>>20)
	}
	return data, nil
}

// tables are the sweeps of nccl-tests' tables.
func (c *calibrateCmd) tables(e *env, name string, data []byte) (result.Sweeps, error) {
	out, err := nccltests.ReadOutput(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var list result.Sweeps
	for i := range out.Tables {
		t := &out.Tables[i]
		if len(t.Sweeps) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d", name, t.Line)
		said := ""
		if t.Op == coll.None {
			if c.Op == "" {
				return nil, fmt.Errorf("%s: nothing says which collective this table is of; give it with --op", where)
			}
			op, _ := coll.ParseKind(c.Op) // what is no collective was refused before
			t.Name(op)
			said = "--op"
		}
		nodes, gpus, from := 0, 0, "its ranks"
		var listed bool
		if nodes, gpus, listed = t.Layout(); !listed {
			if nodes, gpus, err = c.givenShape(t); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			from = "-l"
		}
		for _, s := range t.Sweeps {
			s.ID = fmt.Sprintf("%s:%d", filepath.Base(name), t.Line)
			s.OpFrom, s.LayoutFrom = cmp.Or(said, s.OpFrom), from
			s.Nodes, s.PerNode, s.Ranks = nodes, gpus, nodes*gpus
			if err := c.right(e, where, s); err != nil {
				return nil, err
			}
			if err := c.agrees(where, s); err != nil {
				return nil, err
			}
			for _, r := range t.Ranks {
				if s.Machine = (&result.Machine{GPU: r.Model}); r.Model != t.Ranks[0].Model {
					return nil, fmt.Errorf("%s: ranks have %q and %q; a calibration is of nodes with one kind of GPU", where, t.Ranks[0].Model, r.Model)
				}
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// right leaves the points of a table that have a size and no wrong results, for what did not do its
// work says nothing about how long that takes.
func (c *calibrateCmd) right(e *env, where string, s *result.Sweep) error {
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
		return fmt.Errorf("%s: all %d rows have wrong results (#wrong); such a run says nothing about the cluster's speed", where, wrong)
	case wrong > 0:
		c.note(e, "%s: %d rows with wrong results (#wrong) are left out", where, wrong)
	}
	return nil
}

// agrees refuses a sweep that says something else than the command line does.
func (c *calibrateCmd) agrees(where string, s *result.Sweep) error {
	if c.Op != "" {
		given, err := coll.ParseKind(c.Op)
		if err != nil {
			return fmt.Errorf("--op: %w", err)
		}
		if s.Op != coll.None && s.Op != given {
			return fmt.Errorf("%s is of %s, and --op says %s; leave --op out, or give the right file", where, s.Op, given)
		}
	}
	if c.Layout != "" {
		nodes, gpus, err := predict.ParseLayout(c.Layout)
		if err != nil {
			return err
		}
		if nodes != s.Nodes || gpus != s.PerNode {
			return fmt.Errorf("%s ran on %dx%d, and -l says %dx%d; leave -l out, or give the right file", where, s.Nodes, s.PerNode, nodes, gpus)
		}
	}
	if said, ok := truth.Release(s); ok && c.NCCL != "" {
		given, err := nccl.ParseVersion(c.NCCL)
		if err == nil && (said.Major != given.Major || said.Minor != given.Minor) {
			return fmt.Errorf("%s ran NCCL %s, and --nccl says %s; leave --nccl out, or give the right file", where, said, given)
		}
	}
	return nil
}

// givenShape is the shape that the command line gives for a table that does not
// list its ranks, or not all; those that it lists must fit in.
func (c *calibrateCmd) givenShape(t *nccltests.Table) (nodes, gpus int, err error) {
	if c.Layout == "" {
		return 0, 0, fmt.Errorf("the output lists no ranks, or not all; say which took part with -l, e.g. -l 2x8")
	}
	if nodes, gpus, err = predict.ParseLayout(c.Layout); err != nil {
		return 0, 0, err
	}
	if hosts, most, _ := t.Layout(); hosts > nodes || most > gpus || t.NRanks() > nodes*gpus {
		return 0, 0, fmt.Errorf("the output lists %d ranks on %d hosts, up to %d on one, and -l says %dx%d; give the layout that ran", t.NRanks(), hosts, most, nodes, gpus)
	}
	return nodes, gpus, nil
}
