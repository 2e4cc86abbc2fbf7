package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// How much of a run's traffic is printed before the rest is counted.
const (
	maxTextNICs  = 64
	maxRings     = 16 // and trees
	maxStretches = 32 // changes of host of one ring
	maxRingRanks = 64 // ranks of a ring that are listed one by one
	maxTreeText  = 1200
)

// trafficView is a run that is printed, for an all-reduce of a size.
type trafficView struct {
	*printer
	*traffic.Run
	size unit.Bytes
	hops map[[3]int]*traffic.Hop // of rings, by channel and ranks
}

// Traffic prints a run's traffic for a terminal: NICs with what an all-reduce of size sends through each, rings, trees,
// what is odd.
func Traffic(page *Page, r *traffic.Run, size unit.Bytes) {
	v := &trafficView{&printer{Page: page}, r, size, map[[3]int]*traffic.Hop{}}
	ways := map[string]int{}
	for i := range r.Hops {
		h := &r.Hops[i]
		ways[way(h)]++
		if h.Ring {
			v.hops[[3]int{h.Channel, h.From, h.To}] = h
		}
	}
	hosts := " on " + words.Plural(len(r.Hosts), "host")
	if n := len(r.Unseen); n > 0 {
		hosts = fmt.Sprintf(", %d of them%s in the log", r.NRanks-n, hosts)
	}
	v.lines(v.bold(fmt.Sprintf("%s%s, %s", words.Plural(r.NRanks, "rank"), hosts,
		words.Plural(len(r.Channels), "channel"))))
	facts := nonEmpty(filepath.Base(r.Source), when(r.NCCL != "", "NCCL "+r.NCCL),
		when(r.Comm != "", "communicator "+r.Comm), when(r.Comms > 1, fmt.Sprintf("1 of %d, --comm names another", r.Comms)))
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		facts = append(facts, words.Plural(ways[name], "hop")+" "+name)
	}
	v.para("", strings.Join(facts, " · "))
	v.nicTable()
	var rings, trees grouped[string, int]
	for i := range r.Channels {
		c := &r.Channels[i]
		if len(c.Ring) > 0 {
			rings.put(v.ringText(c), c.Index)
		}
		if c.Parent != nil {
			trees.put(v.treeText(c), c.Index)
		}
	}
	v.channels("Rings", &rings)
	v.channels("Trees", &trees)
	v.oddities()
}

// way is how a hop goes, without device numbers.
func way(h *traffic.Hop) string {
	switch {
	case h.Transport == "NET":
		return "NET" + when(h.GDR, "/GDRDMA") + when(h.Proxy >= 0, " through another GPU (PXN)")
	case h.Transport == "":
		return "not in the log"
	}
	return h.Via
}

// amount is a part of the all-reduce in bytes, with three digits.
func (v *trafficView) amount(part float64) string {
	b := part * float64(v.size)
	for i, name := range []string{"GiB", "MiB", "KiB"} {
		if size := float64(unit.GiB >> (10 * i)); b >= size {
			return fmt.Sprintf("%.3g %s", b/size, name)
		}
	}
	return cmp.Or(when(b > 0, fmt.Sprintf("%.0f B", b)), "-")
}

// nicTable is the table of loads, hosts whose NICs carry the same together where they are many.
func (v *trafficView) nicTable() {
	if len(v.NICs) == 0 {
		return
	}
	v.heading(fmt.Sprintf("NICs, for an all-reduce of %v by the rings", v.size))
	nics := make([][]int, len(v.Hosts))
	for i, n := range v.NICs {
		nics[n.Host] = append(nics[n.Host], i)
	}
	var alike grouped[string, int]
	for h := range v.Hosts {
		key := when(len(v.Hosts) <= 4, fmt.Sprint(h))
		for _, i := range nics[h] {
			n := &v.NICs[i]
			key += fmt.Sprintln(v.NICName(i), n.Out, n.In, n.GDR, n.Hops, n.Channels)
		}
		alike.put(key, h)
	}
	byLoad := func(x, y traffic.NIC) int { return cmp.Compare(x.Load(), y.Load()) }
	busiest := slices.MaxFunc(v.NICs, byLoad)
	t := v.columns("host", "NIC", ">out", ">in", ">GDR", "channels", "ranks", "")
	for _, list := range alike.lists() {
		var names []string
		for _, h := range list {
			names = append(names, v.Hosts[h].Name)
		}
		for _, i := range nics[list[0]] {
			n := &v.NICs[i]
			t.Row(cluster.FormatHosts(names), v.NICName(i), v.amount(n.Out), v.amount(n.In),
				cmp.Or(when(n.Hops > 0, fmt.Sprintf("%d/%d", n.GDR, n.Hops)), "-"), words.Numbers(n.Channels),
				when(len(list) == 1, words.Numbers(n.Ranks)), when(n.Hops == 0, v.yellow("idle")))
		}
	}
	v.first(t, maxTextNICs, ": --json")
	if busiest.Rate > 0 && busiest.Load() > 0 {
		v.para("  ", fmt.Sprintf("At %v, the busiest NIC holds an all-reduce by these rings to %v of bus bandwidth.",
			busiest.Rate, unit.Rate(float64(busiest.Rate)/busiest.Load()*2*float64(v.NRanks-1)/float64(v.NRanks))))
	}
}

// channels lists rings or trees, those of channels that are alike once.
func (v *trafficView) channels(title string, like *grouped[string, int]) {
	if len(like.order) == 0 {
		return
	}
	v.heading(title)
	for i, text := range like.order {
		if i == maxRings {
			v.printf("  and more that differ: --json\n")
			return
		}
		v.para("  ", v.dim(words.Numbers(like.of[text])+": ")+text)
	}
}

// ringText writes a ring as it passes hosts, with the NICs by which it goes on to the next in brackets, as NCCL numbers
// them.
func (v *trafficView) ringText(c *traffic.Channel) string {
	host := func(rank int) int {
		if rank < 0 || rank >= v.NRanks {
			return -1
		}
		return v.HostOf[rank]
	}
	var stretches [][]int // of one host
	for i, k := range c.Ring {
		if i == 0 || host(k) != host(c.Ring[i-1]) {
			stretches = append(stretches, nil)
		}
		last := &stretches[len(stretches)-1]
		*last = append(*last, k)
	}
	number := func(nic int) string {
		if nic < 0 {
			return "?"
		}
		return fmt.Sprint(v.NICs[nic].Dev)
	}
	var parts []string
	for i, on := range stretches {
		if i == maxStretches {
			return strings.Join(parts, " ") + fmt.Sprintf(" … and on, %d times more to another host", len(stretches)-i)
		}
		text := strings.Trim(fmt.Sprint(on), "[]")
		if len(c.Ring) > maxRingRanks {
			text = words.Numbers(slices.Sorted(slices.Values(on)))
		}
		if h := v.hops[[3]int{c.Index, on[len(on)-1], stretches[(i+1)%len(stretches)][0]}]; h != nil && len(stretches) > 1 {
			text += " (" + number(h.Out) + "›" + number(h.In) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ") + when(c.Cut, " … cut in the log")
}

// treeWriter writes a tree of ranks, as much of it as there is room for.
type treeWriter struct {
	strings.Builder
	hostOf []int
	kids   map[int][]int
}

// branch writes what hangs on a rank with brackets, and = where it is on another host: root (child =child-grandchild).
func (t *treeWriter) branch(rank int) {
	if t.Len() > maxTreeText {
		return
	}
	fmt.Fprint(t, rank)
	several := len(t.kids[rank]) > 1
	t.WriteString(when(several, " ("))
	for i, k := range t.kids[rank] {
		t.WriteString(when(i > 0, " "))
		t.WriteString(either(t.hostOf[rank] != t.hostOf[k], "=", when(!several, "-")))
		t.branch(k)
	}
	t.WriteString(when(several, ")"))
}

func (v *trafficView) treeText(c *traffic.Channel) string {
	t := &treeWriter{hostOf: v.HostOf, kids: map[int][]int{}}
	// Children of the same host come first, so that a host's chain runs straight on.
	for _, own := range []bool{true, false} {
		for i, p := range c.Parent {
			if p >= 0 && (v.HostOf[i] == v.HostOf[p]) == own {
				t.kids[p] = append(t.kids[p], i)
			}
		}
	}
	for i, p := range c.Parent { // -2 is the top of a branch whose upper part the log does not show
		if p == -1 || p == -2 && len(t.kids[i]) > 0 {
			t.WriteString(when(t.Len() > 0, "; "))
			t.branch(i)
		}
	}
	return t.String() + when(t.Len() > maxTreeText, " … (--json has all)")
}

func (v *trafficView) oddities() {
	if len(v.Odd) > 0 {
		v.heading("Noteworthy")
	}
	for _, o := range v.Odd {
		v.para("  ", o.Text+when(o.Hops > 0, fmt.Sprintf(" (%s, line %d)", words.Plural(o.Hops, "hop"), o.Line)))
	}
}
