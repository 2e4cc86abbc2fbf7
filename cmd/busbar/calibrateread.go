package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
)

// sweep is a measured sweep, and who says what it is about.
type sweep struct {
	truth.Group
	opFrom, layoutFrom string
}

// maxMeasured bounds one file of measurements.
const maxMeasured = 256 << 20

// sweeps reads one file, of either kind.
func (c *calibrateCmd) sweeps(e *env, name string) ([]sweep, error) {
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
	groups, left, err := truth.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w (and it is no output of nccl-tests)", err)
	}
	if len(groups) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: %s", left[0].ID, left[0].Reason)
	}
	var list []sweep
	for _, g := range groups {
		if g.Anomalous {
			c.note(e, "%s is anomalous, slow because something was wrong; not fitted", g.ID)
			continue
		}
		where := fmt.Sprintf("%s:%d", name, g.Line)
		if err := c.agrees(where, &g); err != nil {
			return nil, err
		}
		list = append(list, sweep{g, "its line", "its line"})
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
		_, err := e.stat(name)
		var f *os.File
		if err == nil {
			f, err = os.Open(name)
		}
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

// tables turns nccl-tests' tables into sweeps.
func (c *calibrateCmd) tables(e *env, name string, data []byte) ([]sweep, error) {
	res, err := nccltests.ReadResult(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var list []sweep
	for i := range res.Tables {
		t := &res.Tables[i]
		if len(t.Rows) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d", name, t.Line)
		s := sweep{opFrom: opFrom(t), layoutFrom: "its ranks"}
		if t.Op == "" {
			t.Op, s.opFrom = c.Op, "--op"
		}
		if t.Op == "" {
			return nil, fmt.Errorf("%s: nothing says which collective this table is of; give it with --op", where)
		}
		nodes, gpus, listed := listedShape(t)
		if !listed {
			if nodes, gpus, err = c.givenShape(t); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			s.layoutFrom = "-l"
		}
		sizes, times, err := c.points(e, where, t)
		if err != nil {
			return nil, err
		}
		g, err := truth.Sweep(fmt.Sprintf("%s:%d", filepath.Base(name), t.Line), t.Op, t.Rows[0].Type, nodes, gpus, sizes, times)
		if err != nil {
			return nil, err
		}
		s.Group = *g
		s.NCCL = libraryVersion(t.Library)
		if err := c.agrees(where, &s.Group); err != nil {
			return nil, err
		}
		for _, r := range t.Ranks {
			if s.GPU = r.Model; r.Model != t.Ranks[0].Model {
				return nil, fmt.Errorf("%s: ranks have %q and %q; a calibration is of nodes with one kind of GPU", where, t.Ranks[0].Model, r.Model)
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// opFrom says who says which collective a table is of.
func opFrom(t *nccltests.Table) string {
	if t.OpFrom == "columns" {
		return "its columns"
	}
	return "its header"
}

// points are the rows of a table that have a time; those with wrong results are
// left out, for what did not do its work says nothing about how long that takes.
func (c *calibrateCmd) points(e *env, where string, t *nccltests.Table) (sizes, times []float64, err error) {
	wrong := 0
	for _, r := range t.Rows {
		h := r.OutOfPlace
		switch {
		case h == nil || h.Time <= 0 || r.Size <= 0:
		case h.Wrong > 0 && !t.Delta:
			wrong++
		default:
			sizes, times = append(sizes, float64(r.Size)), append(times, float64(h.Time)/1e6)
		}
	}
	switch {
	case wrong > 0 && len(sizes) == 0:
		return nil, nil, fmt.Errorf("%s: all %d rows have wrong results (#wrong); such a run says nothing about the cluster's speed", where, wrong)
	case wrong > 0:
		c.note(e, "%s: %d rows with wrong results (#wrong) are left out", where, wrong)
	}
	return sizes, times, nil
}

// agrees refuses a sweep that says something else than the command line does.
func (c *calibrateCmd) agrees(where string, g *truth.Group) error {
	if c.Op != "" {
		given, err := coll.ParseKind(c.Op)
		if err != nil {
			return fmt.Errorf("--op: %w", err)
		}
		if said, err := coll.ParseKind(g.Collective); err == nil && said != given {
			return fmt.Errorf("%s is of %s, and --op says %s; leave --op out, or give the right file", where, said, given)
		}
	}
	if c.Layout != "" {
		nodes, gpus, err := predict.ParseLayout(c.Layout)
		if err != nil {
			return err
		}
		if nodes != g.Nodes || gpus != g.PerNode {
			return fmt.Errorf("%s ran on %dx%d, and -l says %dx%d; leave -l out, or give the right file", where, g.Nodes, g.PerNode, nodes, gpus)
		}
	}
	if said, ok := g.Release(); ok && c.NCCL != "" {
		given, err := nccl.ParseVersion(c.NCCL)
		if err == nil && (said.Major != given.Major || said.Minor != given.Minor) {
			return fmt.Errorf("%s ran NCCL %s, and --nccl says %s; leave --nccl out, or give the right file", where, said, given)
		}
	}
	return nil
}

// listedShape is how many nodes with how many GPUs each a table lists, false where it
// lists no ranks, or not all.
func listedShape(t *nccltests.Table) (nodes, gpus int, ok bool) {
	hosts := map[string]int{}
	for _, r := range t.Ranks {
		hosts[r.Host]++
	}
	for _, n := range hosts {
		gpus = max(gpus, n)
	}
	return len(hosts), gpus, len(hosts) > 0 && gpus*len(hosts) == t.NRanks()
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
	if hosts, most, _ := listedShape(t); hosts > nodes || most > gpus || t.NRanks() > nodes*gpus {
		return 0, 0, fmt.Errorf("the output lists %d ranks on %d hosts, up to %d on one, and -l says %dx%d; give the layout that ran", t.NRanks(), hosts, most, nodes, gpus)
	}
	return nodes, gpus, nil
}

// libraryVersion turns NCCL's code 22907 into 2.29.7; "" where there is none.
func libraryVersion(code string) string {
	n, err := strconv.Atoi(strings.TrimSpace(code))
	if err != nil || n < 20900 || n > math.MaxInt32 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
}
