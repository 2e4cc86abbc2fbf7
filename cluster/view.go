package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// A scheduler's topology names groups of hosts, not cables. Where another source has the cables, it is a view on that
// fabric: it becomes no second one, is compared with it, and kept for what the scheduler would choose.

// viewsOf tells which fragments are views on the fabric that another one describes.
func viewsOf(frags []*Fragment) []bool {
	views := make([]bool, len(frags))
	cabled := slices.ContainsFunc(frags, func(f *Fragment) bool { return f.Network.Cabled() })
	for i, f := range frags {
		views[i] = cabled && f.Network.Logical()
	}
	return views
}

// Cabled reports whether the network says which NIC of a host is on which switch.
func (n *Network) Cabled() bool {
	return slices.ContainsFunc(n.Links, func(l NetLink) bool {
		host, _, ok := l.HostEnd()
		return ok && len(host.Hosts) > 0 && host.NIC >= 0
	})
}

// TrunksUnknown reports links between switches of which no source says the rate, as those of a scheduler's topology.
func (n *Network) TrunksUnknown() bool {
	between := false
	for i := range n.Links {
		l := &n.Links[i]
		if l.A.ToHosts() || l.B.ToHosts() {
			continue
		}
		if between = true; l.Rate.Known() {
			return false
		}
	}
	return between && !n.Oversubscription.Known()
}

// Logical reports whether the network knows only which hosts belong together.
func (n *Network) Logical() bool {
	if len(n.Switches) == 0 {
		return false
	}
	for i := range n.Switches {
		if s := &n.Switches[i]; s.GUID != "" || s.LID > 0 || s.Model != "" || s.Ports > 0 {
			return false
		}
	}
	for i := range n.Links {
		l := &n.Links[i]
		if l.A.NIC >= 0 || l.B.NIC >= 0 || l.A.Port > 0 || l.B.Port > 0 || l.Rate.Known() || l.Max.Known() {
			return false
		}
	}
	return true
}

// groups reports whether a link is that of a domain, which no cabling shows.
func (n *Network) groups(l *NetLink) bool { return n.isDomain(l.A) || n.isDomain(l.B) }

// isDomain reports an end at a grouping.
func (n *Network) isDomain(e End) bool {
	return !e.ToHosts() && e.Switch < len(n.Switches) && n.Switches[e.Switch].Domain
}

// compareView warns of hosts that a view names and the cabling does not, and of a switch of the view whose hosts are on
// different leaves.
func (j *joiner) compareView(frags []*Fragment, fi int) {
	leaves := j.leavesOf()
	f := frags[fi]
	var absent []string
	for h := range f.Hosts {
		for _, to := range j.hostMap[fi][h] {
			if len(leaves[to]) == 0 {
				absent = append(absent, j.out.Hosts[to].Name)
			}
		}
	}
	warn := func(where, format string, args ...any) {
		j.out.Warnings = append(j.out.Warnings, Warning{Source: f.title(), Where: where, Text: fmt.Sprintf(format, args...)})
	}
	if len(absent) > 0 {
		warn("", "the cabling shows no switch for %s", FormatHosts(absent))
	}
	for i := range f.Network.Links {
		l := &f.Network.Links[i]
		if l.A.ToHosts() || !l.B.ToHosts() || l.A.Switch >= len(f.Network.Switches) || f.Network.Switches[l.A.Switch].Domain {
			continue
		}
		var first []int
		firstHost := -1
		for h := range l.B.EachHost(len(f.Hosts)) {
			for _, to := range j.hostMap[fi][h] {
				switch at := leaves[to]; {
				case len(at) == 0 || firstHost == -2:
				case firstHost < 0:
					first, firstHost = at, to
				case !within(first, at) && !within(at, first): // a cable that is missing makes no other leaf
					warn(f.Network.Switches[l.A.Switch].Name, "groups %s, cabled to %s, with %s, cabled to %s",
						j.out.Hosts[firstHost].Name, j.switchNames(first), j.out.Hosts[to].Name, j.switchNames(at))
					firstHost = -2
				}
			}
		}
	}
}

// keepView makes a view's switches, without its groupings, the scheduler's.
func (j *joiner) keepView(frags []*Fragment, fi int) {
	net, f := &j.out.Network, frags[fi]
	if net.Scheduler != nil {
		return
	}
	at := make([]int, len(f.Network.Switches)) // in Scheduler
	for i, s := range f.Network.Switches {
		if at[i] = -1; !s.Domain {
			at[i] = len(net.Scheduler)
			net.Scheduler = append(net.Scheduler, SchedulerSwitch{Name: s.Name})
		}
	}
	for i := range f.Network.Links {
		l := &f.Network.Links[i]
		if l.A.ToHosts() || l.A.Switch >= len(at) || at[l.A.Switch] < 0 {
			continue
		}
		if !l.B.ToHosts() {
			if l.B.Switch < len(at) && at[l.B.Switch] >= 0 {
				net.Scheduler[at[l.B.Switch]].Up = f.Network.Switches[l.A.Switch].Name
			}
			continue
		}
		s := &net.Scheduler[at[l.A.Switch]]
		for h := range l.B.EachHost(len(f.Hosts)) {
			for _, to := range j.hostMap[fi][h] {
				s.Hosts = append(s.Hosts, j.out.Hosts[to].Name)
			}
		}
	}
}

// within reports that all of the sorted a are in the sorted b.
func within(a, b []int) bool {
	for _, x := range a {
		if _, found := slices.BinarySearch(b, x); !found {
			return false
		}
	}
	return true
}

// leavesOf lists, per host, the boxes that it is cabled to, in order.
func (j *joiner) leavesOf() [][]int {
	leaves := make([][]int, len(j.out.Hosts))
	j.out.EachHostLink(func(_ *NetLink, sw, h int) {
		if at, found := slices.BinarySearch(leaves[h], sw); !found {
			leaves[h] = slices.Insert(leaves[h], at, sw)
		}
	})
	return leaves
}

func (j *joiner) switchNames(list []int) string {
	const most = 3
	var names []string
	for _, s := range list[:min(len(list), most)] {
		names = append(names, j.out.Network.Switches[s].Name)
	}
	text := strings.Join(names, ", ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// findRails recognises a rail-optimised network by its cabling, where no source says so: at least two NICs of a host
// have leaves of their own, each shared by the same NIC of several hosts.
func (n *Network) findRails() {
	if n.Rails > 0 {
		return
	}
	nics := map[int]map[int]int{} // per switch: hosts by NIC
	for i := range n.Links {
		host, sw, ok := n.Links[i].HostEnd()
		if !ok || len(host.Hosts) == 0 || n.Switches[sw.Switch].Domain {
			continue
		}
		if host.NIC < 0 {
			return // nobody knows
		}
		if nics[sw.Switch] == nil {
			nics[sw.Switch] = map[int]int{}
		}
		for _, s := range host.Hosts {
			nics[sw.Switch][host.NIC] += s.N
		}
	}
	mixed, shared := map[int]bool{}, map[int]bool{} // by NIC
	rail := map[int]int{}                           // by switch: the NIC of most hosts, since a few cables may be swapped
	for sw, list := range nics {
		common, ok := commonNIC(list)
		if ok || len(list) == 1 {
			rail[sw] = common
			shared[common] = shared[common] || list[common] > 1
			continue
		}
		for nic := range list {
			mixed[nic] = true
		}
	}
	var rails []int
	for nic := range shared {
		if shared[nic] && !mixed[nic] {
			rails = append(rails, nic)
		}
	}
	if len(rails) < 2 {
		return
	}
	slices.Sort(rails)
	n.Rails = len(rails)
	for sw, nic := range rail {
		if r := slices.Index(rails, nic); r >= 0 && n.Switches[sw].Rail < 0 {
			n.Switches[sw].Rail = r
		}
	}
}
