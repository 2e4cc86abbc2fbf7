package report

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Presets prints the machines, then the names of single GPUs; -v adds the sources.
func Presets(p *Page, d *query.ListDoc) {
	t := texttab.New("name", ">nodes", ">GPUs", ">NICs", "description of one node")
	var bare []string
	for _, x := range d.Presets {
		if x.GPUs == 1 && x.NICs == 0 {
			bare = append(bare, x.Name)
			continue
		}
		t.Add(x.Name, x.Nodes, x.GPUs, x.NICs, x.Summary)
		if p.Verbose {
			t.Row("", "", "", "", "source: "+x.Source)
		}
	}
	p.table(t)
	p.printf("\nnodes: how many a name without :COUNT means. Sources: -v or --json. Single GPUs, without a NIC:\n")
	p.hanging("  ", "  ", texttab.Flow(bare, ", ", max(p.Width-2, 78)))
}

// Hardware prints the tables of the catalogue; -v prints the source below every row.
func Hardware(p *Page, d *query.ListDoc) {
	for _, part := range []struct {
		title string
		table *texttab.Table
	}{
		{"Links and networks (one direction computed with; duplex as the sum of both)", p.linkTable(d.Links)},
		{"Accelerators (dense peaks)", p.gpuTable(d.GPUs)},
		{"Network cards", p.nicTable(d.NICs)},
		{"Switches", p.switchTable(d.Switches)},
	} {
		if part.table.Len() > 0 {
			p.lines(part.title)
			p.table(part.table)
			p.printf("\n")
		}
	}
}

// Named prints frameworks and causes; -v adds what they are.
func Named(p *Page, d *query.ListDoc) {
	t := texttab.New("name", "title", texttab.If(p.Verbose, "what it is"))
	for _, x := range slices.Concat(d.Frameworks, d.Causes) {
		t.Row(x.Name, x.Title, x.Text)
	}
	p.table(t)
}

// stated is what a source states, or a dash.
func stated(is bool, text string) string { return either(is, text, "–") }

// cite adds below a row where it comes from, where -v asks for that.
func (p *Page) cite(t *texttab.Table, what, text string) {
	if p.Verbose && text != "" {
		t.Row("  " + what + ": " + text)
	}
}

func (p *Page) linkTable(rows []hardware.Interconnect) *texttab.Table {
	t := texttab.New("name", "of", ">one direction", ">in bits", ">duplex", "maker quotes", ">latency")
	for _, r := range rows {
		t.Add(r.Name, r.Scope, r.OneWay, r.OneWay.Bits(), r.Duplex, r.Quoted,
			when(r.Latency.Known(), r.Latency.Value.String()))
		p.cite(t, "source", r.Source)
	}
	return t
}

func (p *Page) gpuTable(rows []hardware.GPUModel) *texttab.Table {
	t := texttab.New("name", "title", ">memory", ">memory rate", ">bf16 dense", ">fp8 dense", "links", "PCIe", ">power")
	for _, g := range rows {
		peak := func(d cluster.Dtype) string {
			v, ok := g.Peak[d]
			return stated(ok, v.String())
		}
		t.Add(g.Name, g.Title, g.Memory, g.HBM, peak(cluster.BF16), peak(cluster.FP8),
			stated(g.Links > 0, fmt.Sprintf("%d × %v = %v", g.Links, g.Link, g.Link*unit.Rate(g.Links))),
			fmt.Sprintf("gen %d x%d", g.PCIeGen, g.Lanes), stated(g.TDP > 0, fmt.Sprintf("%g W", float64(g.TDP))))
		p.cite(t, "source", g.Source)
		p.cite(t, "source: power", g.TDPSource)
	}
	return t
}

func (p *Page) nicTable(rows []hardware.NICModel) *texttab.Table {
	t := texttab.New("name", ">fastest port", "PCIe", "PCI ids")
	for _, n := range rows {
		t.Row(n.Name, stated(n.Rate > 0, n.Rate.Bits()), fmt.Sprintf("gen %d x%d", n.PCIeGen, n.Lanes),
			strings.Join(n.PCI, " "))
		p.cite(t, "source", n.Source)
	}
	return t
}

func (p *Page) switchTable(rows []hardware.SwitchModel) *texttab.Table {
	t := texttab.New("name", "kind", ">ports", ">port rate")
	for _, s := range rows {
		t.Add(s.Name, s.Kind, s.Ports, s.Rate.Bits())
		p.cite(t, "source", s.Source)
	}
	return t
}

// Models prints the models that are known, or the tensors of one; -v adds sources and notes.
func Models(p *Page, d *query.ListDoc) {
	if d.ModelSummary != nil {
		p.table(tensorTable(d.ModelSummary))
		return
	}
	t := texttab.New("name", "title", ">parameters", ">layers", ">hidden", ">heads", ">FFN", ">experts", ">vocab",
		">tokens", ">forward|%.4g TFLOP")
	for _, m := range d.Models {
		t.Add(m.Name, m.Title, words.Thousands(m.Params), some(m.Layers), some(m.Hidden),
			either(m.Heads != m.KVHeads, fmt.Sprintf("%d/%d", m.Heads, m.KVHeads), some(m.Heads)), some(m.FFN),
			when(m.Experts > 0, fmt.Sprintf("%d/%d", m.TopK, m.Experts)),
			some(m.Vocab), m.Seq, m.Forward/1e12)
		p.cite(t, "source", m.Source)
		p.cite(t, "source", fmt.Sprintf("%s parameters: %s", words.Thousands(m.Published), m.PublishedSource))
		p.cite(t, "note", m.Note)
		p.cite(t, "no steps", m.Unpriced)
	}
	p.table(t)
	p.printf("\nheads: of queries, and of keys and values where those are fewer. experts: that a token passes, of all. " +
		"forward: operations of a forward pass over one sequence. Sources: -v or --json.\n")
}

// tensorTable is the tensors of a model.
func tensorTable(m *workload.ModelSummary) *texttab.Table {
	t := texttab.New("tensor", "shape", ">parameters")
	for _, x := range m.Tensors {
		t.Add(x.Name, x.Shape, words.Thousands(x.Count()))
	}
	t.Row("all", "", words.Thousands(m.Params))
	return t
}
