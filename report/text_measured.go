package report

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
)

// outlier is how far below the median of its class a measured pair must be to be
// named: a tenth, which is more than repeated runs differ by.
const outlier = 0.9

// sampled is one measured figure of a pair.
type sampled struct {
	pair  int
	value float64
}

// measured prints what was timed between pairs of devices: the spread within
// every path class, and the pairs whose rate falls out of it.
func (p *printer) measured(t *cluster.NodeType) {
	if len(t.Pairs) == 0 {
		return
	}
	p.peerAccess(t)
	classes := newClassTable(t)
	tab := p.columns("measured", "path", ">pairs", ">lowest", ">median", ">highest")
	var odd []string
	p.spread(t, classes, tab, "rate", func(x *cluster.Pair) (float64, string, bool) {
		return float64(x.Rate.Value), x.Rate.Value.String(), x.Rate.Origin == cluster.Measured
	}, func(class string, s []sampled, median float64) {
		for _, x := range s {
			if x.value < outlier*median {
				pair := &t.Pairs[x.pair]
				odd = append(odd, fmt.Sprintf("%s → %s (%s): %v, %.0f%% of the median", t.Devices[pair.A].Name,
					t.Devices[pair.B].Name, class, pair.Rate.Value, 100*x.value/median))
			}
		}
	})
	p.spread(t, classes, tab, "both directions", func(x *cluster.Pair) (float64, string, bool) {
		return float64(x.Both.Value), x.Both.Value.String(), x.Both.Origin == cluster.Measured
	}, nil)
	p.spread(t, classes, tab, "latency", func(x *cluster.Pair) (float64, string, bool) {
		return float64(x.Latency.Value), x.Latency.Value.String(), x.Latency.Origin == cluster.Measured
	}, nil)
	if tab.Len() == 0 {
		return
	}
	p.rates = true
	p.printf("\n")
	p.table(tab)
	for i, o := range odd {
		if i == maxLinks {
			p.printf("  … and %d more below %.0f%% of their median\n", len(odd)-i, 100*outlier)
			break
		}
		p.para("  ", p.red("slow")+" "+o)
	}
}

// spread adds a row for every path class in which the figure was measured, and
// hands its samples, sorted, to each.
func (p *printer) spread(t *cluster.NodeType, classes classTable, tab *texttab.Table, what string,
	get func(*cluster.Pair) (float64, string, bool), each func(class string, s []sampled, median float64),
) {
	by := make(map[string][]sampled)
	var order []string
	for i := range t.Pairs {
		v, _, ok := get(&t.Pairs[i])
		if !ok {
			continue
		}
		c := classes.of(t.Pairs[i].A, t.Pairs[i].B)
		if by[c] == nil {
			order = append(order, c)
		}
		by[c] = append(by[c], sampled{i, v})
	}
	for _, c := range order {
		s := by[c]
		slices.SortStableFunc(s, func(a, b sampled) int { return cmp.Compare(a.value, b.value) })
		text := func(i int) string {
			_, str, _ := get(&t.Pairs[s[i].pair])
			return str
		}
		tab.Row(what, p.class(c), fmt.Sprint(len(s)), text(0), text(stats.At(len(s), 0.5)), text(len(s)-1))
		if each != nil {
			each(c, s, s[stats.At(len(s), 0.5)].value)
		}
	}
}

// peerAccess tells how many pairs the driver does not let reach each other.
func (p *printer) peerAccess(t *cluster.NodeType) {
	var names []string
	why := make(map[string]int)
	yes, no := 0, 0
	for _, pair := range t.Pairs {
		switch pair.P2P {
		case cluster.Yes:
			yes++
		case cluster.No:
			no++
			if why[pair.Why]++; why[pair.Why] == 1 {
				names = append(names, pair.Why)
			}
		}
	}
	if no == 0 {
		return
	}
	s := fmt.Sprintf("Peer access: the driver refuses %d of %d directed pairs", no, yes+no)
	for _, w := range names {
		if w != "" {
			s += fmt.Sprintf(", %d with %s", why[w], w)
		}
	}
	p.para("  ", p.yellow(s))
}

// classTable looks up the class of the path between two devices.
type classTable struct {
	m  cluster.Matrix
	at map[int]int // device → row
}

func newClassTable(t *cluster.NodeType) classTable {
	c := classTable{m: t.Matrix(), at: make(map[int]int)}
	for i, d := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		c.at[d] = i
	}
	return c
}

// of is the class between two GPUs or NICs, "host" where an end is neither.
func (c classTable) of(a, b int) string {
	i, okA := c.at[a]
	j, okB := c.at[b]
	if !okA || !okB {
		return "host"
	}
	return c.m.Class[i][j]
}
