package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/step"
)

// hostOrder is hosts that were given.
type hostOrder struct {
	given nccl.Layout
	names map[int]string // as they were given, by the cluster's host
	doc   plan.RankOrder
}

// madeUp are names that readers and presets give to nodes without one.
var madeUp = lazyre.New(`^node[0-9]+$`)

// hasMadeUpNames reports that a cluster's source did not name some hosts.
func hasMadeUpNames(cl *cluster.Cluster) bool {
	return slices.ContainsFunc(cl.Hosts, func(h cluster.Host) bool { return madeUp.MatchString(h.Name) })
}

// ownHosts are the cluster's hosts that Hosts names. There are none where the cluster's names are made up and Hosts has
// the real ones.
func (q *Plan) ownHosts(cl *cluster.Cluster) ([]int, []string, error) {
	if q.Hosts == "" {
		return nil, nil, nil
	}
	names, err := parseHosts(q.Hosts)
	if err != nil {
		return nil, nil, err
	}
	list, strange, err := namedHosts(cl, names)
	switch {
	case err != nil:
		return nil, nil, err
	case strange == "":
		return list, names, nil
	case len(list) == 0 && hasMadeUpNames(cl):
		return nil, nil, nil
	}
	return nil, nil, noHostOf(cl, strange)
}

// hostLayout is what to search on: all or some of the cluster's hosts in their order, or those that Hosts names, in the
// order of the network.
func (p *training) hostLayout(cl *cluster.Cluster) (nccl.Layout, string, *hostOrder, error) {
	s := p.shapes[0]
	hosts, names, err := p.ownHosts(cl)
	if err != nil {
		return nil, "", nil, err
	}
	if hosts == nil {
		l, name, err := s.ranks(cl)
		return l, name, nil, err
	}
	if s.nodes > 0 && s.nodes != len(hosts) {
		return nil, "", nil, fmt.Errorf("--hosts names %d hosts; the layout has %d nodes", len(hosts), s.nodes)
	}
	o := &hostOrder{names: map[int]string{}}
	for i, h := range hosts {
		o.names[h] = names[i]
	}
	if o.given, err = s.ranksOn(cl, hosts, names); err != nil {
		return nil, "", nil, err
	}
	l := o.given
	if !p.Keep {
		l = plan.NetworkOrder(cl, l)
	}
	return l, cmp.Or(s.text, fmt.Sprintf("%dx%d", len(hosts), len(o.given)/len(hosts))), o, nil
}

// arrange puts the hosts into the order that is best for the plan that was picked, and searches again where that is
// another than was searched on.
func (x *planned) arrange(ctx context.Context) (*plan.Answer, error) {
	q, o, answer := x.query, x.order, x.answer
	pick := func() *plan.Plan { return &answer.Plans[min(x.Pick, len(answer.Plans))-1] }
	o.doc.Kept = x.Keep
	if !x.Keep && answer.Whole {
		best, err := plan.Arrange(q, o.given, &pick().Job)
		if err != nil {
			return nil, err
		}
		o.doc.Tried = best.Tried
		if !slices.Equal(best.Layout, q.Layout) {
			was := q.Layout
			q.Layout = best.Layout
			again, err := plan.Search(ctx, q)
			switch {
			case ctx.Err() != nil && err != nil:
				q.Layout = was // stopped before anything was found: what there is was searched on the other
			case err != nil:
				return again, err
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
	o.doc.Given, o.doc.Order = cluster.FormatHosts(o.hosts(o.given)), cluster.FormatHosts(o.hosts(q.Layout))
	o.doc.Step, o.doc.Was = p.Result.Step, was.Step
	return answer, nil
}

// hosts are the names in the order of a layout.
func (o *hostOrder) hosts(l nccl.Layout) []string {
	var names []string
	for i, r := range l {
		if i == 0 || l[i-1].Host != r.Host {
			names = append(names, o.names[r.Host])
		}
	}
	return names
}

// without leaves out the hosts that Avoid names, and takes as many others in their place where a number of nodes was
// asked for.
func (q *Plan) without(cl *cluster.Cluster, l nccl.Layout, name string) (nccl.Layout, string, error) {
	if q.Avoid == "" {
		return l, name, nil
	}
	names, err := cluster.ParseHosts(q.Avoid)
	if err != nil {
		return nil, "", fmt.Errorf("--avoid: %w", err)
	}
	out := map[int]bool{}
	for _, n := range names {
		at := cl.HostIndex(n)
		if at < 0 {
			return nil, "", fmt.Errorf("--avoid: %s is no host of %s, which has %s", n, cl.Name, cl.Hosts[0].Name)
		}
		out[at] = true
	}
	kept := slices.DeleteFunc(slices.Clone(l), func(r nccl.Rank) bool { return out[r.Host] })
	if q.Layout == "" && q.GPUs == 0 {
		if len(kept) == 0 {
			return nil, "", fmt.Errorf("--avoid %s leaves no node of %s", q.Avoid, cl.Name)
		}
		return kept, fmt.Sprintf("%dx%d", hostsOf(kept), ranksOfFirst(kept)), nil
	}
	gpus := ranksOfFirst(l)
	for _, r := range kept {
		out[r.Host] = true
	}
	for h := 0; h < len(cl.Hosts) && len(kept) < len(l); h++ {
		t := cl.TypeOf(h)
		if t == nil || out[h] {
			continue
		}
		if devs := t.Of(cluster.GPU); len(devs) >= gpus {
			for _, d := range devs[:gpus] {
				kept = append(kept, nccl.Rank{Host: h, GPU: d})
			}
		}
	}
	if len(kept) < len(l) {
		return nil, "", fmt.Errorf("--avoid %s leaves %d of the %d GPUs that were asked for", q.Avoid, len(kept), len(l))
	}
	return kept, name, nil
}

// parseHosts reads what --hosts says.
func parseHosts(hosts string) ([]string, error) {
	names, err := cluster.ParseHosts(hosts)
	return names, flagged("--hosts", err)
}

// onHosts has the layouts on the hosts of a hostlist.
func onHosts(hosts string, shapes []shape) error {
	if hosts == "" {
		return nil
	}
	names, err := parseHosts(hosts)
	if err != nil {
		return err
	}
	for i := range shapes {
		if n := shapes[i].nodes; n > len(names) {
			return fmt.Errorf("--hosts names %s; the layout %s has %s", words.Plural(len(names), "host"), shapes[i].text,
				words.Plural(n, "node"))
		}
		shapes[i].hosts = names
	}
	return nil
}

// onNames are the ranks of a layout on hosts by their names: on all of these, or on as many as it has nodes.
func (s shape) onNames(cl *cluster.Cluster) (nccl.Layout, string, error) {
	names := s.hosts
	if s.nodes > 0 {
		names = names[:s.nodes]
	}
	hosts, strange, err := namedHosts(cl, names)
	if err == nil && strange != "" {
		err = noHostOf(cl, strange)
	}
	if err != nil {
		return nil, "", err
	}
	l, err := s.ranksOn(cl, hosts, names)
	if err != nil {
		return nil, "", err
	}
	if s.nodes > 0 {
		return l, s.text, nil
	}
	if each := ranksOfFirst(l); each*len(hosts) == len(l) {
		return l, fmt.Sprintf("%dx%d", len(hosts), each), nil
	}
	return l, "all", nil
}

// namedHosts are a cluster's hosts by their names, and the last name that is none of them.
func namedHosts(cl *cluster.Cluster, names []string) (list []int, strange string, err error) {
	seen := map[int]bool{}
	for i, h := range cl.HostsNamed(names) {
		switch {
		case h < 0:
			strange = names[i]
			continue
		case seen[h]:
			return nil, "", fmt.Errorf("--hosts: %s is named twice", names[i])
		}
		seen[h] = true
		list = append(list, h)
	}
	return list, strange, nil
}

// noHostOf refuses a name.
func noHostOf(cl *cluster.Cluster, name string) error {
	return fmt.Errorf("--hosts: %s is no host of %s, which has %.200s", name, cl.Name, hostNames(cl))
}

// ranksOn are the ranks of a layout on hosts: all their GPUs, or as many of each as it has.
func (s shape) ranksOn(cl *cluster.Cluster, hosts []int, names []string) (nccl.Layout, error) {
	var l nccl.Layout
	for i, h := range hosts {
		var gpus []int
		if t := cl.TypeOf(h); t != nil {
			gpus = t.Of(cluster.GPU)
		}
		n := len(gpus)
		if s.nodes > 0 {
			n = s.gpus
		}
		if n == 0 || n > len(gpus) {
			return nil,
				fmt.Errorf("--hosts: %s has %s; expected at least %d", names[i], words.Plural(len(gpus), "GPU"), max(n, 1))
		}
		for _, g := range gpus[:n] {
			l = append(l, nccl.Rank{Host: h, GPU: g})
		}
	}
	if len(l) > predict.MaxRanks {
		return nil, fmt.Errorf("--hosts: %d GPUs; at most %d", len(l), predict.MaxRanks)
	}
	return l, nil
}
