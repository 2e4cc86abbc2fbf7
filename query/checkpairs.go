package query

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// standsOut tells whether a table has more than notes.
func standsOut(t *pairs.Table) bool {
	return slices.ContainsFunc(t.Findings(), func(f finding.Finding) bool { return f.Severity != finding.Note })
}

// slowPairs holds all pairs together against the prediction of NCCL's sends and receives between two hosts: where every pair is slow, none
// stands out.
func (d *CheckDoc) slowPairs(x expectation, size unit.Bytes, team device.Team, t *pairs.Table) {
	if x.cluster == nil || len(t.Cells) == 0 || len(x.cluster.Hosts) < 2 {
		return
	}
	rate, margin, err := x.pairRate(size, team[0].Device.NCCL)
	if err != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("pairs were compared with each other only: %v", err))
		return
	}
	_, mid, _ := t.Extremes(pairs.BothGBps)
	d.Expected += ", and the prediction of a pair with its error bar"
	if mid <= 0 || mid >= rate/margin {
		return
	}
	text := fmt.Sprintf("the median pair moves %.2f GB/s each way at once; the prediction says %.2f, and less than %.2f is beyond its error bar", mid, rate, rate/margin)
	d.suspectAll(finding.Finding{ID: "pairs-slow", Severity: finding.Warn, Confidence: 1, Factor: mid / rate, Text: text})
}

// suspectAll adds a finding that any node may be the reason of.
func (d *CheckDoc) suspectAll(f finding.Finding) {
	d.Findings = append(d.Findings, f)
	for i := range d.Nodes {
		if d.Nodes[i].Verdict == "healthy" {
			d.Nodes[i].Verdict, d.Nodes[i].Reasons = "suspect", []string{f.Text}
		}
	}
}

// pairRate is what two hosts send each other at once, one GPU each, as predicted, in GB/s each way, and the error bar of it.
func (x expectation) pairRate(size unit.Bytes, release string) (gbps, margin float64, err error) {
	version, err := (&Env{}).parseNCCL(release)
	if err != nil {
		return 0, 0, err
	}
	l, err := nccl.Block(x.cluster, 2, 1)
	if err != nil {
		return 0, 0, err
	}
	p, err := predict.New(x.cluster, l, version, nil, nil)
	if err != nil {
		return 0, 0, err
	}
	op := coll.Op{Kind: coll.SendRecv, Bytes: size, Type: coll.Uint8}
	s, err := p.Auto(op)
	if err != nil {
		return 0, 0, err
	}
	run, err := p.Price(op, s)
	if err != nil {
		return 0, 0, err
	}
	return float64(size) / run.Time.Micros() / 1e3, run.Margin, nil
}

// together makes one note of those that several hosts have, with the hosts as a list.
func together(locals []checkLocal) []string {
	var list []string
	hosts := map[string][]string{}
	for _, l := range locals {
		for _, n := range l.Notes {
			if hosts[n] == nil {
				list = append(list, n)
			}
			if !slices.Contains(hosts[n], l.Host) {
				hosts[n] = append(hosts[n], l.Host)
			}
		}
	}
	for i, n := range list {
		list[i] = fmt.Sprintf("%s: %s", cluster.FormatSlurmHosts(hosts[n]), n)
	}
	return list
}

// judgePairs adds what pairs show: a node that is slow with everybody is unhealthy, and explains its pairs. Of a slow pair whose nodes are both well
// otherwise nothing says which one it is.
func (d *CheckDoc) judgePairs(t *pairs.Table, reasons, suspect map[string][]string) {
	list := t.Findings()
	for _, f := range list {
		d.Findings = append(d.Findings, f)
		if !pairs.OfPair(f.Kind) && f.Severity != finding.Note {
			for _, r := range f.Ranks {
				reasons[t.Hosts[r]] = append(reasons[t.Hosts[r]], f.Text)
			}
		}
	}
	for _, f := range list {
		if f.Severity == finding.Note || !pairs.OfPair(f.Kind) {
			continue
		}
		known := slices.ContainsFunc(f.Ranks, func(r int) bool { return len(reasons[t.Hosts[r]]) > 0 })
		for _, r := range f.Ranks {
			if !known {
				suspect[t.Hosts[r]] = append(suspect[t.Hosts[r]], f.Text)
			}
		}
	}
}
