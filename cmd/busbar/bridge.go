package main

// What stands here serves commands whose questions have not moved to package query yet; it goes with them.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
)

// placement is the part of a job's flags that says where it runs.
type placement struct {
	common
	Cluster, Layout, Compare, GPU, NIC string
}

func (e *env) load(words []string, o common) (*cluster.Cluster, error) { return e.cluster(o, words...) }

// shape is a layout as asked for; no nodes are all GPUs.
type shape struct {
	text        string
	nodes, gpus int
}

func (c *placement) shapes() ([]shape, error) {
	if c.Compare != "" && c.Layout != "" {
		return nil, fmt.Errorf("-l and --compare: expected one of them; add %s to --compare", c.Layout)
	}
	texts := []string{c.Layout}
	if c.Compare != "" {
		if texts = strings.Split(c.Compare, ","); len(texts) < 2 {
			return nil, fmt.Errorf("--compare %s; expected at least two layouts: 1x4,2x2", c.Compare)
		}
		for i, text := range texts {
			if strings.TrimSpace(text) == "" || slices.Contains(texts[:i], text) {
				return nil, fmt.Errorf("--compare %s; an empty layout or one that is there twice; expected 1x4,2x2", c.Compare)
			}
		}
	}
	var list []shape
	for _, t := range texts {
		s := shape{}
		if t != "" {
			var err error
			if s.nodes, s.gpus, err = predict.ParseLayout(t); err != nil {
				return nil, err
			}
			s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
		}
		list = append(list, s)
	}
	return list, nil
}

// load reads the cluster with as many nodes as the layouts ask for.
func (c *placement) load(e *env, shapes []shape) (*cluster.Cluster, error) {
	need := 0
	for _, s := range shapes {
		need = max(need, s.nodes)
	}
	return query.LoadAtLeast(e.ctx, e.query(c.common), c.Cluster, need)
}

// assume fills what the cluster's source does not say, and tells so.
func (c *placement) assume(e *env, cl *cluster.Cluster, shapes []shape) error {
	g := predict.Given{GPU: c.GPU}
	if c.NIC != "" {
		var err error
		if g.NIC, err = predict.ParseNICs(c.NIC); err != nil {
			return fmt.Errorf("--nic: %w", err)
		}
	}
	nets := slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes != 1 }) && len(cl.Hosts) > 1
	notes, err := predict.Assume(cl, g, nets)
	c.note(e, notes...)
	return err
}

func hostsOf(l nccl.Layout) int {
	seen := map[int]bool{}
	for _, r := range l {
		seen[r.Host] = true
	}
	return len(seen)
}

// later is a progress line that appears only when something takes more than a
// second.
func (e *env) later(o common, text string) func() {
	if o.Quiet || !isTerminal(e.stderr) {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-stop:
		case <-time.After(time.Second):
			clear := e.progress(o, text)
			<-stop
			clear()
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// orEmpty makes an empty list print as [] rather than null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}

// stream remembers that reading failed.
type stream struct {
	r   io.Reader
	err error
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
		var at *fs.PathError
		if errors.As(err, &at) {
			s.err = at.Err // the caller knows the name
		}
	}
	return n, err
}
