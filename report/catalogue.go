package report

import (
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
		t.Row(p.Name, fmt.Sprint(p.Nodes), fmt.Sprint(p.GPUs), fmt.Sprint(p.NICs), p.Summary)
		if o.Verbose {
			t.Row("", "", "", "", "source: "+p.Source)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nnodes: how many a name without :COUNT means. Sources: -v or --json. Single GPUs, without a NIC:")
	for _, line := range texttab.Flow(bare, ", ", max(o.Width-2, 78)) {
		fmt.Fprintln(w, " ", line)
	}
	return nil
}

// Hardware prints the tables of the catalogue; verbose prints the source below every row.
func Hardware(w io.Writer, d *query.HardwareDoc, verbose bool) error {
	for _, part := range []struct {
		title string
		rows  int
		table func() *texttab.Table
	}{
		{
			"Links and networks (one direction computed with; duplex as the sum of both)", len(d.Links),
			func() *texttab.Table { return linkTable(d.Links, verbose) },
		},
		{"Accelerators (dense peaks)", len(d.GPUs), func() *texttab.Table { return gpuTable(d.GPUs, verbose) }},
		{"Network cards", len(d.NICs), func() *texttab.Table { return nicTable(d.NICs, verbose) }},
		{"Switches", len(d.Switches), func() *texttab.Table { return switchTable(d.Switches, verbose) }},
	} {
		if part.rows == 0 {
			continue
		}
		fmt.Fprintln(w, part.title)
		if err := part.table().Write(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// cite adds a row's source below it.
func cite(t *texttab.Table, sources bool, source string) {
	if sources {
		t.Row("  source: " + source)
	}
}

func linkTable(rows []hardware.Interconnect, sources bool) *texttab.Table {
	t := texttab.New("name", "of", ">one direction", ">in bits", ">duplex", "maker quotes", ">latency")
	for _, r := range rows {
		latency := ""
		if r.Latency.Known() {
			latency = r.Latency.Value.String()
		}
		t.Row(r.Name, r.Scope, r.OneWay.String(), r.OneWay.Bits(), r.Duplex.String(), string(r.Quoted), latency)
		cite(t, sources, r.Source)
	}
	return t
}

func gpuTable(rows []hardware.GPUModel, sources bool) *texttab.Table {
	t := texttab.New("name", "title", ">memory", ">memory rate", ">bf16 dense", ">fp8 dense", "links", "PCIe", ">power")
	for _, g := range rows {
		peak := func(d cluster.Dtype) string {
			if v, ok := g.Peak[d]; ok {
				return v.String()
			}
			return "–"
		}
		links := "–"
		if g.Links > 0 {
			links = fmt.Sprintf("%d × %v = %v", g.Links, g.Link, g.Link*unit.Rate(g.Links))
		}
		power := "–"
		if g.TDP > 0 {
			power = fmt.Sprintf("%g W", float64(g.TDP))
		}
		t.Row(g.Name, g.Title, g.Memory.String(), g.HBM.String(), peak(cluster.BF16), peak(cluster.FP8), links,
			fmt.Sprintf("gen %d x%d", g.PCIeGen, g.Lanes), power)
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
		rate := "–"
		if n.Rate > 0 {
			rate = n.Rate.Bits()
		}
		t.Row(n.Name, rate, fmt.Sprintf("gen %d x%d", n.PCIeGen, n.Lanes), strings.Join(n.PCI, " "))
		cite(t, sources, n.Source)
	}
	return t
}

func switchTable(rows []hardware.SwitchModel, sources bool) *texttab.Table {
	t := texttab.New("name", "kind", ">ports", ">port rate")
	for _, s := range rows {
		t.Row(s.Name, string(s.Kind), fmt.Sprint(s.Ports), s.Rate.Bits())
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
		">tokens", ">forward")
	for i := range d.Models {
		m := &d.Models[i]
		t.Row(m.Name, m.Title, words.Thousands(m.Params), some(m.Layers), some(m.Hidden), heads(m), some(m.FFN), experts(m),
			some(m.Vocab), fmt.Sprint(m.Seq), fmt.Sprintf("%.4g TFLOP", m.Forward/1e12))
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
	if m.Experts == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", m.TopK, m.Experts)
}

// some is a number, or nothing where there is none.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// tensors prints the tensors of a model.
func tensors(w io.Writer, m *workload.ModelSummary) error {
	t := texttab.New("tensor", "shape", ">parameters")
	for _, x := range m.Tensors {
		t.Row(x.Name, fmt.Sprint(x.Shape), words.Thousands(x.Count()))
	}
	t.Row("all", "", words.Thousands(m.Params))
	return t.Write(w)
}
