package report

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// group is the hosts of one node type; t is nil for hosts whose inside nobody
// described.
type group struct {
	t     *cluster.NodeType
	hosts []int // indexes into Cluster.Hosts, in order
}

// groups sorts the hosts by type, in the order of the types. Types without a host
// are kept, so that a bare node can be shown. Hosts without a type come last.
func groups(c *cluster.Cluster) []group {
	all := make([]group, len(c.Types)+1)
	for i, t := range c.Types {
		all[i].t = t
	}
	for i, h := range c.Hosts {
		at := h.Type
		if c.TypeOf(i) == nil {
			at = len(c.Types)
		}
		all[at].hosts = append(all[at].hosts, i)
	}
	if all[len(c.Types)].hosts == nil {
		return all[:len(c.Types)]
	}
	return all
}

// names lists the hosts that have a name.
func (g group) names(c *cluster.Cluster) []string { return hostNames(c, g.hosts) }

// hostNames lists the names of hosts in the order people count them; the order of
// a file is that of a log or of a cabling plan.
func hostNames(c *cluster.Cluster, hosts []int) []string {
	var names []string
	for _, h := range hosts {
		if n := c.Hosts[h].Name; n != "" {
			names = append(names, n)
		}
	}
	return natural.Sort(names)
}

// hostList writes names as a hostlist of at most width runes; what does not fit
// is counted. A width below 1 means no limit.
func hostList(names []string, width int) string {
	s := cluster.FormatHosts(names)
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	shown := sort.Search(len(names), func(n int) bool { return len(cluster.FormatHosts(names[:n+1])) > width-14 })
	if shown == 0 {
		return cut1(s, width)
	}
	return fmt.Sprintf("%s, … and %d more", cluster.FormatHosts(names[:shown]), len(names)-shown)
}

// cut1 shortens one item.
func cut1(s string, width int) string {
	r := []rune(s)
	return strings.TrimRight(string(r[:max(1, width-1)]), ",-") + "…"
}

// children lists what hangs on each device, in order, and what hangs on nothing.
func children(t *cluster.NodeType) (of [][]int, top []int) {
	of = make([][]int, len(t.Devices))
	for i := range t.Devices {
		p := t.Devices[i].Parent
		if p < 0 || p >= len(t.Devices) {
			top = append(top, i)
			continue
		}
		of[p] = append(of[p], i)
	}
	return of, top
}

// uplinks finds the link of each device to its parent, -1 where there is none.
func uplinks(t *cluster.NodeType) []int {
	up := slices.Repeat([]int{-1}, len(t.Devices))
	for i, l := range t.Links {
		switch {
		case t.Devices[l.B].Parent == l.A:
			up[l.B] = i
		case t.Devices[l.A].Parent == l.B:
			up[l.A] = i
		}
	}
	return up
}

// deviceTitles is what people call each device. A system label that several
// devices of the node have (every tray its own mlx5_0) does not tell them apart;
// those go by their name.
func deviceTitles(t *cluster.NodeType) []string {
	used := make(map[string]int)
	for i := range t.Devices {
		used[t.Devices[i].Title()]++
	}
	titles := make([]string, len(t.Devices))
	for i := range t.Devices {
		if titles[i] = t.Devices[i].Title(); used[titles[i]] > 1 {
			titles[i] = t.Devices[i].Name
		}
	}
	return titles
}

// deviceNames lists devices by what people call them, with runs of numbers folded.
func deviceNames(titles []string, ids []int) string {
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = titles[d]
	}
	return strings.ReplaceAll(cluster.FormatHosts(names), ",", ", ")
}

// numaOf is the NUMA domain of a device: what the tree says, else what a tool
// read, else unknown (-1).
func numaOf(t *cluster.NodeType, d int) int {
	if n := t.Above(d, cluster.NUMA); n >= 0 && t.Devices[n].Index >= 0 {
		return t.Devices[n].Index
	}
	dev := &t.Devices[d]
	if dev.GPU != nil && dev.GPU.NUMA.Known() {
		return dev.GPU.NUMA.Value
	}
	if dev.NIC != nil && dev.NIC.NUMA.Known() {
		return dev.NIC.NUMA.Value
	}
	return -1
}

// domainTitle is NUMA 1, and for a domain whose number no source says NUMA ?, with
// a letter where there are several of those.
func domainTitle(t *cluster.NodeType, numa int) string {
	if i := t.Devices[numa].Index; i >= 0 {
		return "NUMA " + strconv.Itoa(i)
	}
	var all []int
	for _, d := range t.Of(cluster.NUMA) {
		if unnumbered(&t.Devices[d]) {
			all = append(all, d)
		}
	}
	at := slices.Index(all, numa)
	switch n := len(all); {
	case n < 2:
		return "NUMA ?"
	case n <= 26:
		return "NUMA ?" + string(rune('a'+at))
	}
	return "NUMA ?" + strconv.Itoa(at+1)
}

// unnumbered reports a NUMA domain whose number no source says: it was put there
// to fit what the sources say, and its name would pass for a number.
func unnumbered(dev *cluster.Device) bool { return dev.Kind == cluster.NUMA && dev.Index < 0 }

// deviceName is the name of a device in the model, or domainTitle.
func deviceName(t *cluster.NodeType, d int) string {
	if unnumbered(&t.Devices[d]) {
		return domainTitle(t, d)
	}
	return t.Devices[d].Name
}

// coresOf is the cpulist that belongs to a device.
func coresOf(t *cluster.NodeType, d int) string {
	if g := t.Devices[d].GPU; g != nil && g.Cores != "" {
		return g.Cores
	}
	if n := t.Above(d, cluster.NUMA); n >= 0 && t.Devices[n].CPU != nil {
		return t.Devices[n].CPU.Cores
	}
	return ""
}

// trayCount is the number of trays of a node; what a file claims is held against
// what it shows, so that a number alone makes nothing grow.
func trayCount(t *cluster.NodeType) int {
	last := 0
	for i := range t.Devices {
		last = max(last, t.Devices[i].Tray)
	}
	return min(t.Trays, last+1, len(t.Devices))
}

// shortCores writes a cpulist in few characters: every second core of a socket as
// 0-62:2, which taskset reads too, and a list that is still longer than width cut.
func shortCores(list string, width int) string {
	if len(list) <= width/2 {
		return list
	}
	parts := strings.Split(list, ",")
	if step, ok := stride(parts); ok && len(parts) > 2 {
		list = fmt.Sprintf("%s-%s:%d", parts[0], parts[len(parts)-1], step)
	}
	if len(list) > width {
		list = cut1(list, width)
	}
	return list
}

// stride is the step between numbers that all differ by the same.
func stride(parts []string) (int, bool) {
	prev, step := 0, 0
	for i, s := range parts {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			return 0, false
		case i == 1:
			step = n - prev
		case i > 1 && n-prev != step:
			return 0, false
		}
		prev = n
	}
	return step, step > 0
}
