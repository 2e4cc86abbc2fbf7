package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/counter"
	"busbar.dev/unit"
)

// unlikeNodes compares node types that have GPUs with the commonest one.
func (a *auditor) unlikeNodes() {
	common, total := -1, 0
	for i, t := range a.c.Types {
		if t.Count(cluster.GPU) == 0 {
			continue
		}
		total += len(a.hosts[i])
		if common < 0 || len(a.hosts[i]) > len(a.hosts[common]) {
			common = i
		}
	}
	for i, t := range a.c.Types {
		if i == common || t.Count(cluster.GPU) == 0 || len(a.hosts[i]) == 0 {
			continue
		}
		diff := differences(t, a.c.Types[common])
		if len(diff) == 0 {
			continue
		}
		sev := finding.Warn
		if len(a.hosts[i])*4 > total {
			sev = finding.Note // a second kind of node on purpose, not an odd one out
		}
		a.addFinding("asymmetry-node", sev, cluster.FormatHosts(a.hosts[i]),
			fmt.Sprintf("differs from %s of type %s: %s; in a job over both kinds every step waits for the slower",
				cluster.FormatHosts(a.hosts[common]), a.c.Types[common].Name, strings.Join(diff, "; ")),
			"keep the node out of jobs with the others (Slurm: --exclude or a feature), or repair what differs")
	}
}

// differences says how type t differs from type o in what a job would feel.
func differences(t, o *cluster.NodeType) []string {
	var diff []string
	say := func(format string, args ...any) { diff = append(diff, fmt.Sprintf(format, args...)) }
	if x, y := t.Count(cluster.GPU), o.Count(cluster.GPU); x != y {
		say("%d GPUs instead of %d", x, y)
	}
	if x, y := models(t), models(o); x != y {
		say("GPUs %s instead of %s", x, y)
	}
	var unread map[int]bool
	if t.Count(cluster.NIC) == o.Count(cluster.NIC) {
		unread = unreadNICs(t, o)
	}
	if x, y := nicRates(t, unread), nicRates(o, unread); x != y {
		say("NICs %s instead of %s", x, y)
	}
	if len(diff) == 0 {
		if where := matrixDiffers(t, o); where != "" {
			say("%s", where)
		}
		if x, y := trained(t), trained(o); x != y {
			say("PCIe links %s instead of %s", x, y)
		}
	}
	return diff
}

func models(t *cluster.NodeType) string {
	set := map[string]bool{}
	for _, g := range t.Of(cluster.GPU) {
		set[orUnknown(t.Devices[g].Model.Value)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), " and ")
}

// nicRates sums up NICs by rate, without those at some positions.
func nicRates(t *cluster.NodeType, without map[int]bool) string {
	count := map[string]int{}
	for i, k := range t.Of(cluster.NIC) {
		if without[i] {
			continue
		}
		r := "of unknown rate"
		if rate := readRate(&t.Devices[k]); rate.Known() {
			r = rate.Value.Bits()
		}
		count[r]++
	}
	return cmp.Or(counted(count, " and "), "none")
}

// unreadNICs are positions among the NICs of two types at which the rate of either is not known: what one source more
// says of a node is no difference of the node.
func unreadNICs(types ...*cluster.NodeType) map[int]bool {
	unread := map[int]bool{}
	for _, t := range types {
		for i, k := range t.Of(cluster.NIC) {
			unread[i] = unread[i] || !readRate(&t.Devices[k]).Known()
		}
	}
	return unread
}

// readRate is a NIC's rate where somebody says it; what is assumed is none.
func readRate(d *cluster.Device) (rate cluster.Fact[unit.Rate]) {
	if d.NIC != nil && d.NIC.Rate().Origin != cluster.Assumed {
		rate = d.NIC.Rate()
	}
	return rate
}

// trained sums up the PCIe links of GPUs and NICs by width and speed.
func trained(t *cluster.NodeType) string {
	count := map[string]int{}
	for _, l := range t.Links {
		if l.Kind == cluster.PCIe && l.Lanes > 0 &&
			(t.Devices[l.B].Kind == cluster.GPU || t.Devices[l.B].Kind == cluster.NIC) {
			count[fmt.Sprintf("x%d@%gGT/s", l.Lanes, l.GTs)]++
		}
	}
	return counted(count, ", ")
}

// counted writes how many there are of each, in the order of their names.
func counted(count map[string]int, between string) string {
	var s []string
	for _, r := range slices.Sorted(maps.Keys(count)) {
		s = append(s, fmt.Sprintf("%d × %s", count[r], r))
	}
	return strings.Join(s, between)
}

func matrixDiffers(t, o *cluster.NodeType) string {
	x, y := t.Matrix(), o.Matrix()
	for i := range x.Class {
		for k := i + 1; k < len(x.Class[i]); k++ {
			if i < len(y.Class) && k < len(y.Class[i]) && x.Class[i][k] != y.Class[i][k] {
				return fmt.Sprintf("%s–%s is %s instead of %s", x.Names[i], x.Names[k], x.Class[i][k], y.Class[i][k])
			}
		}
	}
	return ""
}

// outOfService notes hosts that a scheduler gives no jobs, those with one reason together. The cluster as planned has
// them, so that it is no warning, unless they lack what is planned.
func (a *auditor) outOfService() {
	outs, names := a.c.OutOfService()
	for i, o := range outs {
		hosts := cluster.FormatSlurmHosts(names[i])
		text := o.State + " in Slurm when its nodes were listed"
		if o.Reason != "" {
			text += ": " + o.Reason
		}
		level, first := finding.Note, ""
		if strings.Contains(o.Reason, "reported lower than configured") { // slurmd's own words
			level, first = finding.Warn, "what slurm.conf counts is not there: nvidia-smi -L and dmesg on it; "
		}
		a.addFinding("node-unavailable", level, hosts, text+"; no new job starts there",
			fmt.Sprintf("%swhen it is repaired: scontrol update nodename=%s state=resume", first, hosts))
	}
}

// counters reports error counters that are not zero.
func (a *auditor) counters() {
	for h := range a.c.Hosts {
		host := &a.c.Hosts[h]
		for _, id := range host.IDs {
			if len(id.Counters) == 0 {
				continue
			}
			where := host.Name + "/" + id.Device
			if t := a.c.TypeOf(h); t != nil {
				if d := t.ByName(id.Device); d >= 0 {
					where = host.Name + "/" + t.Devices[d].Title()
				}
			}
			if id.Port > 1 {
				where = fmt.Sprintf("%s:%d", where, id.Port)
			}
			a.errorCounters(where, id.Counters)
		}
	}
}

// errorCounters makes one finding of a port's counters.
func (a *auditor) errorCounters(where string, counters map[string]uint64) {
	var s, own []string
	full := false // many packets found no buffer
	for _, k := range slices.Sorted(maps.Keys(counters)) {
		c := counter.Find(k)
		dropped := c != nil && (c.Name == "out_of_buffer" || c.Name == "rx_discards_phy")
		switch {
		// one count for both
		case counters[k] == 0, c != nil && c.Name == "rx_prio_discards" && counters["rx_discards_phy"] > 0:
		case dropped || c != nil && c.Kind == counter.Slow:
			own = append(own, fmt.Sprintf("%s=%d", k, counters[k]))
			full = full || dropped && counters[k] >= 1e6
		case strings.EqualFold(strings.ReplaceAll(k, "_", ""), "portxmitwait"):
			a.say("port-congested", where, k, counters[k])
		default:
			s = append(s, fmt.Sprintf("%s=%d", k, counters[k]))
		}
	}
	if full && len(own) > 1 {
		a.say("host-overrun", where, strings.Join(own, ", "))
	} else {
		s = append(s, own...)
	}
	if len(s) == 0 {
		return
	}
	a.addFinding("error-counters", finding.Warn, where,
		"error counters are not zero: "+strings.Join(s, ", ")+" (counted since they were last cleared)",
		"read them again after an hour under load; if they grow, clean or replace the cable or transceiver and check the "+
			"far port")
}
