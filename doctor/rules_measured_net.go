package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/input/nccltests"
	"busbar.dev/result"
)

// uplink finds groups of hosts that are fast among themselves and slow with each
// other while all pairs of a round run at once.
func uplink(c *Case) *finding.Finding {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		groups, factor := islands(p)
		if len(groups) < 2 || p.Alone {
			continue
		}
		var names []string
		for _, g := range groups {
			names = append(names, hostlist(g))
		}
		text := fmt.Sprintf("pairs within %s are fast, pairs between them reach %.0f%% of that", strings.Join(names, " and "), 100*factor)
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.8, Where: strings.Join(names, " | "), Title: fmt.Sprintf("The uplink between %s is oversubscribed: %.0f%% of what hosts send", strings.Join(names, " and "), 100*factor),
			Cause: "Hosts are fast with those of their own group and slow with all of the other when several pairs talk at once: each group sits below a leaf switch whose uplinks carry less than its hosts send.",
			Cost:  fmt.Sprintf("what crosses takes about %.1f times as long when all hosts send; a ring in the order of the groups crosses once each way and suffers least", 1/factor),
			Fix:   "Ranks in the order of the leaves (busbar plan --hosts, Slurm's topology plugin), hierarchical collectives, or more uplinks. bench pairs --alone: if single pairs are fast, it is sharing and not a bad cable.", Evidence: []finding.Quote{{File: p.File, Text: text}},
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

// flatRing is a ring of our engine in rank order whose ranks jump between hosts:
// it leaves a host at every step where once a host would do.
func flatRing(c *Case) *finding.Finding {
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
			f := &finding.Finding{
				Severity: finding.Warn, Confidence: 0.85, Title: fmt.Sprintf("A flat ring over a shared NIC: %d hops between hosts where %d would do", crossings, hosts),
				Cause: fmt.Sprintf("%d ranks on %d hosts, and each rank's neighbour in the ring is on another host: every hop passes the NIC that the ranks of a host share, so each byte passes it %.3g times as often as in a ring that visits the hosts one after the other.", len(t.Ranks), hosts, over),
				Cost:  fmt.Sprintf("about %.1f times slower all-reduce above 1 MiB", over),
				Fix:   "Place ranks by node: Slurm's --distribution=block, mpirun --map-by ppr:N:node, host files that name a host once with its slots; not cyclic, not by-node.", Evidence: []finding.Quote{q},
			}
			if best, algo := c.fasterRun(t); best > 1.3 {
				f.Cost += fmt.Sprintf("; measured: %s is %.1f times as fast", algo, best)
				f.Confidence = 0.9
			}
			return f
		}
	}
	return nil
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

// fasterRun is how many times as fast another run of the same collective and size
// was, and its algorithm.
func (c *Case) fasterRun(slow *nccltests.Table) (best float64, algo string) {
	if len(slow.Sweeps) == 0 {
		return 0, ""
	}
	points := slow.Sweeps[len(slow.Sweeps)-1].Points
	last := points[len(points)-1]
	for _, t := range c.Tables {
		if t.Table == slow || t.Op != slow.Op || len(t.Ranks) != len(slow.Ranks) {
			continue
		}
		for _, r := range result.Sweeps(t.Sweeps).Rows() {
			if r.InPlace || r.Size != last.Size || last.Out == nil {
				continue
			}
			if f := float64(last.Out.Mean()) / float64(r.Mean()); f > best {
				best, algo = f, "another run"
				for _, o := range c.All(evidence.EngineRun) {
					for _, q := range o.Quotes {
						if q.File == t.File {
							algo = o.Arg(2)
						}
					}
				}
			}
		}
	}
	return best, algo
}
