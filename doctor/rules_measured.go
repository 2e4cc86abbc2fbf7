package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

const (
	ethGuide = "https://enterprise-support.nvidia.com/s/article/MLNX2-117-1682kn"
)

// measuredRules conclude from what busbar's own programs measured and printed.
func measuredRules() []Rule {
	return []Rule{
		{"rank-died", "the engine's message that a rank's connections closed", "a rank died and the others stopped", trouble, []string{"rank-silent", "peer-died", "connect-failed", "interface-unreachable"}, rankDied},
		{"rank-silent", "the engine's message that a rank has been silent", "a rank hangs, or its host is cut off", trouble, []string{"connect-failed"}, rankSilent},
		{"interface-unreachable", "a connection from an address that leads nowhere, ranks that did not come", "a rank speaks from the wrong network interface", envGuide + "#nccl-socket-ifname", []string{"connect-failed", "rendezvous", "wrong-interface"}, unreachable},
		{"mtu-differs", "ip link of several hosts", "hosts have different MTUs on the same interface", ethGuide, nil, mtuDiffers},
		{"nic-slow", "busbar bench pairs", "one host is slow with everybody: its NIC, cable or port", trouble, []string{"straggler", "pair-slow"}, nicSlow},
		{"uplink-oversubscribed", "busbar bench pairs, all pairs of a round concurrently", "groups of hosts share an uplink that carries less than they send", trouble, []string{"fabric", "pair-slow"}, uplink},
		{"pair-slow", "busbar bench pairs", "two hosts are slow with each other only", trouble, nil, pairSlow},
		{"flat-ring", "where the ranks of a ring are", "a ring in rank order passes each NIC more often than it must", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md", nil, flatRing},
	}
}

func rankDied(c *Case) *finding.Finding {
	list := c.All(evidence.RankDied)
	if len(list) == 0 {
		return nil
	}
	o := list[0]
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.95, Title: fmt.Sprintf("Rank %s on %s died", o.Arg(0), o.Arg(1)), Where: o.Arg(1),
		Cause: fmt.Sprintf("All connections of rank %s closed at the same time, as the kernel does when a process ends: it crashed, was killed (out of memory, a time limit) or its host went down. The others stopped because of it.", o.Arg(0)),
		Fix:   fmt.Sprintf("Look at the log of rank %s and at dmesg of %s first; start the job without that host meanwhile (--elastic goes on without it).", o.Arg(0), o.Arg(1)), Evidence: c.quotes(evidence.RankDied),
	}
}

func rankSilent(c *Case) *finding.Finding {
	list := c.All(evidence.RankSilent)
	if len(list) == 0 {
		return nil
	}
	o := list[0]
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: fmt.Sprintf("Rank %s on %s hangs or is cut off", o.Arg(0), o.Arg(1)), Where: o.Arg(1),
		Cause: fmt.Sprintf("It has said nothing for %s and its connections are open: the process or its host stands still, or the network to it drops everything.", o.Arg(2)),
		Fix:   fmt.Sprintf("ping %s; on it: is the process there, in which state (ps, py-spy dump), what does ip -s link count?", o.Arg(1)), Evidence: c.quotes(evidence.RankSilent),
	}
}

// unreachable is a rank that speaks from an address from which the others cannot
// be reached.
func unreachable(c *Case) *finding.Finding {
	for _, o := range c.All(evidence.LocalDial) {
		why := addressClass(o.Arg(0))
		if why == "" && !strings.Contains(o.Arg(2), "invalid argument") && !strings.Contains(o.Arg(2), "network is unreachable") {
			continue
		}
		if addressClass(o.Arg(1)) == "loopback" { // a job on one host
			continue
		}
		if why == "" {
			why = "of a network that does not lead there"
		}
		host := speaker(o.Quotes)
		return &finding.Finding{
			Severity: finding.Error, Confidence: 0.9, Where: host, Title: fmt.Sprintf("The wrong network interface: %s is %s", o.Arg(0), article(why)),
			Cause: fmt.Sprintf("A rank speaks from %s (%s) and wants %s, which cannot be reached from there, so it never comes to the meeting and the others wait for it.", o.Arg(0), why, o.Arg(1)),
			Fix:   "--bind (or BUSBAR_BIND; for NCCL: NCCL_SOCKET_IFNAME) must name the interface of the cluster's network on every host; ip -br addr shows them.", Evidence: c.quotes(o, evidence.NotCome),
		}
	}
	return nil
}

// addressClass says what an address that other hosts cannot reach is.
func addressClass(a string) string {
	switch {
	case strings.HasPrefix(a, "127.") || a == "[::1]":
		return "loopback"
	case strings.HasPrefix(a, "172.17."):
		return "docker's bridge"
	case strings.HasPrefix(a, "169.254.") || strings.HasPrefix(a, "[fe80"):
		return "link-local"
	case strings.HasPrefix(a, "192.168.122."):
		return "libvirt's bridge"
	}
	return ""
}

func article(s string) string {
	if s == "loopback" {
		return "the loopback"
	}
	return s
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

// mtuDiffers compares the MTUs of one interface on several hosts.
func mtuDiffers(c *Case) *finding.Finding {
	sizes := map[string]map[string][]*evidence.Observation{} // interface, MTU
	for _, o := range c.All(evidence.MTU) {
		name, _, _ := strings.Cut(o.Arg(0), "@")
		if name == "lo" || virtual(name) != "" {
			continue
		}
		if sizes[name] == nil {
			sizes[name] = map[string][]*evidence.Observation{}
		}
		sizes[name][o.Arg(1)] = append(sizes[name][o.Arg(1)], o)
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if len(sizes[name]) < 2 {
			continue
		}
		values := slices.Sorted(maps.Keys(sizes[name]))
		slices.SortStableFunc(values, func(a, b string) int { return counts(sizes[name][a]) - counts(sizes[name][b]) })
		odd, rest := sizes[name][values[0]], sizes[name][values[len(values)-1]]
		where := speaker(odd[0].Quotes)
		switch {
		case where == "" && odd[0].Quotes[0].File == rest[0].Quotes[0].File:
			continue // one listing of one host: a namespace or a container
		case where == "":
			where = odd[0].Quotes[0].File
		}
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.85, Where: where, Title: fmt.Sprintf("MTU %s on %s of %s, %s on the others", values[0], name, where, values[len(values)-1]),
			Cause: "Hosts of one network have different MTUs: packets of the larger size are dropped or cut, connections hang once they send much, or every packet costs more than it must.",
			Fix:   fmt.Sprintf("ip link set %s mtu %s on %s, and the same on the switch ports; ping -M do -s %d HOST tests it.", name, values[len(values)-1], where, atoi(values[len(values)-1])-28), Evidence: c.quotes(odd[0], rest[0]),
		}
	}
	return nil
}

// counts adds up how often observations were made.
func counts(list []*evidence.Observation) (n int) {
	for _, o := range list {
		n += o.Count
	}
	return n
}

// nicSlow is a host that is slow with everybody.
func nicSlow(c *Case) *finding.Finding {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		for _, f := range p.Findings() {
			if f.Kind != pairs.SlowHost && f.Kind != pairs.SlowOut && f.Kind != pairs.SlowIn || f.Severity == finding.Note || len(f.Ranks) == 0 || f.Figure == "latency" {
				continue
			}
			host := p.Names[f.Ranks[0]]
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.85, Where: host, Title: fmt.Sprintf("The NIC of %s is slow: %.0f%% of what the others reach", host, 100*f.Factor),
				Cause: f.Text + ". Others are fast with each other, so it is this host's NIC, cable, switch port or PCIe link, not the fabric.",
				Cost:  fmt.Sprintf("every collective over it takes about %.1f times as long above 1 MiB: a ring is as fast as its slowest link", 1/f.Factor),
				Fix:   "On that host: ethtool INTERFACE or ibstat (negotiated rate), lspci -vv (LnkSta), error counters; swap the cable, then the port.", Evidence: append([]finding.Quote{{File: p.File, Text: f.Text}}, c.histories(host)...),
			}
		}
	}
	return nil
}

// pairSlow is a pair that is slow where its hosts are not.
func pairSlow(c *Case) *finding.Finding {
	for i := range c.Pairs {
		p := &c.Pairs[i]
		for _, f := range p.Findings() {
			if f.Kind != pairs.SlowPair && f.Kind != pairs.OneWay || f.Severity == finding.Note || len(f.Ranks) < 2 || f.Figure == "latency" {
				continue
			}
			severity := finding.Note
			if f.Factor < 0.6 { // less is how pairs differ on a busy machine
				severity = finding.Warn
			}
			return &finding.Finding{
				Severity: severity, Confidence: 0.55, Where: p.Names[f.Ranks[0]] + ", " + p.Names[f.Ranks[1]], Title: "A path is slow: " + f.Text,
				Cause: "Both hosts are fast with others: what is slow is a cable or port between the switches, or a route that many share.",
				Fix:   "Repeat with bench pairs --alone; counters of the switches on that way; the routing (ibtracert, traceroute).", Evidence: append([]finding.Quote{{File: p.File, Text: f.Text}}, c.histories(p.Names[f.Ranks[0]], p.Names[f.Ranks[1]])...),
			}
		}
	}
	return nil
}
