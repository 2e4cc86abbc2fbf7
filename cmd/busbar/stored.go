package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/predict"
	"busbar.dev/result"
)

// storedGroup is a sweep of records that busbar kept, and the cluster that they name.
type storedGroup struct {
	truth.Group
	cluster    string
	layoutFrom string
}

// storedGroups makes sweeps of kept records: those of one collective on one layout with one
// setting, in one session, belong together. What cannot be used is left, with the reason.
func storedGroups(name string, data []byte, layout string) ([]storedGroup, []truth.Left, error) {
	list, err := result.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	var groups []*storedGroup
	at := map[string]*storedGroup{}
	why := map[string]int{}
	for _, r := range list {
		if r.InPlace {
			continue // the published figures, and so the model's, are out of place
		}
		if reason := unusable(r); reason != "" {
			why[reason]++
			continue
		}
		key := fmt.Sprint(r.Session, r.Op, r.Dtype, r.Ranks, r.Nodes, r.Algo, r.Proto, r.Channels, r.Library, r.Cluster, r.Env)
		g := at[key]
		if g == nil {
			if g, err = newStoredGroup(name, r, layout); err != nil {
				return nil, nil, err
			}
			at[key] = g
			groups = append(groups, g)
		}
		g.Sizes = append(g.Sizes, float64(r.Size))
		t := r.Time.Mean
		g.Time = append(g.Time, &t)
	}
	var left []truth.Left
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		left = append(left, truth.Left{ID: filepath.Base(name), Reason: reason, Points: why[reason], Fair: true})
	}
	out := make([]storedGroup, len(groups))
	for i, g := range groups {
		out[i] = *g
	}
	return out, left, nil
}

// unusable says why a record says nothing about NCCL on a cluster of GPUs, "" where it does.
func unusable(r *result.Record) string {
	switch {
	case r.Source != result.Measured:
		return "a prediction; only measurements can be compared with predictions"
	case !r.OnGPUs():
		return "measured on CPUs by busbar's own engine; the model is of NCCL on GPUs, whose launches, copies and protocols a CPU does not have: take results of `busbar bench gpu` or nccl-tests"
	case r.Wrong != nil && *r.Wrong > 0:
		return "wrong results; what did not do its work says nothing about how long that takes"
	case r.Compress != "" && r.Compress != "none":
		return "compressed on the wire; NCCL does not do that"
	case r.Size <= 0 || r.Time.Mean <= 0:
		return "no size or no time"
	}
	return ""
}

func newStoredGroup(name string, r *result.Record, layout string) (*storedGroup, error) {
	g := &storedGroup{cluster: r.Cluster, layoutFrom: "its record"}
	g.ID = fmt.Sprintf("here-%s:%d", filepath.Base(name), r.Line)
	g.Collective, g.Dtype, g.Nodes, g.PerNode, g.Ranks = r.Op.String(), r.Dtype, r.Nodes, r.PerNode, r.Ranks
	g.NCCL, g.Env, g.Tool, g.Grade, g.File, g.Line = r.Library, maps.Clone(r.Env), r.Tool, "A", name, r.Line
	if r.Algo != "auto" {
		g.Algo = r.Algo
	}
	if r.Machine != nil {
		g.GPU = r.Machine.GPU
	}
	if g.Nodes > 0 {
		return g, nil
	}
	if layout == "" {
		return nil, fmt.Errorf("%s:%d: the record has no layout; say which ranks took part with -l, e.g. -l 2x8", name, r.Line)
	}
	nodes, per, err := predict.ParseLayout(layout)
	if err != nil {
		return nil, err
	}
	if nodes*per != r.Ranks {
		return nil, fmt.Errorf("%s:%d: %d ranks, and -l says %dx%d; give the layout that ran", name, r.Line, r.Ranks, nodes, per)
	}
	g.Nodes, g.PerNode, g.layoutFrom = nodes, per, "-l"
	return g, nil
}

// stored are the sweeps of a file of kept records.
func (c *calibrateCmd) stored(e *env, name string, data []byte) ([]sweep, error) {
	groups, left, err := storedGroups(name, data, c.Layout)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, l := range left {
		reasons = append(reasons, fmt.Sprintf("%d records %s", l.Points, l.Reason))
	}
	if len(groups) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: nothing to calibrate with: %s", name, strings.Join(reasons, "; "))
	}
	for _, r := range reasons {
		c.note(e, "%s: left out: %s", name, r)
	}
	var list []sweep
	for i := range groups {
		g := &groups[i]
		if err := c.agrees(fmt.Sprintf("%s:%d", name, g.Line), &g.Group); err != nil {
			return nil, err
		}
		list = append(list, sweep{g.Group, "its record", g.layoutFrom})
	}
	return list, nil
}
