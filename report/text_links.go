package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// fastLinks tells how the GPUs are joined besides PCIe.
func (p *printer) fastLinks(t *cluster.NodeType) {
	var lines []string
	count := map[string]int{}
	for _, s := range fastSets(t) {
		line := s.words(t)
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		p.rates = true
		if n := count[line]; n > 1 {
			line = fmt.Sprintf("%d × %s", n, line)
		}
		p.para("  ", line)
	}
	if up := switchLinks(t); len(up) > 0 {
		l := &t.Links[up[0]]
		b := bundle{lanes: l.Lanes, rate: l.Rate, duplex: l.Duplex}
		p.para("  ", "NVSwitches of "+words.Plural(len(up), "tray")+" joined by a second level: "+countLinks(b.lanes)+strings.Replace(b.figures(), " one direction", " one direction each", 1))
	}
}

// cpuLinks tells how the NUMA domains are joined: one line for all that are alike.
func (p *printer) cpuLinks(t *cluster.NodeType) {
	type like struct {
		rate   cluster.Fact[unit.Rate]
		within bool // one socket
	}
	var kinds []like
	count := make(map[like]int)
	first := make(map[like]*cluster.Link)
	for i := range t.Links {
		l := &t.Links[i]
		if l.Kind != cluster.SMP {
			continue
		}
		sa, sb := t.Above(l.A, cluster.Socket), t.Above(l.B, cluster.Socket)
		k := like{l.Rate, sa >= 0 && sa == sb}
		if count[k] == 0 {
			kinds = append(kinds, k)
			first[k] = l
		}
		count[k]++
	}
	for _, k := range kinds {
		l := first[k]
		what := "CPU links between sockets"
		if k.within {
			what = "CPU links within a socket"
		}
		s := fmt.Sprintf("%s: %s–%s", what, deviceName(t, l.A), deviceName(t, l.B))
		if n := count[k]; n > 1 {
			s += fmt.Sprintf(" and %d like it", n-1)
		}
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
	p.printf("\n")
	tab := p.columns("GPU", ">NUMA", "cores", "nearest NIC", "path", "when all send")
	shown := near
	if len(near) > maxGPURows+1 {
		shown = near[:maxGPURows]
	}
	for _, n := range shown {
		tab.Row(p.nearRow(t, n, shares)...)
	}
	p.table(tab)
	if n := len(near) - len(shown); n > 0 {
		p.printf("  %s\n", p.dim(fmt.Sprintf("… and %d more GPUs", n)))
	}
}

func (p *printer) nearRow(t *cluster.NodeType, n cluster.Near, shares []cluster.Share) []string {
	numa, cores := "?", shortCores(coresOf(t, n.GPU), 40)
	if k := numaOf(t, n.GPU); k >= 0 {
		numa = strconv.Itoa(k)
	}
	cores = cmp.Or(cores, "?")
	row := []string{p.green(t.Devices[n.GPU].Name), numa, cores}
	if len(n.NICs) == 0 {
		return append(row, p.noNIC(t)...)
	}
	row = append(row, p.cyan(deviceNames(p.titles, n.NICs)), p.class(n.Class.String()))
	at := slices.IndexFunc(shares, func(s cluster.Share) bool { return slices.Contains(s.GPUs, n.GPU) })
	return append(row, p.shareWords(shares[at]))
}

// noNIC is the cells of a GPU without a nearest NIC: it has none, all of them are
// down, or nobody knows the way to them.
func (p *printer) noNIC(t *cluster.NodeType) []string {
	nics := t.Of(cluster.NIC)
	switch {
	case len(nics) == 0:
		return []string{p.red("none"), "–", "–"}
	case !slices.ContainsFunc(nics, func(n int) bool { return !nicDown(&t.Devices[n]) }):
		return []string{p.red("none up"), "–", "–"}
	}
	return []string{p.yellow("?"), p.yellow("?"), p.yellow("?")}
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
