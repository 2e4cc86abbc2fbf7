package main

import (
	"bytes"
	"fmt"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/input/nccltests"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

// predicted reads the files and predicts their points: published ones on the cluster that
// their own words describe, our own results and nccl-tests' on the one that -c or they name.
func (c *validateCmd) predicted(e *env) (rows []truth.Row, left []truth.Left, notes []string, err error) {
	var sweeps result.Sweeps
	var cases []*truth.Case
	for _, name := range c.Files {
		data, err := e.measuredText(name)
		if err != nil {
			return nil, nil, nil, err
		}
		var l []truth.Left
		switch {
		case result.Match(data):
			var more []*truth.Case
			more, l, err = c.storedCases(e, inputName(name), data)
			cases = append(cases, more...)
		case nccltests.Match(data):
			var more []*truth.Case
			more, err = c.tableCases(e, inputName(name), data)
			cases = append(cases, more...)
		default:
			var s result.Sweeps
			s, l, err = truth.Read(inputName(name), bytes.NewReader(data))
			sweeps = append(sweeps, s...)
			if err == nil {
				var runs []*truth.Training
				runs, err = truth.Runs(inputName(name), bytes.NewReader(data))
				l = slices.DeleteFunc(l, func(x truth.Left) bool {
					return slices.ContainsFunc(runs, func(t *truth.Training) bool { return t.ID == x.ID })
				})
				c.runs = append(c.runs, runs...)
			}
		}
		if err != nil {
			return nil, nil, nil, err
		}
		left = append(left, l...)
	}
	rows, more := truth.Predicted(sweeps, nil)
	own, err := truth.Rows(cases, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	return append(rows, own...), append(left, more...), truth.Repeated(sweeps), nil
}

// storedCases are the sweeps of kept results, each on its cluster.
func (c *validateCmd) storedCases(e *env, name string, data []byte) ([]*truth.Case, []truth.Left, error) {
	all, err := result.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	sweeps, left, err := truth.Kept(all, c.Layout)
	if err != nil {
		return nil, nil, err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		if c.Cluster == "" && s.Cluster == "" {
			left = append(left, truth.Left{ID: s.ID, Reason: "nothing says on which cluster it was measured; give it with -c CLUSTER", Points: len(s.Points)})
			continue
		}
		x, err := c.on(e, s, s.Cluster)
		if err != nil {
			return nil, nil, err
		}
		cases = append(cases, x)
	}
	return cases, left, nil
}

// tableCases are nccl-tests' tables on the cluster that -c names.
func (c *validateCmd) tableCases(e *env, name string, data []byte) ([]*truth.Case, error) {
	if c.Cluster == "" {
		return nil, fmt.Errorf("%s is an output of nccl-tests, which does not say what the cluster is; give it with -c CLUSTER", name)
	}
	reader := &calibrateCmd{common: c.common, Cluster: c.Cluster, Layout: c.Layout, NCCL: c.NCCL}
	sweeps, err := reader.tables(e, name, data)
	if err != nil {
		return nil, err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		x, err := c.on(e, s, "")
		if err != nil {
			return nil, err
		}
		cases = append(cases, x)
	}
	return cases, nil
}

// on is a sweep on the cluster of -c, or on the one it names itself.
func (c *validateCmd) on(e *env, s *result.Sweep, named string) (*truth.Case, error) {
	release := nccl.Newest
	if c.NCCL != "" {
		var err error
		if release, err = nccl.ParseVersion(c.NCCL); err != nil {
			return nil, fmt.Errorf("--nccl: %w", err)
		}
	}
	word := c.Cluster
	if word == "" {
		word = named
	}
	cl, err := e.clusterFor(word, s.Nodes, c.common)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ID, err)
	}
	s.Class = word
	x, err := truth.On(s, cl, release)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ID, err)
	}
	return x, nil
}
