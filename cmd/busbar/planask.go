package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/plan"
	"busbar.dev/step"
)

// ask reads the flags and what they name.
func (c *planCmd) ask(e *env) (*asked, error) {
	if c.Micro < 0 || c.Global < 0 || c.Seq < 0 || c.GPUs < 0 {
		return nil, fmt.Errorf("--micro-batch %d, --global-batch %d, --seq %d, --gpus %d; expected at least 1 each", c.Micro, c.Global, c.Seq, c.GPUs)
	}
	job := jobFlags{Cluster: c.Cluster, Layout: c.Layout, Model: c.Model, NCCL: c.NCCL, GPU: c.GPU, NIC: c.NIC}
	if c.GPUs > 0 {
		if c.Layout != "" {
			return nil, fmt.Errorf("--gpus %d and -l %s; expected one of them", c.GPUs, c.Layout)
		}
		layout, err := c.whole(e)
		if err != nil {
			return nil, err
		}
		job.Layout = layout
	}
	return job.ask(e, c.common)
}

// whole is the layout of so many GPUs on whole nodes.
func (c *planCmd) whole(e *env) (string, error) {
	if c.Cluster == "" {
		return "", nil // which ask says
	}
	cl, err := e.load([]string{c.Cluster}, c.common)
	if err != nil {
		return "", err
	}
	each := 0
	if len(cl.Hosts) > 0 {
		each = cl.TypeOf(0).Count(cluster.GPU)
	}
	switch {
	case each == 0:
		return "", fmt.Errorf("%s has no GPUs in its first node", c.Cluster)
	case c.GPUs < each:
		return fmt.Sprintf("1x%d", c.GPUs), nil
	case c.GPUs%each != 0:
		return "", fmt.Errorf("--gpus %d: nodes of %s have %d each; expected whole nodes, or -l NODESxGPUS", c.GPUs, c.Cluster, each)
	}
	return fmt.Sprintf("%dx%d", c.GPUs/each, each), nil
}

// planVariant is a cluster to plan for.
type planVariant struct {
	name    string
	cluster *cluster.Cluster
}

// variants are the cluster as it is, and one for every --set.
func (c *planCmd) variants(a *asked) ([]planVariant, error) {
	list := []planVariant{{"", a.cluster}}
	for _, text := range c.Set {
		cl := a.cluster
		for _, one := range strings.Split(text, ",") {
			var err error
			if cl, err = changedCluster(cl, one); err != nil {
				return nil, fmt.Errorf("--set %s: %w", text, err)
			}
		}
		list = append(list, planVariant{text, cl})
	}
	return list, nil
}

// changedCluster is a cluster with one thing set.
func changedCluster(cl *cluster.Cluster, text string) (*cluster.Cluster, error) {
	key, value, _ := strings.Cut(strings.TrimSpace(text), "=")
	switch key {
	case "network.gbps":
		gbps, err := strconv.ParseFloat(value, 64)
		if err != nil || !(gbps >= 0.001 && gbps <= 1e6) {
			return nil, fmt.Errorf("%q; expected the Gb/s of a NIC, such as 400", value)
		}
		have, _ := portOf(cl, 0)
		if have == 0 {
			return nil, fmt.Errorf("the rate of the cluster's NICs is not known, so that it cannot be changed")
		}
		n, _ := step.Faster(cl, gbps/have, step.Ports, step.Trunks)
		return n, nil
	case "nics_per_node":
		k, err := strconv.Atoi(value)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("%q; expected a number of NICs", value)
		}
		n, ok := step.Fewer(cl, k)
		if !ok {
			return nil, fmt.Errorf("nodes have fewer than %d NICs; describe more of them in a cluster file", k)
		}
		return n, nil
	}
	return nil, fmt.Errorf("%q is nothing that can be set; expected network.gbps or nics_per_node", key)
}

// searching shows how far a search is, four times a second, on a terminal.
func (e *env) searching(o common) func(plan.Progress) {
	if o.Quiet || !isTerminal(e.stderr) {
		return nil
	}
	var mu sync.Mutex
	last := time.Now()
	return func(p plan.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 250*time.Millisecond {
			return
		}
		last = time.Now()
		text := fmt.Sprintf("%s of %s settings bounded or cut", thousands(p.Done), thousands(p.Considered))
		if p.Best > 0 {
			text += fmt.Sprintf(", %s priced, best %s", thousands(p.Priced), seconds(p.Best))
		}
		e.progress(o, text)
	}
}

// searched clears the line.
func (e *env) searched(o common) { e.progress(o, "")() }

// holding says whether the order of the plans depends on figures of the network that are only
// assumed, and names them.
func holding(q *plan.Query, plans []plan.Plan) (string, error) {
	tiers, why := step.Assumed(q.Cluster)
	if len(tiers) == 0 {
		return "no rate of the network is only assumed: all were read, measured, or are on data sheets", nil
	}
	var list []string
	for i, t := range tiers {
		list = append(list, fmt.Sprintf("%s (%s)", t, why[i]))
	}
	what := strings.Join(list, "; ")
	if len(plans) < 2 {
		return "assumed: " + what, nil
	}
	for _, factor := range []float64{0.8, 1.25, 0.5, 2} {
		order, err := q.Holds(plans, factor)
		if err != nil || order == nil {
			return "", err
		}
		if order[0] != 0 {
			return fmt.Sprintf("with %.0f%% of the rates that are assumed plan %d would be the best; assumed: %s", 100*factor, order[0]+1, what), nil
		}
	}
	return "the first stays the best of these with half and twice the rates that are assumed: " + what, nil
}
