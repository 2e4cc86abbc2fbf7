package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// How much of a long list is printed before the rest is only counted.
const (
	maxMatrix  = 24 // devices in the matrix of the text
	maxNICRows = 16 // devices in a matrix that still has the rows of NICs

	maxWholeMatrix = 8 // devices in the matrix of a cluster's node that is printed whole
	maxGPURows     = 16
	maxSwitches    = 40
	maxNotes       = 20
	maxLinks       = 12
)

// clusterText prints a cluster for a terminal: what it has, its nodes in a line each and the network; then the tree of
// every kind of node, its matrix, what lies nearest to what, and what the readers noticed. The count of findings, which
// are printed elsewhere, stands in its first line.
func clusterText(page *Page, c *cluster.Cluster, findings string) {
	p := &printer{Page: page, c: c, compact: !page.Verbose && len(c.Hosts) > 1}
	p.headline(findings)
	all := p.families(c.ByType())
	p.nodes(all)
	p.network()
	for _, f := range all {
		if f.Type != nil {
			p.nodeType(f.Type)
		}
	}
	p.warnings()
	if p.rates || p.folded {
		p.printf("\n")
	}
	if p.rates {
		p.para("", p.dim("Rates are one direction; GB = 10⁹ bytes. Brackets give a figure's source; spec: data sheet."))
	}
	if p.folded {
		p.para("", p.dim("What is alike is shown once; -v shows all."))
	}
}

// printer writes about a cluster.
type printer struct {
	*Page
	c     *cluster.Cluster
	rates bool // a rate was printed
	// compact folds nodes, branches of the PCIe tree and tables that are alike: a cluster is more than a screen without
	// that.
	compact, folded bool
	// titles are what the devices of the node type at hand are called.
	titles []string
}

// few prints as many lines as there is room for, and what is said of the rest.
func (p *printer) few(lead string, lines []string, most int, rest string) {
	for _, l := range lines[:min(most, len(lines))] {
		p.para("  ", lead+l)
	}
	if len(lines) > most {
		p.printf("  … and %s\n", rest)
	}
}

func (p *printer) headline(findings string) {
	s := p.c.Summary()
	p.list(p.bold(cmp.Or(p.c.Name, "cluster"))+"  ", "  ",
		nonEmpty(append(s.Parts(), when(s.GPUs == 0, "no GPU known"), findings)...))
	if len(p.c.Sources) > 0 {
		p.para("", p.dim("from "+strings.Join(firstOf(p.c.Sources, 6, "… "), ", ")))
	}
}

// firstOf are the first of a list, and how many more there are.
func firstOf(list []string, most int, more string) []string {
	if n := len(list) - most; n > 0 {
		return append(list[:most:most], fmt.Sprintf(more+"and %d more", n))
	}
	return list
}

// nodes prints what a node of each kind has, and how those that are nearly like it differ.
func (p *printer) nodes(all []family) {
	if len(all) > 0 {
		p.heading("Nodes")
	}
	for _, f := range all {
		g := f.all()
		title, names := "not described", p.c.NamesOf(g.Hosts)
		if g.Type != nil {
			title = nodeName(g.Type)
		}
		p.para("  ", title+when(len(g.Hosts) > 1, fmt.Sprintf(" × %d", len(g.Hosts)))+
			when(len(names) > 0, ": "+hostList(names, 2*p.width)))
		if g.Type != nil {
			p.list("    ", "    ", p.nodeWords(g.Type))
		}
		for i, n := range f.near {
			if i == maxNotes {
				p.printf("    %s\n", p.dim(fmt.Sprintf("… and %s more that differ", words.Plural(len(f.near)-i, "kind"))))
				break
			}
			p.folded = true
			p.para("    ", hostList(p.c.NamesOf(n.Hosts), p.width)+": "+strings.Join(n.differs, "; "))
		}
	}
	p.outOfService()
}

// outOfService prints the nodes that a scheduler gives no jobs, by state; the audit has the reasons.
func (p *printer) outOfService() {
	by := map[string][]int{}
	for i := range p.c.Hosts {
		if o := p.c.Hosts[i].Out; o != nil {
			by[o.State] = append(by[o.State], i)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(by)) {
		p.para("  ", p.yellow(state)+" in Slurm: "+hostList(p.c.NamesOf(by[state]), 2*p.width))
	}
}

// nodeWords sums up the GPUs of a node, the links between them, its NICs and its sockets.
func (p *printer) nodeWords(t *cluster.NodeType) []string {
	caption := func(k cluster.Kind) string {
		return cmp.Or(strings.Join(deviceCaption(t, k), ", "), "no "+strings.ToUpper(k.String())+" known")
	}
	list := []string{caption(cluster.GPU)}
	for _, s := range t.FastSets() {
		p.rates = true
		// Trays of one kind have sets of their own that read alike.
		if text := strings.Join(fastCaption(t, s), ", "); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	list = append(list, caption(cluster.NIC))
	if n := t.Count(cluster.Socket); n > 0 {
		list = append(list, words.Plural(n, "socket"))
	}
	return list
}

// nodeName is what a kind of node is called.
func nodeName(t *cluster.NodeType) string { return cmp.Or(t.Name, "node") }

// nodeType prints the inside of a kind of node.
func (p *printer) nodeType(t *cluster.NodeType) {
	p.heading("Inside " + nodeName(t))
	p.titles = t.Titles()
	if t.Tree == cluster.Assumed {
		p.para("  ", p.dim("No source shows the PCIe tree; this one is assumed and fits what they say."))
	}
	p.tree(t)
	p.fastLinks(t)
	p.cpuLinks(t)
	p.matrix(t)
	p.nearest(t)
	p.measured(t)
}

func (p *printer) warnings() {
	var list []string
	for _, w := range p.c.Warnings {
		if w.ID == "" { // the others are findings
			list = append(list, w.String())
		}
	}
	p.marked("Notes", p.yellow("!"), list, maxNotes)
}

const (
	// mostDifferences is in how many lines the difference of a kind of node from another must fit for it to be printed as
	// such lines; a kind that differs in more is described itself.
	mostDifferences = 6
	// mostFamilies bounds the kinds that others are held against: nodes that all differ are described one by one anyway.
	mostFamilies = 8
)

// family is a kind of node with the kinds that differ from it in little.
type family struct {
	cluster.Alike
	is   *described
	near []nearKind
}

// nearKind is hosts that are like another kind of node but for a few things.
type nearKind struct {
	cluster.Alike
	differs []string // a line each
}

// families folds kinds of nodes that differ in little into the commonest of them, in the order of the kinds.
func (p *printer) families(all []cluster.Alike) []family {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b cluster.Alike) int { return cmp.Compare(len(b.Hosts), len(a.Hosts)) })
	kept := map[*cluster.NodeType]*family{}
	var bases []*family // that others are held against
	for _, g := range order {
		f := &family{Alike: g}
		var like *family
		var differs []string
		if p.compact && g.Type != nil && len(g.Hosts) > 0 {
			f.is = describe(g.Type)
			for _, base := range bases {
				if lines, ok := f.is.from(base.is); ok && (like == nil || len(lines) < len(differs)) {
					like, differs = base, lines
				}
			}
		}
		if like != nil {
			like.near = append(like.near, nearKind{g, differs})
			continue
		}
		if f.is != nil && len(bases) < mostFamilies {
			bases = append(bases, f)
		}
		kept[g.Type] = f
	}
	var out []family
	for _, g := range all {
		if kept[g.Type] != nil {
			out = append(out, *kept[g.Type])
		}
	}
	return out
}

// all are the hosts of a family.
func (f *family) all() cluster.Alike {
	g := cluster.Alike{Type: f.Type, Hosts: slices.Clone(f.Hosts)}
	for _, n := range f.near {
		g.Hosts = append(g.Hosts, n.Hosts...)
	}
	return g
}

// aspect is one thing that can be compared, of a device or, without one, of the node.
type aspect struct{ device, what string }

// described is everything about a kind of node that a reader would compare, by what it is about.
type described struct {
	order []aspect
	value map[aspect]string
	gpus  map[string]bool
	paths cluster.Matrix // between devices by what people call them
}

func describe(t *cluster.NodeType) *described {
	d := &described{value: map[aspect]string{}, gpus: map[string]bool{}, paths: t.Matrix()}
	titles, v := t.Titles(), treePrinter{t: t, up: t.Uplinks()}
	for i, k := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		d.paths.Names[i] = titles[k]
	}
	for i, name := range titles {
		dev := &t.Devices[i]
		if dev.Kind == cluster.RootComplex || dev.Kind == cluster.PCISwitch {
			continue // what they do shows in the paths between the others
		}
		d.gpus[name] = dev.Kind == cluster.GPU
		d.say(name, "", "there")
		for _, f := range v.known(i) {
			if f.what != "" {
				d.say(name, f.what, f.value)
			}
		}
	}
	var fast []string
	for _, s := range t.FastSets() {
		fast = append(fast, strings.Join(fastCaption(t, s), ", "))
	}
	d.say("", "links between GPUs", strings.Join(fast, "; "))
	d.say("", "measured rates", measuredRange(t))
	return d
}

func (d *described) say(device, what, value string) {
	if value == "" {
		return
	}
	d.order = append(d.order, aspect{device, what})
	d.value[aspect{device, what}] = value
}

// measuredRange is the slowest and the fastest pair that was measured.
func measuredRange(t *cluster.NodeType) string {
	var rates []unit.Rate
	for _, x := range t.Pairs {
		if x.Rate.Origin == cluster.Measured {
			rates = append(rates, x.Rate.Value)
		}
	}
	if rates == nil {
		return ""
	}
	return fmt.Sprintf("%v to %v", slices.Min(rates), slices.Max(rates))
}

// from says in lines how a kind of node differs from another; ok is false where that is more than a few lines, or where
// it has other GPUs altogether.
func (d *described) from(o *described) (lines []string, ok bool) {
	type change struct{ what, have, want string }
	var changes grouped[change, string] // devices by how they differ
	less := false
	note := func(at aspect) {
		c := change{at.what, d.value[at], o.value[at]}
		gone := d.value[aspect{at.device, ""}] != o.value[aspect{at.device, ""}]
		switch {
		case c.have == c.want || gone && at.what != "":
			return
		case c.have == "" && at.what != "": // of this one less is known, which is no difference
			less = true
			return
		case at.what == pciAddress && c.want != "": // every machine of another make has others; which ones is in -o yaml
			c.have, c.want = "", ""
		}
		changes.put(c, at.device)
	}
	for _, at := range d.order {
		note(at)
	}
	for _, at := range o.order {
		if _, both := d.value[at]; !both {
			note(at)
		}
	}
	for c, devices := range changes.all() {
		if (c.what == "model" || c.what == "") && d.otherGPUs(o, devices) {
			return nil, false
		}
		lines = append(lines, changeWords(cluster.FormatHosts(devices), c.what, c.have, c.want))
	}
	lines = append(lines, d.pathChanges(o)...)
	switch {
	case len(lines) > 0:
	case less:
		lines = []string{"less is known of it"}
	default:
		lines = []string{"differs only in what -o yaml shows"}
	}
	return lines, len(lines) <= mostDifferences
}

// changeWords says how devices differ.
func changeWords(devices, what, have, want string) string {
	switch {
	case what == "" && want == "":
		return devices + " only here"
	case what == "":
		return devices + " missing"
	case have == "":
		return devices + " other " + what + "es"
	}
	return strings.TrimSpace(devices+" "+what+" "+have) + when(want != "", " instead of "+want)
}

// otherGPUs reports that half of the GPUs or more are among some devices.
func (d *described) otherGPUs(o *described, devices []string) bool {
	n, all := 0, 0
	for _, name := range devices {
		if d.gpus[name] || o.gpus[name] {
			n++
		}
	}
	for _, is := range o.gpus {
		if is {
			all++
		}
	}
	return n > 0 && 2*n >= all
}

// pathChanges says which paths between devices that both have are of another class.
func (d *described) pathChanges(o *described) []string {
	type change struct{ have, want string }
	var changes grouped[change, string] // pairs by how they differ
	for i, a := range d.paths.Names {
		for k := i + 1; k < len(d.paths.Names); k++ {
			b := d.paths.Names[k]
			x, y := slices.Index(o.paths.Names, a), slices.Index(o.paths.Names, b)
			if x >= 0 && y >= 0 && d.paths.Class[i][k] != o.paths.Class[x][y] {
				changes.put(change{d.paths.Class[i][k], o.paths.Class[x][y]}, a+"–"+b)
			}
		}
	}
	var lines []string
	for c, pairs := range changes.all() {
		lines = append(lines, fmt.Sprintf("path %s%s %s instead of %s", pairs[0],
			andMore(len(pairs)-1, "more"), c.have, c.want))
	}
	return lines
}

// fastLinks tells how the GPUs are joined besides PCIe.
func (p *printer) fastLinks(t *cluster.NodeType) {
	var lines grouped[string, int]
	for i, s := range t.FastSets() {
		lines.put(fastWords(t, s), i)
	}
	for line, sets := range lines.all() {
		p.rates = true
		p.para("  ", when(len(sets) > 1, fmt.Sprintf("%d × ", len(sets)))+line)
	}
	if up := t.SwitchLinks(); len(up) > 0 {
		b := &t.Links[up[0]]
		p.para("  ", "NVSwitches of "+words.Plural(len(up), "tray")+" joined by a second level: "+countLinks(b.Lanes)+
			linkFigures(b, true))
	}
}

// cpuLinks tells how the NUMA domains are joined: one line for all that are alike.
func (p *printer) cpuLinks(t *cluster.NodeType) {
	type like struct {
		rate   cluster.Fact[unit.Rate]
		within bool // one socket
	}
	var links grouped[like, cluster.Link]
	for _, l := range t.Links {
		if l.Kind == cluster.SMP {
			sa, sb := t.Above(l.A, cluster.Socket), t.Above(l.B, cluster.Socket)
			links.put(like{l.Rate, sa >= 0 && sa == sb}, l)
		}
	}
	for k, list := range links.all() {
		s := fmt.Sprintf("CPU links %s: %s–%s%s", either(k.within, "within a socket", "between sockets"),
			t.NameOf(list[0].A), t.NameOf(list[0].B),
			andMore(len(list)-1, "like it"))
		if k.rate.Known() {
			p.rates = true
			s += ", " + k.rate.Value.String() + " one direction each [" + k.rate.Origin.String() + "]"
		}
		p.para("  ", s)
	}
}

// nearest prints per GPU its cores and the NICs nearest to it, and who shares
// them.
func (p *printer) nearest(t *cluster.NodeType) {
	near := t.Nearest()
	if len(near) == 0 {
		return
	}
	shares := t.Shares()
	tab := p.columns("GPU", ">NUMA", "cores", "nearest NIC", "path", "when all send")
	for _, n := range near {
		numa := t.NUMAOf(n.GPU)
		nic, path, share := p.noNIC(t), "–", "–"
		if len(n.NICs) > 0 {
			at := slices.IndexFunc(shares, func(s cluster.Share) bool { return slices.Contains(s.GPUs, n.GPU) })
			nic, path, share = p.cyan(deviceNames(p.titles, n.NICs)), p.class(n.Class.String()), p.shareWords(shares[at])
		} else if nic == "" {
			nic, path, share = p.yellow("?"), p.yellow("?"), p.yellow("?")
		}
		tab.Add(p.green(t.Devices[n.GPU].Name), either(numa >= 0, strconv.Itoa(numa), "?"),
			cmp.Or(cluster.ShortCores(t.CoresOf(n.GPU), 40), "?"), nic, path, share)
	}
	p.printf("\n")
	p.first(tab, maxGPURows, " GPUs")
}

// noNIC says of a GPU without a nearest NIC that it has none, or that all of them are down; "" where nobody knows the
// way to them.
func (p *printer) noNIC(t *cluster.NodeType) string {
	nics := t.Of(cluster.NIC)
	switch {
	case len(nics) == 0:
		return p.red("none")
	case !slices.ContainsFunc(nics, func(n int) bool { return !t.Devices[n].NIC.Down() }):
		return p.red("none up")
	}
	return ""
}

func (p *printer) shareWords(s cluster.Share) string {
	text := ""
	if s.Each.Known() {
		p.rates = true
		text = s.Each.Value.String() + " per GPU"
	}
	switch {
	case s.Crowded():
	case text == "":
		return "?"
	default:
		return text
	}
	if text != "" {
		text += ", "
	}
	return p.yellow(text + fmt.Sprintf("%d GPUs share %s", len(s.GPUs), words.Plural(len(s.NICs), "NIC")))
}

// outlier is how far below the median of its class a measured pair must be to be
// named: a tenth, which is more than repeated runs differ by.
const outlier = 0.9

// measured prints what was timed between pairs of devices: the spread within
// every path class, and the pairs whose rate falls out of it.
func (p *printer) measured(t *cluster.NodeType) {
	if len(t.Pairs) == 0 {
		return
	}
	p.peerAccess(t)
	tab := p.columns("measured", "path", ">pairs", ">lowest", ">median", ">highest")
	rates := spreadRows(p, t, tab, "rate", func(x *cluster.Pair) cluster.Fact[unit.Rate] { return x.Rate })
	spreadRows(p, t, tab, "both directions", func(x *cluster.Pair) cluster.Fact[unit.Rate] { return x.Both })
	spreadRows(p, t, tab, "latency", func(x *cluster.Pair) cluster.Fact[unit.Time] { return x.Latency })
	p.rates = p.rates || tab.Len() > 0
	p.below(tab)
	var slow []string
	for class, pairs := range rates.all() {
		median := pairs[stats.At(len(pairs), 0.5)].Rate.Value
		for _, x := range pairs {
			if float64(x.Rate.Value) < outlier*float64(median) {
				slow = append(slow, fmt.Sprintf("%s → %s (%s): %v, %.0f%% of the median", t.Devices[x.A].Name,
					t.Devices[x.B].Name, class, x.Rate.Value, float64(100*x.Rate.Value/median)))
			}
		}
	}
	p.few(p.red("slow")+" ", slow, maxLinks,
		fmt.Sprintf("%d more below %.0f%% of their median", len(slow)-maxLinks, 100*outlier))
}

// spreadRows adds a row for every path class in which a figure was measured, and gives the pairs of each, the lowest
// first.
func spreadRows[T cmp.Ordered](p *printer, t *cluster.NodeType, tab *texttab.Table, what string,
	of func(*cluster.Pair) cluster.Fact[T],
) (by grouped[string, *cluster.Pair]) {
	m, devices := t.Matrix(), append(t.Of(cluster.GPU), t.Of(cluster.NIC)...)
	for i := range t.Pairs {
		x := &t.Pairs[i]
		if of(x).Origin != cluster.Measured {
			continue
		}
		class := "host" // where an end is neither
		if a, b := slices.Index(devices, x.A), slices.Index(devices, x.B); a >= 0 && b >= 0 {
			class = m.Class[a][b]
		}
		by.put(class, x)
	}
	for class, pairs := range by.all() {
		slices.SortStableFunc(pairs, func(a, b *cluster.Pair) int { return cmp.Compare(of(a).Value, of(b).Value) })
		n := len(pairs)
		tab.Add(what, p.class(class), n, of(pairs[0]).Value, of(pairs[stats.At(n, 0.5)]).Value, of(pairs[n-1]).Value)
	}
	return by
}

// peerAccess tells how many pairs the driver does not let reach each other.
func (p *printer) peerAccess(t *cluster.NodeType) {
	var refused grouped[string, cluster.Pair] // by the driver's word
	yes, no := 0, 0
	for _, x := range t.Pairs {
		switch x.P2P {
		case cluster.Yes:
			yes++
		case cluster.No:
			no++
			refused.put(x.Why, x)
		}
	}
	if no == 0 {
		return
	}
	s := fmt.Sprintf("Peer access: the driver refuses %d of %d directed pairs", no, yes+no)
	for why, pairs := range refused.all() {
		s += when(why != "", fmt.Sprintf(", %d with %s", len(pairs), why))
	}
	p.para("  ", p.yellow(s))
}

// network prints the switches, tier by tier, those that are alike in one line.
func (p *printer) network() {
	net := &p.c.Network
	v := newNetView(p.c)
	if net.Kind == "" && len(net.Switches) == 0 && len(net.Links) == 0 {
		return
	}
	p.heading("Network")
	p.list("  ", "  ", p.networkWords(v))
	if len(net.Switches) > 0 {
		p.rates = p.rates || slices.ContainsFunc(v.sides,
			func(s cluster.Sides) bool { return s.Hosts.Rated() || s.Down.Rated() || s.Up.Rated() })
		p.switches(v)
	}
	p.domains()
	p.badCables()
}

func (p *printer) networkWords(v *netView) []string {
	net := &p.c.Network
	kind := netName(net.Kind)
	list := nonEmpty(kind, when(!strings.EqualFold(net.Name, kind), net.Name),
		when(len(v.tiers) > 0, words.Plural(len(v.tiers), "tier")), topologyWords(net),
		when(net.Rails > 1, fmt.Sprintf("%d rails (NIC i of every node on rail i)", net.Rails)),
		when(net.Oversubscription.Known(), v.statedWords(net.Oversubscription)),
		when(net.Reduction == cluster.Yes, "in-network reduction (SHARP)"),
		when(net.Reduction == cluster.No, "no in-network reduction"))
	if list == nil {
		return []string{"kind unknown"}
	}
	return list
}

func (p *printer) switches(v *netView) {
	// A column of which no source says anything takes no room.
	tab := p.columns("?tier", "?>count", "?switches", "?model", "?>ports", "?downlinks each", "?uplinks each",
		"?>oversubscribed")
	left := 0
	for _, tier := range v.tiers {
		for _, ids := range v.alike(tier) {
			first, boxes := ids[0], v.boxes(ids)
			if tab.Len() == maxSwitches {
				left += boxes
				continue
			}
			s, r := &v.c.Network.Switches[first], v.sides[first].Oversubscription()
			over := overWords(r)
			if r > 1+even {
				over = p.yellow(over)
			}
			tab.Add(v.tier(first), boxes, hostList(switchNames(v.c, ids), 44), s.Model,
				some(s.Ports), v.downWords(first, true), v.upWords(first), over)
		}
	}
	if left > 0 {
		tab.Row(p.dim(fmt.Sprintf("… and %d more", left)))
	}
	p.table(tab)
}

// alike folds the switches of a tier that have the same model and the same
// cables, in the order of the first of each kind.
func (v *netView) alike(tier []int) [][]int {
	type key struct {
		model  string
		ports  int
		cables string
		reduce cluster.Tri
	}
	var like grouped[key, int]
	for _, i := range tier {
		s, x := v.c.Network.Switches[i], v.sides[i]
		like.put(key{s.Model, s.Ports, fmt.Sprint(x.Hosts, x.Down, x.Up), s.Reduction}, i)
	}
	return like.lists()
}

// boxes is how many switches entries of the network stand for.
func (v *netView) boxes(ids []int) (n int) {
	for _, i := range ids {
		n += max(v.c.Network.Switches[i].Count, 1)
	}
	return n
}

// domains prints what schedulers group nodes by.
func (p *printer) domains() {
	var names []string
	for _, s := range p.c.Network.Switches {
		if s.Domain {
			names = append(names, s.Name)
		}
	}
	p.schedulerSwitches()
	if len(names) > 0 {
		p.para("  ", fmt.Sprintf("%s that schedulers group nodes by: %s", words.Plural(len(names), "domain"),
			hostList(natural.Sort(names), 2*p.width)))
	}
}

// schedulerSwitches prints which hosts a scheduler's own tree holds together, where the cables are known beside it.
func (p *printer) schedulerSwitches() {
	var leaves []string
	for _, s := range p.c.Network.Scheduler {
		if len(s.Hosts) > 0 {
			leaves = append(leaves, s.Name+" "+cluster.FormatHosts(s.Hosts))
		}
	}
	if len(leaves) > 0 {
		p.list("  Slurm groups nodes by ", "    ", firstOf(leaves, maxLinks, "… "))
	}
}

// badCables names links that are down, slower than their ends could be, or that
// counted errors.
func (p *printer) badCables() {
	var bad []string
	for _, l := range p.c.Network.Links {
		if s := cableTrouble(&l); s != "" {
			bad = append(bad, p.c.EndName(l.A)+" – "+p.c.EndName(l.B)+": "+s)
		}
	}
	p.few(p.red("link "), bad, maxLinks, words.Plural(len(bad)-maxLinks, "such link")+" more")
}

// cableTrouble says what is wrong with a cable, or nothing.
func cableTrouble(l *cluster.NetLink) string {
	var s []string
	switch {
	case l.State == cluster.Down && l.Loose(): // nothing is plugged in
	case l.State == cluster.Down || l.State == cluster.Init:
		s = append(s, l.State.String())
	case l.Rate.Known() && l.Max.Known() && l.Rate.Value < l.Max.Value:
		s = append(s, l.Rate.Value.Bits()+" of "+l.Max.Value.Bits()+" possible")
	}
	for _, k := range slices.Sorted(maps.Keys(l.Counters)) {
		if l.Counters[k] > 0 {
			s = append(s, fmt.Sprintf("%s %d", k, l.Counters[k]))
		}
	}
	return strings.Join(s, ", ")
}

// tree prints the devices of a node below what contains them.
func (p *printer) tree(t *cluster.NodeType) {
	v := &treePrinter{printer: p, t: t, up: t.Uplinks(), shown: map[string]int{}}
	var top []int
	v.of, top = t.Children()
	if t.TrayCount() < 2 {
		v.forest(top, "  ")
		return
	}
	trays := make([][]int, t.TrayCount())
	for _, d := range top {
		if k := t.Devices[d].Tray; k >= 0 && k < len(trays) && t.Devices[d].Kind != cluster.NVSwitch {
			trays[k] = append(trays[k], d)
		}
	}
	// Trays are told apart only where they differ.
	var like grouped[string, int]
	for k, ids := range trays {
		like.put(v.signature(ids), k)
	}
	for _, list := range like.all() {
		p.printf("  %s\n", p.bold(trayNames(list)))
		v.forest(trays[list[0]], "  ")
	}
}

func trayNames(trays []int) string {
	return fmt.Sprintf("tray %d", trays[0]) +
		when(len(trays) > 1, fmt.Sprintf(", and like it all of %s (%d trays)", words.Numbers(trays), len(trays)))
}

// treePrinter prints one node type.
type treePrinter struct {
	*printer
	t  *cluster.NodeType
	of [][]int
	up []int
	// shown are branches that were printed, by their signature.
	shown map[string]int
}

// forest prints top devices. Switches of NVLink are told in a line of their own.
func (v *treePrinter) forest(top []int, indent string) {
	for _, d := range top {
		if v.t.Devices[d].Kind != cluster.NVSwitch {
			v.device(d, indent, indent)
		}
	}
}

// device prints a device and what hangs on it. A device with a single child
// shares its line where it has nothing to say itself.
func (v *treePrinter) device(d int, first, rest string) {
	names := []string{v.name(d)}
	fields := v.fields(d, true)
	for len(v.of[d]) == 1 && len(fields) == 0 {
		d = v.of[d][0]
		names = append(names, v.name(d))
		fields = v.fields(d, true)
	}
	if up := v.uplink(d); up != nil {
		v.rates = v.rates || up.Rate.Known()
	}
	head := first + strings.Join(names, v.dim(" › ")) + "  "
	kids := v.of[d]
	hang := rest + "    "
	if len(kids) > 0 {
		hang = rest + v.dim("│") + "   "
	}
	if len(fields) == 0 {
		v.printf("%s\n", strings.TrimRight(head, " "))
	} else {
		v.list(head, hang, fields.texts(v.style))
	}
	for i := 0; i < len(kids); {
		like, n := v.alike(kids[i:])
		corner, side := v.dim("├─ "), v.dim("│  ")
		if i+n == len(kids) {
			corner, side = v.dim("└─ "), "   "
		}
		if like >= 0 {
			v.branches(kids[i:i+n], like, rest+corner, rest+side)
		} else {
			v.device(kids[i], rest+corner, rest+side)
		}
		i += n
	}
}

// alike counts the first of some branches that are like one that was printed already, and names it; else it is -1 and
// one branch to print. Single devices are printed in any case: a line each says more than a name.
func (v *treePrinter) alike(kids []int) (like, n int) {
	if !v.compact {
		return -1, 1
	}
	like = -1
	for _, d := range kids {
		sig := v.signature([]int{d})
		first, known := v.shown[sig]
		if len(v.leaves(d)) < 2 || !known || n > 0 && first != like {
			if n == 0 {
				v.shown[sig] = d
			}
			break
		}
		like, n = first, n+1
	}
	return like, max(n, 1)
}

// branches prints branches that are like another in a line, with the GPUs and NICs of each.
func (v *treePrinter) branches(ids []int, like int, first, rest string) {
	v.folded = true
	pieces := []string{"like " + v.t.NameOf(like)}
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = v.t.NameOf(d)
		var leaves []string
		for _, l := range v.leaves(d) {
			leaves = append(leaves, v.titles[l])
		}
		pieces = append(pieces, strings.Join(leaves, ", "))
	}
	v.list(first+cluster.FormatHosts(names)+"  ", rest+"    ", pieces)
}

// leaves are the devices at the ends of a branch.
func (v *treePrinter) leaves(d int) []int {
	if len(v.of[d]) == 0 {
		return []int{d}
	}
	var out []int
	for _, k := range v.of[d] {
		out = append(out, v.leaves(k)...)
	}
	return out
}

func (v *treePrinter) name(d int) string {
	dev := &v.t.Devices[d]
	switch dev.Kind {
	case cluster.GPU:
		return v.green(dev.Name)
	case cluster.NIC:
		name := v.cyan(dev.Name)
		if dev.Label != "" && dev.Label != dev.Name {
			name += " " + dev.Label
		}
		return name
	}
	return v.t.NameOf(d)
}

// fields is what the tree says about a device; its address only where it is wanted.
func (v *treePrinter) fields(d int, address bool) fieldList {
	return slices.DeleteFunc(v.known(d), func(f field) bool {
		return f.text == "" || f.what == pciAddress && !address
	})
}

// pciAddress is what two nodes of one make differ in.
const pciAddress = "PCI address"

// known is everything about a device.
func (v *treePrinter) known(d int) (l fieldList) {
	dev := &v.t.Devices[d]
	l.fact("model", dev.Model.Value, dev.Model.Origin)
	switch dev.Kind {
	case cluster.Socket, cluster.NUMA:
		l.cpu(dev.CPU, dev.Model.Known() || v.saidAbove(d))
	case cluster.GPU:
		l.gpu(dev.GPU)
	case cluster.NIC:
		l.nic(dev)
	case cluster.PCISwitch:
		if !dev.Model.Known() {
			l.say("PCIe switch")
		}
	}
	l.fact(pciAddress, string(dev.PCI), cluster.Unknown)
	if up := v.uplink(d); up != nil {
		l.link(up)
	}
	return l
}

// uplink is the link of a device to what contains it; nil where they are one chip.
func (v *treePrinter) uplink(d int) *cluster.Link {
	if v.up[d] < 0 || v.t.Links[v.up[d]].Kind == cluster.OnDie {
		return nil
	}
	return &v.t.Links[v.up[d]]
}

// saidAbove reports whether the socket of a NUMA domain names the processor.
func (v *treePrinter) saidAbove(d int) bool {
	p := v.t.Devices[d].Parent
	if p < 0 {
		return false
	}
	up := &v.t.Devices[p]
	return up.Model.Known() || up.CPU != nil && up.CPU.Vendor != ""
}

// cpu describes a socket or NUMA domain; named says that its model is told
// already.
func (l *fieldList) cpu(c *cluster.CPUInfo, named bool) {
	if c == nil {
		return
	}
	if c.Vendor != "" && c.Family > 0 && !named {
		l.say(fmt.Sprintf("%s family %d model %d", c.Vendor, c.Family, c.Model))
	}
	if c.Cores != "" {
		l.add(field{text: "cores " + cluster.ShortCores(c.Cores, 80), what: "cores", value: c.Cores})
	}
	if c.Memory.Known() {
		l.fact("memory", memory(c.Memory.Value), c.Memory.Origin)
	}
}

func (l *fieldList) gpu(g *cluster.GPUInfo) {
	if g == nil {
		return
	}
	if g.Memory.Known() {
		l.fact("memory", memory(g.Memory.Value), g.Memory.Origin)
	}
	if g.HBM.Known() {
		l.figure("memory "+g.HBM.Value.String(), g.HBM.Origin)
	}
	if n := len(g.Slices); n > 0 {
		l.add(field{text: words.Plural(n, "MIG slice"), what: "MIG", value: words.Plural(n, "slice")})
	}
	l.noGDR(g.GDR)
}

// noGDR says that GPUs and NICs do not reach each other directly.
func (l *fieldList) noGDR(can cluster.Tri) {
	if can == cluster.No {
		l.add(field{text: "no GDR", bare: true, bad: true, what: "GPUDirect RDMA", value: "no"})
	}
}

func (l *fieldList) nic(dev *cluster.Device) {
	n := dev.NIC
	if n == nil {
		return
	}
	kind := netName(n.Kind)
	l.add(field{text: when(!l.says(kind), kind), what: "network", value: kind})
	l.compare("rate", cmp.Or(nicRateText(dev), "unknown"))
	for i := range n.Ports {
		l.port(&n.Ports[i], len(n.Ports) > 1)
	}
	if n.GDR == cluster.Yes {
		l.add(field{text: "GDR-capable", bare: true})
	}
	l.noGDR(n.GDR)
	if n.Reduction == cluster.Yes {
		l.add(field{text: "in-network reduction", bare: true})
	}
	l.compare("firmware", n.Firmware)
	l.compare("driver", n.Driver)
	l.compare("offloads off", strings.Join(n.Off, " "))
	l.compare("receive ring", some(n.RxRing))
}

func (l *fieldList) port(p *cluster.Port, many bool) {
	on, name := "", ""
	if many {
		on = fmt.Sprintf("port %d ", p.Num)
		name = cmp.Or(p.Label, strings.TrimSpace(on)) + ": "
	}
	if p.Rate.Known() {
		l.figure(name+p.Rate.Value.Bits(), p.Rate.Origin)
		name = ""
		if p.Max.Origin > cluster.Spec && p.Max.Value > p.Rate.Value {
			l.warn("could do " + p.Max.Value.Bits())
		}
	}
	if p.MTU.Known() {
		size := fmt.Sprintf("%d B", p.MTU.Value)
		l.add(field{text: name + "MTU " + size, what: on + "MTU", value: size, origin: p.MTU.Origin})
		name = ""
	}
	switch p.State {
	case cluster.Up:
		l.say(name + "up")
	case cluster.Init:
		l.compare(on+"state", p.State.String())
		l.warn(name + p.State.String())
	case cluster.Down:
		l.warn(name + p.State.String())
	}
}

// signature is equal for sets of devices that differ only in names and addresses.
func (v *treePrinter) signature(ids []int) string {
	var b strings.Builder
	var walk func(d int)
	walk = func(d int) {
		dev := &v.t.Devices[d]
		b.WriteString("(" + dev.Kind.String())
		for _, f := range v.fields(d, false) {
			b.WriteString("|" + f.text + f.origin.String())
		}
		for _, k := range v.of[d] {
			walk(k)
		}
		b.WriteString(")")
	}
	for _, d := range ids {
		walk(d)
	}
	return b.String()
}

// even is how far a ratio may be from another and still be called the same: as
// far as three digits do not show it.
const even = 0.005

// overRange is the least and the greatest oversubscription of switches, 0 where none is known.
func (v *netView) overRange(ids []int) (low, high float64) {
	for _, s := range ids {
		if r := v.sides[s].Oversubscription(); r > 0 {
			low, high = cmp.Or(min(low, r), r), max(high, r)
		}
	}
	return low, high
}

// ratio prints 2 as 2:1.
func ratio(r float64) string { return strconv.FormatFloat(r, 'g', 3, 64) + ":1" }

// overWords is the cell below "oversubscribed": the ratio, or "no" for a switch
// with more capacity up than down, of which a ratio below one would only puzzle.
func overWords(r float64) string {
	switch {
	case r == 0:
		return ""
	case r < 1-even:
		return "no"
	}
	return ratio(max(r, 1))
}

// statedWords says what somebody stated about the leaves, and how that goes with
// what their cables say.
func (v *netView) statedWords(o cluster.Fact[float64]) string {
	words := fmt.Sprintf("oversubscription %s [%s]", ratio(o.Value), o.Origin)
	if o.Value < 1-even {
		words = fmt.Sprintf("not oversubscribed [%s]", o.Origin)
	}
	low, high := v.overRange(slices.Concat(v.tiers[:min(1, len(v.tiers))]...))
	switch {
	case high == 0:
		return words
	case high > o.Value*(1+even):
		return fmt.Sprintf("oversubscription up to %s (%s was stated [%s])", ratio(high), ratio(o.Value), o.Origin)
	case o.Value < 1-even: // no leaf has more than that either
		return words
	case high < o.Value*(1-even):
		return words + " if the leaves were full, now " + either(high > 1+even, ratio(high), "none")
	case low < o.Value*(1-even):
		return words + ", less where a leaf is not full"
	}
	return words
}
