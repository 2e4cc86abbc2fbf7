package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"busbar.dev/engine/bench"
	"busbar.dev/finding"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
)

// checkMeasured is what the pairs of a check showed.
type checkMeasured struct {
	turns    *checkPairs
	table    *pairs.Table
	by, why  string            // what they were measured by, and why by nothing better
	findings []finding.Finding // beyond those of the table
	notes    []string
	rankOf   func(index int) int // of the table
}

// rdmaInCheck is how perftest is run for a check: briefly, for all wait for it.
func (q *Check) rdmaInCheck(with Programs) (*rdmaWorker, error) {
	b := BenchRDMA{Perftest: q.Perftest, Iters: rdmaLeast}
	if err := prepare(&b); err != nil {
		return nil, err
	}
	bw, lat, err := b.tests()
	return &rdmaWorker{q: &b, with: with, bw: bw, lat: lat}, err
}

// checkRails bounds the rounds of a check over all rails together; a port has a few partners at least.
const (
	checkRails    = 32
	checkPartners = 4
)

// pairs measures them by RDMA where all hosts have it, and else over TCP.
func (q *Check) pairs(ctx context.Context, env Env, h *checkHub, expects expectation) (*checkMeasured, error) {
	m, why := q.overRDMA(ctx, h)
	if m == nil && q.By == result.RDMA {
		return nil, errors.New("pairs cannot be measured by RDMA: " + why)
	}
	x := &checkMeasured{by: h.by, why: why, rankOf: func(i int) int { return i }}
	c := &checkPairs{names: rankNames(h.members), away: func(r int) bool { return h.lost[r] != "" }, turn: h.turn, show: env.progress, first: h.first}
	for _, m := range h.members {
		c.hosts = append(c.hosts, m.Host)
	}
	rounds := checkSchedule(len(h.members), q.Rounds)
	if m != nil {
		m.expects = expects
		x.by, x.rankOf, x.findings = result.RDMA, func(e int) int { return m.ends[e].rank }, m.absent
		c = m.turns(env)
		if m.q.Rounds = q.Rounds; q.Rounds == 0 {
			m.q.Rounds = max(checkPartners, checkRails/len(m.rails))
		}
		rounds = m.rounds()
	}
	var err error
	x.turns = c
	if x.table, err = c.measure(ctx, rounds); err != nil {
		return nil, err
	}
	if m != nil {
		for _, f := range m.document(x.table).Findings {
			if f.Kind == rdmaSlowRail {
				x.findings = append(x.findings, f)
			}
		}
		x.notes = m.notes
	} else {
		x.by = h.by
	}
	return x, nil
}

// overRDMA asks hosts for their ports; nil where pairs are not measured by them, and why. A host without an active port where most have one is
// no reason: it is a finding.
func (q *Check) overRDMA(ctx context.Context, h *checkHub) (*rdmaHub, string) {
	if q.By == "tcp" {
		return nil, "as was asked for"
	}
	orders, job := map[int]checkOrder{}, bench.NewSession()
	hosts := map[string]bool{}
	for r, m := range h.members {
		orders[r] = checkOrder{Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}
		hosts[m.Host] = true
	}
	if len(hosts) < max(2, len(h.members)) {
		return nil, "there are not two or more hosts with one rank each"
	}
	m := &rdmaHub{checkHub: h, q: h.rdma.q, names: rankNames(h.members), brief: true}
	replies := h.ask(ctx, orders, rdmaTime)
	with, came := 0, 0
	var lacks []string
	for r := range h.members {
		x, ok := replies[r]
		switch {
		case !ok:
			continue // it is unreachable, which others say
		case len(x.Ports) > 0:
			with++
		case !x.Portless || x.Failed == "":
			lacks = append(lacks, fmt.Sprintf("%s: %s", h.members[r].Host, x.Failed))
		}
		came++
	}
	switch {
	case len(lacks) > 0:
		return nil, "RDMA is not measured: " + lacks[0]
	case with < 2 || 2*with <= came:
		return nil, fmt.Sprintf("%d of %d nodes have an active RDMA port", with, came)
	}
	m.collect(replies)
	m.absent = slices.DeleteFunc(m.absent, func(f finding.Finding) bool { _, ok := replies[f.Ranks[0]]; return !ok })
	return m, ""
}

// turns are those over all ports.
func (m *rdmaHub) turns(env Env) *checkPairs {
	c := &checkPairs{away: func(e int) bool { return m.lost[m.ends[e].rank] != "" }, turn: m.turn, show: env.progress, every: true, first: m.first}
	for _, e := range m.ends {
		c.names, c.hosts = append(c.names, m.portName(e)), append(c.hosts, m.members[e.rank].Host)
	}
	return c
}

// whole are the ranks whose pairs all came to an end.
func (x *checkMeasured) whole(h *checkHub) (list []int) {
	bad := map[int]bool{}
	for _, m := range x.table.Cells {
		if m.Failed != "" {
			bad[x.rankOf(m.From)], bad[x.rankOf(m.To)] = true, true
		}
	}
	for i := range x.table.Names {
		if x.turns.out(i) {
			bad[x.rankOf(i)] = true
		}
	}
	for r := range h.members {
		if !bad[r] && h.lost[r] == "" {
			list = append(list, r)
		}
	}
	return list
}
