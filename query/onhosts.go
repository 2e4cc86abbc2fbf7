package query

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
)

// OnHosts is which hosts of a cluster take part.
type OnHosts struct {
	Hosts string `placeholder:"HOSTLIST" help:"Participating hosts of the cluster in rank order, as a hostlist: gpu[03,07] (default: the cluster's hosts in their order)."`
}

// put has the layouts on the hosts.
func (q *OnHosts) put(shapes []shape) error {
	if q.Hosts == "" {
		return nil
	}
	names, err := cluster.ParseHosts(q.Hosts)
	if err != nil {
		return fmt.Errorf("--hosts: %w", err)
	}
	for i := range shapes {
		if n := shapes[i].nodes; n > len(names) {
			return fmt.Errorf("--hosts names %s; the layout %s has %s", words.Plural(len(names), "host"), shapes[i].text, words.Plural(n, "node"))
		}
		shapes[i].hosts = q.Hosts
	}
	return nil
}

// onNames are the ranks of a layout on hosts by their names: on all of these, or on as many as it has nodes.
func (s shape) onNames(cl *cluster.Cluster) (nccl.Layout, string, error) {
	names, err := cluster.ParseHosts(s.hosts)
	if err != nil {
		return nil, "", fmt.Errorf("--hosts: %w", err)
	}
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
			return nil, fmt.Errorf("--hosts: %s has %s; expected at least %d", names[i], words.Plural(len(gpus), "GPU"), max(n, 1))
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
