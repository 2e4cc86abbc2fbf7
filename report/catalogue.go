package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Presets prints the machines, then the names of single GPUs; verbose adds the sources.
func Presets(w io.Writer, d *query.PresetsDoc, o TextOptions) error {
	t := texttab.New("name", ">nodes", ">GPUs", ">NICs", "description of one node")
	var bare []string
	for _, p := range d.Presets {
		if p.GPUs == 1 && p.NICs == 0 {
			bare = append(bare, p.Name)
			continue
		}
		t.Add(p.Name, p.Nodes, p.GPUs, p.NICs, p.Summary)
		if o.Verbose {
			t.Row("", "", "", "", "source: "+p.Source)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nnodes: how many a name without :COUNT means. Sources: -v or --json. Single GPUs, without a NIC:")
	var b strings.Builder
	hanging(&b, "  ", "  ", texttab.Flow(bare, ", ", max(o.Width-2, 78)))
	_, err := io.WriteString(w, b.String())
	return err
}

// Hardware prints the tables of the catalogue; verbose prints the source below every row.
func Hardware(w io.Writer, d *query.HardwareDoc, verbose bool) error {
	for _, part := range []struct {
		title string
		table *texttab.Table
	}{
		{"Links and networks (one direction computed with; duplex as the sum of both)", linkTable(d.Links, verbose)},
		{"Accelerators (dense peaks)", gpuTable(d.GPUs, verbose)},
		{"Network cards", nicTable(d.NICs, verbose)},
		{"Switches", switchTable(d.Switches, verbose)},
	} {
		if part.table.Len() == 0 {
			continue
		}
		fmt.Fprintln(w, part.title)
		if err := part.table.Write(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// stated is what a source states, or a dash.
func stated(is bool, text string) string { return cmp.Or(when(is, text), "–") }

// cite adds a row's source below it.
func cite(t *texttab.Table, sources bool, source string) {
	if sources {
		t.Row("  source: " + source)
	}
}

func linkTable(rows []hardware.Interconnect, sources bool) *texttab.Table {
	t := texttab.New("name", "of", ">one direction", ">in bits", ">duplex", "maker quotes", ">latency")
	for _, r := range rows {
		t.Add(r.Name, r.Scope, r.OneWay, r.OneWay.Bits(), r.Duplex, r.Quoted,
			when(r.Latency.Known(), r.Latency.Value.String()))
		cite(t, sources, r.Source)
	}
	return t
}

func gpuTable(rows []hardware.GPUModel, sources bool) *texttab.Table {
	t := texttab.New("name", "title", ">memory", ">memory rate", ">bf16 dense", ">fp8 dense", "links", "PCIe", ">power")
	for _, g := range rows {
		peak := func(d cluster.Dtype) string {
			v, ok := g.Peak[d]
			return stated(ok, v.String())
		}
		t.Add(g.Name, g.Title, g.Memory, g.HBM, peak(cluster.BF16), peak(cluster.FP8),
			stated(g.Links > 0, fmt.Sprintf("%d × %v = %v", g.Links, g.Link, g.Link*unit.Rate(g.Links))),
			fmt.Sprintf("gen %d x%d", g.PCIeGen, g.Lanes), stated(g.TDP > 0, fmt.Sprintf("%g W", float64(g.TDP))))
		cite(t, sources, g.Source)
		if g.TDP > 0 {
			cite(t, sources, "power: "+g.TDPSource)
		}
	}
	return t
}

func nicTable(rows []hardware.NICModel, sources bool) *texttab.Table {
	t := texttab.New("name", ">fastest port", "PCIe", "PCI ids")
	for _, n := range rows {
		t.Row(n.Name, stated(n.Rate > 0, n.Rate.Bits()), fmt.Sprintf("gen %d x%d", n.PCIeGen, n.Lanes),
			strings.Join(n.PCI, " "))
		cite(t, sources, n.Source)
	}
	return t
}

func switchTable(rows []hardware.SwitchModel, sources bool) *texttab.Table {
	t := texttab.New("name", "kind", ">ports", ">port rate")
	for _, s := range rows {
		t.Add(s.Name, s.Kind, s.Ports, s.Rate.Bits())
		cite(t, sources, s.Source)
	}
	return t
}

// Models prints the models that are known, or the tensors of one; verbose adds sources and notes.
func Models(w io.Writer, d *query.ModelsDoc, verbose bool) error {
	if d.ModelSummary != nil {
		return tensors(w, d.ModelSummary)
	}
	t := texttab.New("name", "title", ">parameters", ">layers", ">hidden", ">heads", ">FFN", ">experts", ">vocab",
		">tokens", ">forward|%.4g TFLOP")
	for i := range d.Models {
		m := &d.Models[i]
		t.Add(m.Name, m.Title, words.Thousands(m.Params), some(m.Layers), some(m.Hidden), heads(m), some(m.FFN), experts(m),
			some(m.Vocab), m.Seq, m.Forward/1e12)
		cite(t, verbose, m.Source)
		cite(t, verbose, fmt.Sprintf("%s parameters: %s", words.Thousands(m.Published), m.PublishedSource))
		if m.Note != "" && verbose {
			t.Row("  note: " + m.Note)
		}
		if m.Unpriced != "" && verbose {
			t.Row("  no steps: " + m.Unpriced)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nheads: of queries, and of keys and values where those are fewer. experts: that a token "+
		"passes, of all. forward: operations of a forward pass over one sequence. Sources: -v or --json.")
	return err
}

// heads are those of queries, and of keys and values where those are fewer.
func heads(m *workload.ModelSummary) string {
	if m.Heads != m.KVHeads {
		return fmt.Sprintf("%d/%d", m.Heads, m.KVHeads)
	}
	return some(m.Heads)
}

// experts are those that a token passes, of all.
func experts(m *workload.ModelSummary) string {
	return when(m.Experts > 0, fmt.Sprintf("%d/%d", m.TopK, m.Experts))
}

// some is a number, or nothing where there is none.
func some(n int64) string {
	return when(n != 0, fmt.Sprint(n))
}

// tensors prints the tensors of a model.
func tensors(w io.Writer, m *workload.ModelSummary) error {
	t := texttab.New("tensor", "shape", ">parameters")
	for _, x := range m.Tensors {
		t.Add(x.Name, x.Shape, words.Thousands(x.Count()))
	}
	t.Row("all", "", words.Thousands(m.Params))
	return t.Write(w)
}
