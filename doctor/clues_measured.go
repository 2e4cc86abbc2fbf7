package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
)

// ofFleet are the findings of a fleet, as its statistics tell them; those of one kind are one.
func (c *Case) ofFleet() (found []finding.Finding) {
	at, nodes := map[finding.Kind]int{}, map[finding.Kind][]string{}
	for _, f := range c.Fleet {
		k := f.Kind
		i, ok := at[k]
		if !ok {
			i, at[k] = len(found), len(found)
			found = append(found, finding.Finding{
				ID: string(k), Severity: f.Severity, Confidence: f.Confidence, Title: f.Text, Cause: f.Text, Fix: f.Fix,
			})
		}
		nodes[k] = append(nodes[k], f.Nodes...)
		g := &found[i]
		g.Severity = max(g.Severity, f.Severity)
		g.Where = hostlist(slices.Compact(slices.Sorted(slices.Values(nodes[k]))))
		g.Evidence = first(append(g.Evidence, finding.Quote{File: f.File, Text: f.Text}), maxEvidence)
	}
	return found
}

// unreachable is a rank that connects from an address from which the others cannot be reached.
func (c *Case) unreachable() *clue {
	for _, o := range c.All(evidence.LocalDial) {
		what := addressClass(o.Arg(0))
		if what == "" && !strings.Contains(o.Arg(2), "invalid argument") &&
			!strings.Contains(o.Arg(2), "network is unreachable") {
			continue
		}
		if addressClass(o.Arg(1)) == "the loopback" { // a job on one host
			continue
		}
		return &clue{
			args:   []string{o.Arg(0), cmp.Or(what, "of a network that does not lead there"), o.Arg(1), speaker(o.Quotes)},
			quotes: first(o.Quotes, 1),
		}
	}
	return nil
}

// addressClass says what an address that other hosts cannot reach is.
func addressClass(a string) string {
	switch {
	case strings.HasPrefix(a, "127.") || a == "[::1]":
		return "the loopback"
	case strings.HasPrefix(a, "172.17."):
		return "docker's bridge"
	case strings.HasPrefix(a, "169.254.") || strings.HasPrefix(a, "[fe80"):
		return "link-local"
	case strings.HasPrefix(a, "192.168.122."):
		return "libvirt's bridge"
	}
	return ""
}

// speaker is the host in the label before a quoted line: "node1| …".
func speaker(list []finding.Quote) string {
	for _, q := range list {
		if name, _, ok := strings.Cut(q.Text, "| "); ok && name != "" && !strings.ContainsAny(name, " \t") {
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return ""
}

// mtuDiffers compares the MTUs of one interface on several hosts: the odd one is that of the fewest.
func (c *Case) mtuDiffers() *clue {
	of := map[string][]*evidence.Observation{} // an interface
	for _, o := range c.All(evidence.MTU) {
		if name, _, _ := strings.Cut(o.Arg(0), "@"); name != "lo" && nccllog.Virtual(name) == "" {
			of[name] = append(of[name], o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		hosts := map[string]int{} // with an MTU
		for _, o := range of[name] {
			hosts[o.Arg(1)] += o.Count
		}
		fewer := func(a, b *evidence.Observation) int {
			return cmp.Or(hosts[a.Arg(1)]-hosts[b.Arg(1)], cmp.Compare(a.Arg(1), b.Arg(1)))
		}
		few, most := slices.MinFunc(of[name], fewer), slices.MaxFunc(of[name], fewer)
		odd, rest := few.Quotes[0], most.Quotes[0]
		where := speaker([]finding.Quote{odd})
		if few.Arg(1) == most.Arg(1) || where == "" && odd.File == rest.File {
			continue // one listing of one host: a namespace or a container
		}
		return &clue{
			args:   []string{cmp.Or(where, odd.File), name, few.Arg(1), most.Arg(1), strconv.Itoa(atoi(most.Arg(1)) - 28)},
			quotes: []finding.Quote{odd, rest},
		}
	}
	return nil
}

// pairFault is what a test of all pairs found, of some kinds and above a note: the host or both ends, the finding, the
// part of the rate that is left.
func (c *Case) pairFault(kinds ...finding.Kind) *clue {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if p.Notes {
			continue
		}
		for _, f := range p.Findings() {
			if !slices.Contains(kinds, f.Kind) || f.Severity == finding.Note || len(f.Ranks) == 0 || f.Figure == "latency" {
				continue
			}
			a, b := p.Names[f.Ranks[0]], p.Names[f.Ranks[len(f.Ranks)-1]]
			return &clue{
				args:   []string{a, b, f.Text, fmt.Sprintf("%.0f%%", 100*f.Factor), fmt.Sprintf("%.1f", 1/f.Factor)},
				quotes: []finding.Quote{{File: p.File, Text: f.Text}},
			}
		}
	}
	return nil
}

// nicSlow is a host that is slow with everybody, pairSlow a pair that is slow where its hosts are not.
func (c *Case) nicSlow() *clue  { return c.pairFault(pairs.SlowHost, pairs.SlowOut, pairs.SlowIn) }
func (c *Case) pairSlow() *clue { return c.pairFault(pairs.SlowPair, pairs.OneWay) }

// uplink finds groups of hosts that are fast among themselves and slow with each
// other while all pairs of a round run at once.
func (c *Case) uplink() *clue {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		groups, factor := islands(p)
		if len(groups) < 2 || p.Alone || p.Notes {
			continue
		}
		var names []string
		for _, g := range groups {
			names = append(names, hostlist(g))
		}
		between, share := strings.Join(names, " and "), fmt.Sprintf("%.0f%%", 100*factor)
		text := fmt.Sprintf("pairs within %s are fast, pairs between them reach %s of that", between, share)
		return &clue{
			args:   []string{between, strings.Join(names, " | "), share, fmt.Sprintf("%.1f", 1/factor)},
			quotes: []finding.Quote{{File: p.File, Text: text}},
		}
	}
	return nil
}

// flatRing is a ring of our engine in rank order whose ranks jump between hosts:
// it leaves a host at every step where once a host would do.
func (c *Case) flatRing() *clue {
	for _, o := range c.All(evidence.EngineRun) {
		if o.Arg(2) != "ring" || o.Arg(1) == "mem" {
			continue
		}
		for _, q := range o.Quotes {
			t := tableOf(c, q)
			if t == nil {
				continue
			}
			hosts, crossings := ringCrossings(t.Ranks)
			if hosts < 2 || crossings <= hosts {
				continue
			}
			over := float64(crossings) / float64(hosts)
			return &clue{args: []string{
				strconv.Itoa(len(t.Ranks)), strconv.Itoa(hosts), strconv.Itoa(crossings), fmt.Sprintf("%.1f", over),
			}, quotes: []finding.Quote{q}}
		}
	}
	return nil
}

// islands are groups of at least two hosts such that every pair inside one is
// fast and every pair between two is slow; factor is how slow.
func islands(p *evidence.Pairs) (groups [][]string, factor float64) {
	n := len(p.Names)
	rate := make([]float64, n*n)
	most := 0.0
	for _, m := range p.Cells {
		if m.From < n && m.To < n && (p.Hosts == nil || p.Hosts[m.From] != p.Hosts[m.To]) {
			rate[m.From*n+m.To] = float64(m.Rate)
			most = max(most, float64(m.Rate))
		}
	}
	const fast = 0.65
	of := make([]int, n)
	for i := range of {
		of[i] = -1
	}
	var members [][]int
	for i := range n {
		if of[i] >= 0 {
			continue
		}
		of[i] = len(members)
		group := []int{i}
		for k := i + 1; k < n; k++ {
			if rate[i*n+k] > fast*most && rate[k*n+i] > fast*most {
				of[k] = of[i]
				group = append(group, k)
			}
		}
		members = append(members, group)
	}
	sum, count := 0.0, 0
	for i := range n {
		for k := range n {
			switch r := rate[i*n+k]; {
			case i == k || r == 0:
			case of[i] == of[k] && r < fast*most, of[i] != of[k] && r > fast*most:
				return nil, 0 // no clean cut
			case of[i] != of[k]:
				sum, count = sum+r, count+1
			}
		}
	}
	for _, g := range members {
		if len(g) < 2 {
			return nil, 0
		}
		var names []string
		for _, i := range g {
			names = append(names, p.Names[i])
		}
		groups = append(groups, names)
	}
	if count == 0 {
		return nil, 0
	}
	return groups, sum / float64(count) / most
}

// tableOf is the table that stands in the same text, at or behind a line.
func tableOf(c *Case, q finding.Quote) *nccltests.Table {
	for _, t := range c.Tables {
		if t.File == q.File && len(t.Ranks) > 1 {
			return t.Table
		}
	}
	return nil
}

// ringCrossings counts hosts and how often a ring in rank order changes them.
func ringCrossings(ranks []nccltests.Rank) (hosts, crossings int) {
	where := map[int]string{}
	seen := map[string]bool{}
	for _, r := range ranks {
		where[r.Rank] = r.Host
		seen[r.Host] = true
	}
	n := len(where)
	for i := range n {
		if where[i] != where[(i+1)%n] {
			crossings++
		}
	}
	return len(seen), crossings
}

// slowRank compares the mean time of a rank's steps with the median of all.
func (c *Case) slowRank() *clue {
	if len(c.Steps) < 3 {
		return nil
	}
	var means []float64
	worst := -1
	for r, s := range c.Steps {
		means = append(means, s.Mean())
		if worst < 0 || s.Mean() > c.Steps[worst].Mean() || s.Mean() == c.Steps[worst].Mean() && r < worst {
			worst = r
		}
	}
	median := stats.Nearest(means, 0.5)
	if median <= 0 {
		return nil
	}
	ratio := c.Steps[worst].Mean() / median
	return &clue{
		args:   []string{strconv.Itoa(worst), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.0f%%", 100*(ratio-1))},
		quotes: []finding.Quote{c.Steps[worst].First},
	}
}
