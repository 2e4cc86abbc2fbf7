package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// rankOrder is the order in which ranks are put on hosts that somebody gave.
type rankOrder struct {
	given nccl.Layout
	names map[int]string // as they were given, by the cluster's host
	doc   orderDoc
}

// orderDoc is the order in the document of --json.
type orderDoc struct {
	Given string    `json:"given"`
	Order string    `json:"order"`
	Step  unit.Span `json:"step_s"`
	Was   unit.Span `json:"given_step_s"` // the plan's step in the given order
	Tried int       `json:"tried"`
	Kept  bool      `json:"kept,omitempty"` // --keep-order
}

// own are the cluster's hosts that --hosts names. There are none where the cluster's names are made
// up and --hosts has the real ones.
func (f *emitFlags) own(cl *cluster.Cluster) ([]int, []string, error) {
	if f.Hosts == "" {
		return nil, nil, nil
	}
	names, err := cluster.ParseHosts(f.Hosts)
	if err != nil {
		return nil, nil, fmt.Errorf("--hosts: %w", err)
	}
	byName := map[string][]int{}
	for i := range cl.Hosts {
		short, _, _ := strings.Cut(strings.ToLower(cl.Hosts[i].Name), ".")
		byName[short] = append(byName[short], i)
	}
	var list []int
	var strange string
	for _, n := range names {
		short, _, _ := strings.Cut(strings.ToLower(n), ".")
		at := slices.IndexFunc(byName[short], func(i int) bool { return launch.Same(cl.Hosts[i].Name, n) })
		switch {
		case at < 0:
			strange = n
			continue
		case slices.Contains(list, byName[short][at]):
			return nil, nil, fmt.Errorf("--hosts: %s is named twice", n)
		}
		list = append(list, byName[short][at])
	}
	switch {
	case strange == "":
		return list, names, nil
	case len(list) == 0 && slices.ContainsFunc(cl.Hosts, func(h cluster.Host) bool { return madeUp.MatchString(h.Name) }):
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("--hosts: %s is no host of %s, which has %.200s", strange, cl.Name, cluster.FormatHosts(hostNames(cl)))
}

func hostNames(cl *cluster.Cluster) []string {
	var names []string
	for i := range cl.Hosts {
		names = append(names, cl.Hosts[i].Name)
	}
	return names
}

// seated is the layout to search on: all or some of the cluster's hosts in their order, or those that --hosts
// names, in the order of the network.
func (c *planCmd) seated(cl *cluster.Cluster, s shape) (nccl.Layout, string, *rankOrder, error) {
	hosts, names, err := c.own(cl)
	if err != nil {
		return nil, "", nil, err
	}
	if hosts == nil {
		l, name, err := laid(cl, s)
		return l, name, nil, err
	}
	if s.nodes > 0 && s.nodes != len(hosts) {
		return nil, "", nil, fmt.Errorf("--hosts names %d hosts; the layout has %d nodes", len(hosts), s.nodes)
	}
	o := &rankOrder{names: map[int]string{}}
	for i, h := range hosts {
		o.names[h] = names[i]
		var gpus []int
		if t := cl.TypeOf(h); t != nil {
			gpus = t.Of(cluster.GPU)
		}
		n := len(gpus)
		if s.nodes > 0 {
			n = s.gpus
		}
		if n == 0 || n > len(gpus) {
			return nil, "", nil, fmt.Errorf("--hosts: %s has %s; expected at least %d", names[i], counted(len(gpus), "GPU"), max(n, 1))
		}
		for _, g := range gpus[:n] {
			o.given = append(o.given, nccl.Rank{Host: h, GPU: g})
		}
	}
	if len(o.given) > predict.MaxRanks {
		return nil, "", nil, fmt.Errorf("--hosts: %d GPUs; at most %d", len(o.given), predict.MaxRanks)
	}
	l := o.given
	if !c.Keep {
		l = plan.Near(cl, l)
	}
	name := s.text
	if name == "" || s.nodes == 0 {
		name = fmt.Sprintf("%dx%d", len(hosts), len(o.given)/len(hosts))
	}
	return l, name, o, nil
}

// arrange puts the hosts into the order that is best for the plan that was picked, and searches again
// where that is another than was searched on.
func (c *planCmd) arrange(e *env, q *plan.Query, o *rankOrder, answer *plan.Answer) (*plan.Answer, error) {
	pick := func() *plan.Plan { return &answer.Plans[min(c.Pick, len(answer.Plans))-1] }
	o.doc.Kept = c.Keep
	if !c.Keep && answer.Whole {
		best, err := plan.Arrange(q, o.given, &pick().Job)
		if err != nil {
			return nil, err
		}
		o.doc.Tried = best.Tried
		if !slices.Equal(best.Layout, q.Layout) {
			was := q.Layout
			q.Layout = best.Layout
			again, err := plan.Search(e.ctx, q)
			switch {
			case e.ctx.Err() != nil && err != nil:
				q.Layout = was // stopped before anything was found: what there is was searched on the other
			case err != nil:
				return nil, err
			default:
				answer = again
			}
		}
	}
	p := pick()
	was, err := step.Step(&p.Job, q.GPU, step.NewFabric(q.Cluster, o.given, p.Job.Split, q.Version))
	if err != nil {
		return nil, err
	}
	o.doc.Given, o.doc.Order = o.list(o.given), o.list(q.Layout)
	o.doc.Step, o.doc.Was = p.Result.Step, was.Step
	return answer, nil
}

// hosts are the names in the order of a layout.
func (o *rankOrder) hosts(l nccl.Layout) []string {
	var names []string
	for i, r := range l {
		if i == 0 || l[i-1].Host != r.Host {
			names = append(names, o.names[r.Host])
		}
	}
	return names
}

func (o *rankOrder) list(l nccl.Layout) string { return cluster.FormatHosts(o.hosts(l)) }

func (o *rankOrder) print(w io.Writer) {
	d := &o.doc
	switch {
	case d.Kept:
		fmt.Fprintf(w, "order of ranks: as given (--keep-order): %s\n", d.Order)
	case d.Given == d.Order && d.Tried < 2:
		fmt.Fprintf(w, "order of ranks: as given, %s\n", d.Order)
	case d.Given == d.Order:
		fmt.Fprintf(w, "order of ranks: as given, %s; tried beside it: %s, not faster\n", d.Order, counted(d.Tried-1, "other"))
	default:
		fmt.Fprintf(w, "order of ranks: %s; %s a step, in the given order (%s) %s, %.2f times as long; %s tried\n", d.Order, seconds(d.Step), d.Given, seconds(d.Was), d.Was/d.Step, counted(d.Tried, "order"))
	}
}
